"""What ``sparsemean frontier`` shows of a set of pictures: error against bytes by what a node may know."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from rich.console import Console

from sparsemean.lab.cli.output import plain, print_json, print_table
from sparsemean.lab.cli.progress import progress_bar
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.frontier.node_page import NOTHING_FINISHED, gains, times, write_node_page
from sparsemean.lab.frontier.node_sweep import NodeSweep
from sparsemean.lab.frontier.nodes import NODES, NodeFrontier, NodePoint
from sparsemean.lab.node_schemes import WORDS
from sparsemean.lab.tables import TableRow


def show_nodes(sweep: NodeSweep, keep: Path | None, report: Path | None, as_json: bool, command: str) -> bool:
    """Play the sweep, and print or write what came of it; whether it ran to its end.

    Parameters
    ----------
    sweep
        What is played.
    keep, report
        The folder for what is finished, and the page to write, if any.
    as_json
        Whether to print JSON in place of tables.
    command
        How to make the page again.
    """
    found = _played(sweep, keep)
    if report is not None and found.points:
        write_node_page(found, report, command)
    if as_json:
        print_json(found.to_json())
        return found.complete
    _show(found)
    if report is not None and found.points:
        Console().print(f"Report: {plain(str(report.resolve()))}", soft_wrap=True, markup=False)
    return found.complete


def _played(sweep: NodeSweep, keep: Path | None) -> NodeFrontier:
    """All points, or those that were finished when somebody stopped it."""
    rows: dict[Setting, list[TableRow]] = {}
    with progress_bar() as bar:
        task = bar.add_task("reading", total=None)

        def after(done: int, total: int, label: str) -> None:
            bar.update(task, completed=done, total=total, description=label)

        try:
            with closing(sweep.played(keep, progress=after)) as finished:
                for setting, found in finished:
                    rows[setting] = found
        except KeyboardInterrupt:
            if not rows:
                raise
    return sweep.frontier(rows)


def _show(found: NodeFrontier) -> None:
    console = Console()
    console.print(
        f"Power iteration on {found.data}, {NODES} nodes, IID, {found.rounds} rounds, {found.seeds} seeds: "
        "‖estimate − mean‖² of unit vectors, and how many times that is below whole vectors in as many bits as fit.",
        highlight=False,
        markup=False,
    )
    for budget in found.budgets:
        points = [point for point in found.points if point.budget == budget]
        if points:
            heads = ["a node keeps or hears: it sends", *(f"round {round}" for round in found.shown), ""]
            console.print(f"\nAt most {budget} bytes a node, header included", style="bold", highlight=False)
            print_table(heads, [_cells(point, found) for point in points], wrap=True)
    console.print(
        "* no other that such a node can run has both fewer bytes and a smaller error in the last round shown"
    )
    for sentence in gains(found) or [NOTHING_FINISHED]:
        console.print(sentence, style="bold", highlight=False, markup=False)


def _cells(point: NodePoint, found: NodeFrontier) -> list[str]:
    errors = [f"{point.error(round):.1e} ÷{times(found.gain(point, round))}" for round in found.shown]
    return [f"{WORDS[point.node]}: {point.scheme}", *errors, "*" if point in found.fronts[point.node] else ""]
