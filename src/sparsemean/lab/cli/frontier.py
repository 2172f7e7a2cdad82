"""``sparsemean frontier``: which error for how many bytes, by which scheme?"""

from __future__ import annotations

import math
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sparsemean.errors import InvalidInput
from sparsemean.lab import datasets
from sparsemean.lab.cli import inputs
from sparsemean.lab.cli.frontier_nodes import show_nodes
from sparsemean.lab.cli.output import plain, print_json, print_table, yes
from sparsemean.lab.cli.progress import STOPPED, progress_bar
from sparsemean.lab.cli.sizes import bytes_of
from sparsemean.lab.compare import GivenVectors
from sparsemean.lab.datasets import PICTURES
from sparsemean.lab.frontier import Frontier, KeptPoints, Point, Sweep, trade
from sparsemean.lab.frontier.node_sweep import ROUNDS, NodeSweep
from sparsemean.lab.frontier.page import write_page
from sparsemean.lab.numbers import size_of
from sparsemean.lab.peers import PEERS

VALUES = "float32,int8"
COLUMNS = ["scheme and values", "bytes", "k", "NMSE ± 2 se", "unbiased"]


@inputs.reads_vectors
def frontier_command(
    source: inputs.Source = None,
    budgets: Annotated[
        str | None,
        typer.Option(
            help="Bytes per node and round, header included, with commas: 100,200,1KB,4KB. Default: six, from a few "
            "values to the dense float32 mean; of pictures, whole vectors in 1, 2, 3 and 4 bits a value."
        ),
    ] = None,
    rounds: inputs.Rounds = None,
    schemes: inputs.Schemes = None,
    values: inputs.Values = VALUES,
    weights: inputs.Weights = None,
    seeds: inputs.Seeds = 3,
    keep: Annotated[
        Path | None, typer.Option(help="Folder that keeps finished points; run again to go on there.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page with the figure here.")] = None,
    reading: datasets.Reading = inputs.READ_AS_IS,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Error against bytes: play every scheme within several byte budgets, and show which no other beats.

    What no other beats is the front: one of unbiased schemes, and one of all. Schemes that diverge, or are told what
    nobody knows, are on neither, nor is rand-proj-spatial-avg, of another paper, which is played to compare with. Whole
    vectors in float32, float16 and int8, and in as many bits as each budget allows, are always among the points.

    Of a set of pictures (fashion-mnist, cifar-10, digits) it plays power iteration, whose vectors follow the mean: by
    100 nodes that know nothing, hear the mean of each round, or keep a vector.

    Stop it with Ctrl-C: what is finished is shown, and with --keep the next run goes on from there.
    """
    if report is not None and report.is_dir():
        raise InvalidInput(f"{report} is a folder; name a file in it")
    limits = [bytes_of(text) for text in budgets.split(",")] if budgets else []
    command = shlex.join(["sparsemean", *sys.argv[1:]])
    if source and len(source) == 1 and source[0] in PICTURES:
        given_to_vectors = {"--schemes": schemes, "--weights": weights, **{f"--{name}": True for name in reading.given}}
        given_to_vectors |= {"--values": values if values != VALUES else None}
        if chosen := [name for name, value in given_to_vectors.items() if value is not None]:
            raise InvalidInput(f"{chosen[0]} is for vectors; {source[0]} is played by the schemes of each kind of node")
        _end(show_nodes(NodeSweep(source[0], limits, rounds or ROUNDS, seeds), keep, report, as_json, command), keep)
        return
    vectors, origin, note = inputs.vectors_of(source, reading)
    given = GivenVectors(vectors[:rounds], inputs.weights_of(weights))
    sweep = Sweep(given, limits, inputs.schemes_of(schemes, PEERS), inputs.kinds_of(values), seeds)
    kept = KeptPoints(keep, given, seeds) if keep else None
    found = _swept(sweep, kept)
    if report is not None:
        write_page(found, report, origin, note, command)
    if as_json:
        print_json({**found.to_json(), "trade": trade(found), "source": origin, **({"note": note} if note else {})})
    else:
        _show(found, origin, note)
        if report is not None:
            Console().print(f"Report: {plain(str(report.resolve()))}", soft_wrap=True, markup=False)
    _end(found.complete, keep)


def _end(complete: bool, keep: Path | None) -> None:
    """Say how to go on where somebody stopped it."""
    if not complete:
        remedy = "run the same again to go on" if keep else "--keep FOLDER would have kept it for the next run"
        Console(stderr=True).print(f"stopped before the end; {remedy}", highlight=False, markup=False)
        raise typer.Exit(STOPPED)


def _swept(sweep: Sweep, kept: KeptPoints | None) -> Frontier:
    """All points, or those that were finished, if any, when somebody stopped it."""
    points: list[Point] = []
    with progress_bar() as bar:
        task = bar.add_task("finding k")
        try:
            for point in sweep.points(kept, progress=lambda done, total: bar.update(task, completed=done, total=total)):
                points.append(point)
                bar.update(task, description=f"{point.scheme}, {point.bytes_per_node:.0f} bytes")
        except KeyboardInterrupt:
            if not points:
                raise
            return replace(sweep.frontier(points), complete=False)
    return sweep.frontier(points)


def _show(found: Frontier, source: str, note: str) -> None:
    console = Console()

    def tell(text: str, style: str = "") -> None:
        console.print(text, style=style, highlight=False, markup=False)

    tell(
        f"{found.nodes} nodes, {found.dim} coordinates, {found.rounds} rounds, {found.seeds} seeds; "
        f"{len(found.points)} points: whole vectors, and at most {', '.join(map(str, found.budgets))} bytes a node."
    )
    print_table(COLUMNS, [_cells(tied[0], found) for tied in found.marked], wrap=True)
    for first, *others in found.marked:
        if others:
            tell(f"As good as {first.scheme}: {', '.join(point.scheme for point in others)}.")
    tell(
        "Rows that are unbiased are the front of unbiased schemes; biased ones are on the front of all schemes. "
        f"Answering 0 has an error of {found.zero_error:.3g}."
    )
    if found.left_out:
        tell(f"Too large for every budget: {', '.join(found.left_out)}.")
    compared = [f"{point.nmse:.3g} at {point.bytes_per_node:.0f} bytes" for point in found.points if point.peer]
    if compared:
        tell(f"To compare with, on no front: {PEERS[0]} has {', '.join(compared)}.")
    if found.not_played:
        tell(f"{found.not_played}.")
    tell(trade(found), "bold")
    if note:
        console.print(f"Note: {plain(note)}.", highlight=False, markup=False, soft_wrap=True)
    console.print(f"Data: {plain(source)}", style="dim", highlight=False, markup=False, soft_wrap=True)


def _cells(point: Point, found: Frontier) -> list[str]:
    spread = "" if math.isnan(point.nmse_se) else f" ± {2 * point.nmse_se:.0e}"
    useless = " useless" if point.nmse >= found.zero_error else ""
    error = f"{point.nmse:.3g}{spread}{useless}"
    return [point.scheme, f"{point.bytes_per_node:.0f}", size_of(point.k, found.dim), error, yes(point.unbiased)]
