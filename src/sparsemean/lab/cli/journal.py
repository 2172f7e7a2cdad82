"""``sparsemean inspect`` and ``verify``: what a server's journal holds, and whether it is intact."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import typer

from sparsemean.journal import Contents, contents, faults, journals
from sparsemean.lab.cli.output import plain, print_json, print_table

JOURNAL = typer.Argument(help="The folder given to Server(run, journal=…).", show_default=False)


def inspect_command(
    journal: Path = JOURNAL,
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show what a server's journal holds; the server may be running."""
    every = [contents(each) for each in journals(journal)]
    if as_json:
        shown = [dataclasses.asdict(held) for held in every]
        print_json(shown[0] if len(shown) == 1 else shown)
        return
    for held in every:
        _show(held)


def _show(held: Contents) -> None:
    scheme = held.run["scheme"]
    nodes = ", ".join(held.waiting[:10]) + (" …" if len(held.waiting) > 10 else "")
    rows = {
        "encoder": scheme["encoder"]["type"],
        "decoder": scheme["decoder"]["type"],
        "memory": scheme["memory"]["type"],
        "values": scheme["values"],
        **({"frames": held.run["frame"]} if "frame" in held.run else {}),
        "dimension": f"{held.run['dim']:,}",
        "seed": str(held.run["seed"]),
        "absent nodes": held.missing,
        "clip": "none" if held.clip is None else f"norm {held.clip[0]}, value {held.clip[1]}",
        **({} if held.shard is None else {"shard": f"{held.shard[0]} of {held.shard[1]}, from 0 on"}),
        "open round": str(held.open_round),
        "accepted in it": f"{len(held.waiting):,}" + (f" ({nodes})" if nodes else ""),
        "their bytes": f"{held.waiting_bytes:,}",
        "nodes known": f"{held.known:,}",
        "ended rounds kept": ", ".join(map(str, held.kept_rounds)) or "none",
        "state, bytes": f"{held.state_bytes:,}",
        "rows, bytes": f"{held.rows_bytes:,}",
        "log, bytes": f"{held.log_bytes:,}",
    }
    print_table(("what", "is"), rows.items())


def verify_command(journal: Path = JOURNAL) -> None:
    """Check every record, payload, state and change of a journal; exit code 1 if something is wrong."""
    found = [(each, fault) for each in journals(journal) for fault in faults(each)]
    for each, fault in found:
        typer.echo(plain(fault if each == journal else f"{each.name}: {fault}"))
    if found:
        raise typer.Exit(1)
    typer.echo("every record, state and row is whole")
