"""``sparsemean token``: who may come to a service."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from sparsemean.errors import InvalidInput
from sparsemean.inputs import node_name
from sparsemean.integrations.http.service.tokens import Credential, Tokens, duration, new_secret, write_secret
from sparsemean.lab.cli.output import plain, print_json, print_table

token_app = typer.Typer(
    no_args_is_help=True, help="Say who may come to a service. A running one reads the file again at SIGHUP."
)
FILE = Annotated[Path, typer.Argument(help="The file of tokens; it holds hashes alone.")]
NODE = Annotated[str, typer.Argument(help="The node's name.")]
OUT = Annotated[Path | None, typer.Option(help="Write the token into this file, instead of on the screen.")]


@token_app.command("add")
def add_command(
    file: FILE,
    nodes: Annotated[list[str], typer.Argument(metavar="NODE...", help="Names of nodes.")],
    weight: Annotated[float, typer.Option(help="With which their vectors count.")] = 1.0,
    expires: Annotated[str | None, typer.Option(help="After this time, such as 12h or 30d; by default never.")] = None,
    certificate: Annotated[
        bool, typer.Option("--certificate", help="Not a token: let in who shows a client certificate of this name.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="A folder that gets each token as NODE.token, instead of the screen.")
    ] = None,
) -> None:
    """Make a token for each node. It is shown once, and nowhere kept; the file is made if there is none."""
    until = None if expires is None else time.time() + duration(expires)
    for node in map(node_name, nodes):
        if out is not None and (path := _file_for(node, out)).exists():
            raise InvalidInput(
                f"{path} is there already; remove it first, or replace the token: sparsemean token rotate"
            )
    tokens = Tokens.create(file)
    for node in nodes:
        if certificate:
            tokens.add_certificate(node, weight, until)
            typer.echo(plain(f"{node} may come with its certificate"))
        else:
            _hand_over(tokens.add(node, weight, until), node, out)


@token_app.command("list")
def list_command(file: FILE, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List who may come, and who might once; no token can be read from it."""
    rows = [_row(each) for each in Tokens(file)]
    if as_json:
        print_json(rows)
        return
    print_table(("node", "id", "weight", "made", "until", "state"), [list(row.values()) for row in rows])


@token_app.command("revoke")
def revoke_command(
    file: FILE, which: Annotated[str, typer.Argument(metavar="ID-OR-NODE", help="A token's id, or all of a node.")]
) -> None:
    """Close a token, or all that a node has."""
    for each in Tokens(file).revoke(which):
        typer.echo(plain(f"{each.id} of {each.node} opens nothing any more"))


@token_app.command("rotate")
def rotate_command(file: FILE, node: NODE, out: OUT = None) -> None:
    """Make a new token for a node, and close those that it has."""
    _hand_over(Tokens(file).rotate(node), node, None, out)


@token_app.command("admin")
def admin_command(out: Annotated[Path, typer.Argument(help="The file to write it into.")]) -> None:
    """Make the operator's token, for `serve --admin-token-file`."""
    if out.exists():
        raise InvalidInput(f"{out} is there already; remove it first, or choose another name")
    write_secret(out, new_secret() + "\n")
    typer.echo(f"the operator's token is in {out}")


def _hand_over(token: str, node: str, folder: Path | None, file: Path | None = None) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        file = _file_for(node, folder)
    if file is None:
        typer.echo(token if node == "" else f"{plain(node)} {token}")
    else:
        write_secret(file, token + "\n")
        typer.echo(plain(f"the token of {node} is in {file}"))


def _file_for(node: str, folder: Path) -> Path:
    if Path(node).name != node or node.startswith("."):
        raise InvalidInput(f"{node!r} cannot be the name of a file; leave out --out for it")
    return folder / f"{node}.token"


def _row(each: Credential) -> dict[str, str]:
    state = "revoked" if each.revoked else "open" if each.valid(time.time()) else "expired"
    return {
        "node": each.node,
        "id": each.id,
        "weight": f"{each.weight:g}",
        "made": _day(each.created),
        "until": "ever" if each.expires is None else _day(each.expires),
        "state": state,
    }


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
