"""``sparsemean compare``: which scheme should I use for my vectors at my budget?"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sparsemean.lab.cli import inputs
from sparsemean.lab.cli.output import plain, print_json, print_table, yes
from sparsemean.lab.cli.progress import progress_bar
from sparsemean.lab.cli.sizes import bytes_of, share_of
from sparsemean.lab.compare import Budget, Comparison, advice, compare
from sparsemean.lab.compare.advice import percent
from sparsemean.lab.numbers import terminal_number
from sparsemean.run import Run
from sparsemean.schemes import AUTO, named

COLUMNS = ["scheme", "bytes", "NMSE", "±", "exact", "server's own", "unbiased", "node state"]


def compare_command(
    source: inputs.Source = "weather",
    share: Annotated[
        str | None, typer.Option(help="Share of the coordinates each node sends, e.g. 10%: the paper's comparison.")
    ] = None,
    bytes: Annotated[
        str | None, typer.Option(help="Bytes per node and round, header included, e.g. 4KB. Default: rand-k's at 10%.")
    ] = None,
    rounds: inputs.Rounds = None,
    schemes: inputs.Schemes = None,
    values: inputs.Values = "float32,int8",
    weights: inputs.Weights = None,
    seeds: inputs.Seeds = 5,
    report: Annotated[Path | None, typer.Option(help="Write the report page here.")] = None,
    header: inputs.Header = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Play every scheme on your vectors through the real bytes, and say which one to use.

    Errors are relative to the vectors' mean squared length (NMSE), averaged over rounds and seeds.
    """
    vectors, origin, note = inputs.vectors_of(source, header)
    budget = _budget(share, bytes, vectors.shape[2])
    kinds, chosen, told = inputs.kinds_of(values), inputs.schemes_of(schemes), inputs.weights_of(weights)
    fixed = [name for name in chosen if name != AUTO]
    wanted = [name if kind == "float32" else f"{name} {kind}" for kind in kinds for name in fixed]
    wanted += [AUTO] if AUTO in chosen else []  # which has no kind of values of its own
    with progress_bar() as bar:
        played = bar.add_task("playing schemes")
        found = compare(
            vectors[:rounds],
            budget,
            wanted,
            told,
            seeds,
            progress=lambda done, total: bar.update(played, completed=done, total=total),
        )
    if report is not None:
        _write_report(found, origin, note, report)
    if as_json:
        print_json({**found.to_json(), "advice": advice(found), **({"note": note} if note else {})})
        return
    _show(found, origin, note)
    if report is not None:
        Console().print(f"Report: {plain(str(report.resolve()))}", soft_wrap=True, markup=False)


def _budget(share: str | None, bytes: str | None, dim: int) -> Budget:
    """The budget of the options; by default the bytes of rand-k at a tenth of the coordinates."""
    if share is None and bytes is None:
        return Budget(bytes=Run(named("rand-k", max(1, round(0.1 * dim))), dim).payload_bytes)
    return Budget(share=share_of(share) if share else None, bytes=bytes_of(bytes) if bytes else None)


def _show(found: Comparison, source: str, note: str) -> None:
    console = Console()
    console.print(
        f"{found.nodes} nodes, {found.dim} coordinates, {found.rounds} rounds, {found.seeds} seeds; "
        + (
            f"at most {found.budget.bytes} bytes"
            if found.budget.bytes
            else f"{found.budget.share:.3g} of the coordinates"
        )
        + " per node and round. "
        f"Correlation: R2/R1 = {found.correlation.ratio:.3g} of at most {found.nodes - 1}. "
        + ("" if found.correlation.change is None else f"Change per round: {percent(found.correlation.change)}."),
        highlight=False,
    )
    cells = [
        [
            result.scheme,
            f"{result.bytes_per_node:.0f}" + (" over" if result.over_budget else ""),
            terminal_number(result.nmse) + (" diverges" if result.diverges else ""),
            terminal_number(result.nmse_se),
            terminal_number(result.exact),
            "≤ " * result.server_bound + terminal_number(result.server_estimate),
            yes(result.unbiased),
            yes(result.node_state),
        ]
        for result in found.results
    ]
    print_table(COLUMNS, cells)
    if any(result.over_budget for result in found.results):
        console.print(
            f"over: more than the budget of {found.budget.bytes} bytes, shown for reference.", highlight=False
        )
    if any(result.server_bound for result in found.results):
        console.print(
            "≤: an upper bound: no two nodes send the same coordinate, or they share out dither.", highlight=False
        )
    if found.left_out:
        console.print(f"Too large for the budget: {', '.join(found.left_out)}.", highlight=False)
    console.print(f"[bold]{advice(found)}[/]", highlight=False)
    if note:
        console.print(f"Note: {plain(note)}.", highlight=False, markup=False, soft_wrap=True)
    console.print(f"Data: {plain(source)}", style="dim", highlight=False, markup=False, soft_wrap=True)


def _write_report(found: Comparison, source: str, note: str, path: Path) -> None:
    from sparsemean.lab.report import write_compare_report

    command = shlex.join(["sparsemean", *sys.argv[1:]])
    told = {"advice": advice(found), "source": source, "note": note, "command": command}
    write_compare_report({**found.to_json(), **told}, path)
