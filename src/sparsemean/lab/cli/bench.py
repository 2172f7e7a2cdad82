"""``sparsemean bench``: how fast it is here, and on which links it pays."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sparsemean.errors import InvalidInput
from sparsemean.lab.bench import Break, Case, Row, bench, machine, over_a_link
from sparsemean.lab.cli.output import number, print_json, print_table
from sparsemean.lab.cli.progress import progress_bar
from sparsemean.lab.cli.sizes import bits_of, share_of
from sparsemean.wire.values import value_kind

MOST_VALUES = 2_000_000_000  # of vectors at once, 8 GB as float32


def bench_command(
    dims: Annotated[str, typer.Option(help="Lengths of the vectors, with commas.")] = "10000,1000000,4194304",
    shares: Annotated[str, typer.Option(help="Shares of the coordinates, with commas.")] = "0.1%,1%,10%",
    nodes: Annotated[str, typer.Option(help="Numbers of nodes, with commas.")] = "16",
    schemes: Annotated[str, typer.Option(help="Names, with commas.")] = "rand-k-spatial-avg",
    values: Annotated[str, typer.Option(help="Kinds of values, with commas.")] = "float32",
    repeats: Annotated[int, typer.Option(min=1, help="Measurements, of which the median counts.")] = 7,
    link: Annotated[str | None, typer.Option(help="Speed of each node's link, e.g. 10Mbit: when does it pay?")] = None,
    out: Annotated[Path | None, typer.Option(help="Also write the numbers here, as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Time encoding and a whole server round against NumPy, scipy, torch and the dense mean, in the same process.

    A ratio above 1 means that we are faster. With --link: a round over links of that speed, against sending whole
    float32 vectors, and the speed at which both take as long.
    """
    cases = [
        Case(scheme.strip(), _whole(dim), share_of(share.strip()), _whole(n), value_kind(kind.strip()).name)
        for scheme in schemes.split(",")
        for kind in values.split(",")
        for dim in dims.split(",")
        for share in shares.split(",")
        for n in nodes.split(",")
    ]
    for case in cases:
        _ = case.run  # refuses a wrong name before anything is measured
        if case.dim * case.nodes > MOST_VALUES:
            raise InvalidInput(
                f"{case.nodes} vectors of {case.dim:,} do not fit into memory; take fewer or shorter ones"
            )
    speed = None if link is None else bits_of(link)
    found: list[Row] = []
    breaks: list[Break] = []
    with progress_bar() as bar:
        played = bar.add_task("measuring", total=len(cases))
        for case in cases:
            if speed is None:
                found += bench([case], repeats)
            else:
                breaks.append(over_a_link(case, speed, repeats))
            bar.advance(played)
    content = {"machine": machine(), "rows": [asdict(row) for row in found], "links": [asdict(b) for b in breaks]}
    if out is not None:
        out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if as_json:
        print_json(content)
        return
    _describe()
    _show_link(breaks) if breaks else _show(found)


def _describe() -> None:
    here = machine()
    console = Console()
    console.print(
        f"{here['processor']}, {here['cores']} cores, Python {here['python']}, NumPy {here['numpy']}, "
        f"numba {here['numba']}",
        highlight=False,
    )
    if here["busy"]:
        console.print(f"The load average is {here['load']}: something else may be running, so read with care.")


def _label(case: Case) -> str:
    kind = "" if case.values == "float32" else f" {case.values}"
    return f"{case.scheme}{kind}, d={case.dim:,}, k/d={case.share:.3g}, n={case.nodes}"


def _show(rows: list[Row]) -> None:
    print_table(
        ("case", "ms", "× as fast", "as", "between", "peak MB"),
        [
            (
                f"{row.what}: {_label(row.case)}",
                f"{1e3 * row.seconds:.2f}",
                f"{row.ratio:.2f}",
                row.baseline,
                f"{row.low:.2f}-{row.high:.2f}",
                f"{row.peak_bytes / 1e6:.1f}",
            )
            for row in rows
        ],
    )


def _show_link(breaks: list[Break]) -> None:
    print_table(
        ("case", "bytes", "ours, ms", "dense, ms", "× as fast", "pays below, Mbit/s"),
        [
            (
                _label(row.case),
                f"{row.bytes_sent:,}",
                f"{1e3 * row.ours:.2f}",
                f"{1e3 * row.dense:.2f}",
                f"{row.dense / row.ours:.2f}",
                "always" if row.even_bits == float("inf") else number(row.even_bits / 1e6),
            )
            for row in breaks
        ],
    )


def _whole(text: str) -> int:
    try:
        return int(float(text)) if float(text) >= 1 else int("")
    except ValueError:
        raise InvalidInput(f"{text!r} is not a number from 1 on; write 1000000 or 1e6") from None
