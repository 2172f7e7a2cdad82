"""``sparsemean schemes``: the list of all schemes and their properties."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsemean.lab.cli.output import print_json, print_table, yes
from sparsemean.schemes import Scheme, named, names


def schemes_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List every scheme by name, with what it is made of."""
    rows = [_row(name, named(name, 0.1, ratio=1.0) if name.endswith("-opt") else named(name, 0.1)) for name in names()]
    if as_json:
        print_json(rows)
        return
    columns = ["scheme", "unbiased", "node state", "memory at the server", "encoder", "decoder"]
    print_table(columns, [[yes(v) if isinstance(v, bool) else str(v) for v in row.values()] for row in rows])


def _row(name: str, scheme: Scheme) -> dict[str, str | bool]:
    memory = scheme.memory.facts
    room = "a vector per node" if memory.per_node else "one vector" if memory.needs_raw else "none"
    return {
        "scheme": name,
        "unbiased": scheme.unbiased,
        "node_state": scheme.node_state,
        "memory": room,
        "encoder": type(scheme.encoder).__name__,
        "decoder": type(scheme.decoder).__name__,
    }
