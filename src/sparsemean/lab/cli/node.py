"""``sparsemean node`` and ``sparsemean admin``: the other ends of a service."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console

from sparsemean.errors import InvalidInput
from sparsemean.integrations.http import HttpNode
from sparsemean.integrations.http.link import Link
from sparsemean.integrations.http.messages import ADMIN
from sparsemean.lab.cli.output import plain
from sparsemean.lab.cli.serve import secret_in

SERVER = Annotated[str, typer.Option(help="Where the service is, such as https://means.example:8443.")]
AUTHORITY = Annotated[Path | None, typer.Option("--ca", help="Who signed its certificate, in PEM, if nobody known.")]
INSECURE = Annotated[bool, typer.Option("--insecure", help="Without TLS, to a server elsewhere.")]
ACTIONS = ("pause", "resume", "close", "skip", "forget", "rotate")


def node_command(
    vectors: Annotated[Path, typer.Argument(help="A .npy file: a row for each round, or one vector.")],
    server: SERVER,
    token_file: Annotated[Path | None, typer.Option(help="The file with this node's token.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="Or its client certificate, in PEM.")] = None,
    key: Annotated[Path | None, typer.Option(help="And the key of that.")] = None,
    ca: AUTHORITY = None,
    state: Annotated[
        Path | None, typer.Option(help="What an encoder keeps; by default beside the vectors, where one does.")
    ] = None,
    repeat: Annotated[bool, typer.Option("--repeat", help="Send one vector in every round.")] = False,
    weight: Annotated[float | None, typer.Option(help="Of this node, where the operator lets nodes say it.")] = None,
    mean: Annotated[Path | None, typer.Option(help="Write the last mean into this .npy file as rounds end.")] = None,
    patience: Annotated[float, typer.Option(help="Seconds without an answer before it gives up.")] = 600.0,
    insecure: INSECURE = False,
) -> None:
    """Send vectors to a service as its rounds open. It waits for a service that is away, and goes on."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    rows = _rows(vectors)
    if mean is not None and not mean.absolute().parent.is_dir():
        raise InvalidInput(f"the mean cannot be written to {mean}: there is no such folder; make it first")
    kept = state or vectors.with_suffix(".state")
    token = None if token_file is None else secret_in(token_file)
    with HttpNode(server, token, None, kept, weight, ca, certificate, key, patience, insecure) as node:
        sent = 0
        for _, receipt in node.play(rows, repeat):
            sent += 1
            typer.echo(plain(f"round {receipt.round}: {node.name}'s vector is taken"))
            heard = node.mean(receipt.round) if mean is not None else None
            if heard is not None and mean is not None:
                with mean.open("wb") as file:
                    np.save(file, heard.mean, allow_pickle=False)
        if not sent:
            now = node.round().number
            typer.echo(f"nothing was sent: round {now} is open, and there are {len(rows)} rows, from round 0 on")


def admin_command(
    action: Annotated[str, typer.Argument(help=f"{', '.join(ACTIONS)}; the last two take a node.")],
    node: Annotated[str | None, typer.Argument(help="The node's name.")] = None,
    server: SERVER = "http://127.0.0.1:8443",
    admin_token_file: Annotated[Path | None, typer.Option(help="The file with the operator's token.")] = None,
    ca: AUTHORITY = None,
    insecure: INSECURE = False,
) -> None:
    """Pause or resume the rounds of a service; close or skip the open one; forget a node; give it a new token."""
    if action not in ACTIONS or (node is None) == (action in ACTIONS[-2:]):
        raise InvalidInput("say pause, resume, close or skip; or forget NODE or rotate NODE")
    if admin_token_file is None:
        raise InvalidInput("give the operator's token with --admin-token-file; sparsemean token admin makes it")
    body = b"" if node is None else json.dumps({"node": node}).encode()
    with closing(Link(server, secret_in(admin_token_file), ca, None, None, 10.0, insecure)) as link:
        told = link.ask("POST", f"{ADMIN}/{action}", body, {"Content-Type": "application/json"}).json()
    if "token" in told:
        typer.echo(told["token"])
    done = plain(action if node is None else f"{action} {node}")
    Console(file=sys.stderr).print(f"{done}: done; round {told.get('round')} is open", highlight=False, markup=False)


def _rows(path: Path) -> npt.NDArray[Any]:
    try:
        rows = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} is not a .npy file of numbers: {error}") from None
    if not isinstance(rows, np.ndarray):
        raise InvalidInput(f"{path} holds several arrays; save the one with the vectors as .npy")
    return rows
