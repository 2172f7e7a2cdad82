"""``sparsemean schemes``: the list of all schemes and their properties."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from sparsemean._names import SchemeName
from sparsemean.lab.cli.output import print_json, print_table, yes
from sparsemean.schemes import AUTO, Scheme, named, names
from sparsemean.wire.values import NAMES

FEW = ("scheme", "unbiased", "node state", "server keeps")
ALL = (*FEW, "encoder", "decoder")
WIDE = 112
"""Where a terminal has fewer columns, so has the table."""

LEGEND = f"""\
unbiased: right on average, whatever the vectors. node state: nodes remember something from round to round, and need
`client.delivered(receipt)`. server keeps: from round to round; fewer bytes where vectors change little.

{AUTO} chooses among several in every round, within a budget of bytes.

Use one as sm.named("rand-k", k=0.1, values="int8"), k being a number or a share of the coordinates. Values are {NAMES}.

Which one for your vectors? sparsemean compare FILE"""


def schemes_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List every scheme by name, with what nodes and server need for it, and the kinds of values."""
    every: list[SchemeName] = [*names(), AUTO]
    rows = [_row(name, named(name, 0.1, ratio=1.0) if name.endswith("-opt") else named(name, 0.1)) for name in every]
    if as_json:
        print_json(rows)
        return
    here = Console()
    shown = ALL if not here.is_terminal or here.width >= WIDE else FEW
    print_table(
        shown, [[yes(v) if isinstance(v, bool) else str(v) for v in row.values()][: len(shown)] for row in rows]
    )
    for paragraph in LEGEND.split("\n\n"):
        here.print(paragraph.replace("\n", " "), highlight=False, markup=False)


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
