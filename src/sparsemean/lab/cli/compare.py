"""``sparsemean compare``: which scheme for these vectors?"""

from __future__ import annotations

import shlex
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sparsemean.errors import InvalidInput
from sparsemean.lab import datasets
from sparsemean.lab.cli import inputs
from sparsemean.lab.cli.compare_table import show
from sparsemean.lab.cli.output import plain, print_json
from sparsemean.lab.cli.progress import STOPPED, progress_bar
from sparsemean.lab.cli.sizes import bytes_of, share_of
from sparsemean.lab.compare import Budget, Comparison, Contest, GivenVectors, Result, advice
from sparsemean.lab.compare.sweep import errors_by_bytes
from sparsemean.run import Run
from sparsemean.schemes import AUTO, named


@inputs.reads_vectors
def compare_command(
    source: inputs.Source = None,
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
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How often to repeat with other random coordinates. Default: as often as two standard errors of the "
            "best need to be below 5 %, from 3 to 80 times.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all rows, not just the best ten and references.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write the report page here.")] = None,
    reading: datasets.Reading = inputs.READ_AS_IS,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Play every scheme on your vectors through the real bytes, and say which one to use.

    Errors are relative to the vectors' mean squared length (NMSE). Schemes are ranked by the second half of the rounds,
    the steady state. Stop it with Ctrl-C: what is played by then is shown.
    """
    if report is not None and report.is_dir():
        raise InvalidInput(f"{report} is a folder; name a file in it")
    vectors, origin, note = inputs.vectors_of(source, reading)
    budget = _budget(share, bytes, vectors.shape[2])
    kinds, chosen, told = inputs.kinds_of(values), inputs.schemes_of(schemes), inputs.weights_of(weights)
    fixed = [name for name in chosen if name != AUTO]
    wanted = [name if kind == "float32" else f"{name} {kind}" for kind in kinds for name in fixed]
    wanted += [AUTO] if AUTO in chosen else []  # which has no kind of values of its own
    contest = Contest(GivenVectors(vectors[:rounds], told), budget, wanted, seeds)
    found, sweep = _played(contest, swept=report is not None)
    content = {**found.to_json(), "advice": advice(found), "sweep": sweep, **({"note": note} if note else {})}
    if report is not None:
        from sparsemean.lab.report import write_compare_report

        command = shlex.join(["sparsemean", *sys.argv[1:]])
        write_compare_report({**content, "source": origin, "command": command}, report)
    if as_json:
        print_json(content)
    else:
        show(found, origin, note, everything)
        if report is not None:
            Console().print(f"Report: {plain(str(report.resolve()))}", soft_wrap=True, markup=False)
    if not found.complete:
        Console(stderr=True).print("stopped before the end", highlight=False, markup=False)
        raise typer.Exit(STOPPED)


def _played(contest: Contest, swept: bool) -> tuple[Comparison, list[dict[str, Any]]]:
    """All results, or those that were there when somebody stopped it; and, if wanted, errors at other budgets."""
    results: dict[str, Result] = {}
    with progress_bar() as bar:
        task = bar.add_task("finding k", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        try:
            with closing(contest.results(progress=progress)) as played:
                for result in played:
                    results[result.scheme] = result
                    bar.update(task, description=result.scheme)
            found = contest.comparison(results.values())
            bar.update(task, description="other budgets", completed=0, total=None)
            return found, errors_by_bytes(contest.given, found, progress=progress) if swept else []
        except KeyboardInterrupt:
            if not results:
                raise
            return replace(contest.comparison(results.values()), complete=False), []


def _budget(share: str | None, bytes: str | None, dim: int) -> Budget:
    """The budget of the options; by default the bytes of rand-k at a tenth of the coordinates."""
    if share is None and bytes is None:
        return Budget(bytes=Run(named("rand-k", max(1, round(0.1 * dim))), dim).payload_bytes)
    return Budget(share=share_of(share) if share else None, bytes=bytes_of(bytes) if bytes else None)
