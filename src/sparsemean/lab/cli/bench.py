"""``sparsemean bench``: how fast it is here, and on which links it pays."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sparsemean.errors import InvalidInput
from sparsemean.lab.bench import Case, Measurement, bench, machine, too_large
from sparsemean.lab.bench.changes import changes
from sparsemean.lab.bench.goals import ROWS, goal_rows
from sparsemean.lab.bench.link import Break, over_a_link
from sparsemean.lab.bench.page import NO_PLOT, plotted, write_page, write_plot
from sparsemean.lab.bench.record import BenchRecord, read
from sparsemean.lab.bench.sets import every, whole
from sparsemean.lab.cli.bench_ddp import bench_ddp
from sparsemean.lab.cli.bench_tables import show, show_changes
from sparsemean.lab.cli.output import plain, print_json
from sparsemean.lab.cli.progress import STOPPED, progress_bar
from sparsemean.lab.cli.sizes import bits_of, count_of, share_of
from sparsemean.lab.report.draw.static import FORMATS
from sparsemean.schemes import names
from sparsemean.wire.values import EXAMPLES, value_kind


def bench_command(
    context: typer.Context,
    dims: Annotated[str, typer.Option(help="Lengths of the vectors: 10k, 1e6, 2^22, with commas.")] = "10k,1e6,2^22",
    shares: Annotated[str, typer.Option(help="Shares of the coordinates, with commas.")] = "0.1%,1%,10%",
    nodes: Annotated[str, typer.Option(help="Numbers of nodes, with commas.")] = "16",
    schemes: Annotated[str, typer.Option(help="Names with commas, or all.")] = "rand-k-spatial-avg",
    values: Annotated[str, typer.Option(help="Kinds of values with commas, or all.")] = "float32",
    everything: Annotated[
        bool,
        typer.Option("--all", help="Instead: every scheme at every size that takes seconds, and our goals; 10 min."),
    ] = False,
    goals: Annotated[
        bool, typer.Option("--goals", help="Instead: the speeds that we aim for, and whether they hold.")
    ] = False,
    ddp: Annotated[
        bool, typer.Option("--ddp", help="Instead: gradients of PyTorch DDP, on two processes; a minute.")
    ] = False,
    parameters: Annotated[str, typer.Option(help="With --ddp: size of the model.")] = "2^24",
    repeats: Annotated[
        int, typer.Option(min=1, help="How often each is timed; the median counts. More of what is quick.")
    ] = 7,
    link: Annotated[
        str | None, typer.Option(help="Instead: rounds over links of this speed, e.g. 10Mbit, and their error.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also write the numbers here, as JSON.")] = None,
    read_from: Annotated[
        Path | None, typer.Option("--from", help="Show what --out wrote, instead of measuring.")
    ] = None,
    against: Annotated[Path | None, typer.Option(help="Say what changed since --out wrote this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page with figures here.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write the figure of server rounds here: png, svg or pdf.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure how fast it is on this machine, and on which links it pays.

    Encoding, server rounds and round trips are timed against NumPy, scipy, torch, the dense mean and memcpy in the same
    process; a ratio above 1 means that we are faster. What does not fit into memory is left out and said.

    With --ddp: the time of a backward pass with the hook for DistributedDataParallel, beside dense gradients and
    PyTorch's own hooks, and the speed of the links below which each is faster than dense gradients.

    With --link: a round over links of that speed against one with whole float32 vectors, the speed at which both take
    as long, and the error of the mean. Stop it with Ctrl-C: what was measured is kept.
    """
    for path in (out, report, plot):
        if path is not None and path.is_dir():
            raise InvalidInput(f"{path} is a folder; name a file in it")
    if plot is not None and plot.suffix.removeprefix(".") not in FORMATS:
        raise InvalidInput(f"a plot is written as {', '.join(FORMATS)}, not as {plot.name!r}")
    given = {name for name in context.params if _is_given(context, name)}
    if "parameters" in given and not ddp:
        raise InvalidInput("--parameters goes with --ddp; --dims has the lengths of vectors")
    if ddp:
        if given - {"ddp", "parameters", "repeats", "out", "as_json"}:
            raise InvalidInput("--ddp goes with --parameters, --repeats, --out and --json; leave the others out")
        bench_ddp(count_of(parameters), repeats, out, as_json)
        return
    old = read(against) if against else None
    if read_from is not None:
        if link is not None or goals or everything:
            raise InvalidInput("--from shows what was measured before; leave --link, --goals and --all out")
        record = read(read_from)
    else:
        cases = whole() if everything else [] if goals else _cases(schemes, values, dims, shares, nodes)
        if plot is not None and (link is not None or not (goals or any(map(plotted, cases)))):
            raise InvalidInput(NO_PLOT)
        record = _measured(cases, everything or goals, None if link is None else bits_of(link), repeats, out)
    if out is not None:
        record.write(out)
    if report is not None:
        write_page(record, report, shlex.join(["sparsemean", *sys.argv[1:]]))
    if plot is not None:
        write_plot(record, plot)
    if as_json:
        print_json(record.to_json())
    else:
        show(record)
        if old is not None:
            show_changes(changes(old, record), old)
        for written in (path for path in (out, report, plot) if path is not None):
            Console().print(f"Written: {plain(str(written.resolve()))}", soft_wrap=True, markup=False)
    if not record.complete:
        raise typer.Exit(STOPPED)


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether the option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _cases(schemes: str, values: str, dims: str, shares: str, nodes: str) -> list[Case]:
    cases = every(
        names() if schemes.strip() == "all" else _listed(schemes),
        EXAMPLES if values.strip() == "all" else [value_kind(kind).name for kind in _listed(values)],
        [count_of(dim) for dim in _listed(dims)],
        [share_of(share) for share in _listed(shares)],
        [count_of(n) for n in _listed(nodes)],
    )
    for case in cases:
        _ = case.run  # refuses a wrong name before anything is measured
    return cases


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _measured(cases: list[Case], with_goals: bool, bits: float | None, repeats: int, out: Path | None) -> BenchRecord:
    """What could be measured until the end, or until somebody stopped it; each row is in the file once it is there."""
    why = {case: reason for case in cases if (reason := too_large(case))}
    left_out = tuple(f"{case}: {reason}" for case, reason in why.items())
    cases = [case for case in cases if case not in why]
    if not cases and not with_goals:
        raise InvalidInput(f"nothing of this fits into memory; {left_out[0]}. Take fewer or shorter vectors")
    record = BenchRecord(machine(), left_out=left_out, complete=False)
    with progress_bar() as bar:
        task = bar.add_task("measuring", total=3 * len(cases) + with_goals * ROWS if bits is None else len(cases))
        try:
            for found in _found(cases, with_goals, bits, repeats):
                record = record.having(found)
                bar.update(task, advance=1, description=found.label)
                if out is not None:
                    record.write(out)
        except KeyboardInterrupt:
            return record
    return replace(record, complete=True)


def _found(cases: list[Case], with_goals: bool, bits: float | None, repeats: int) -> Iterator[Measurement | Break]:
    if bits is not None:
        yield from (over_a_link(case, bits, repeats) for case in cases)
        return
    yield from bench(cases, repeats)
    if with_goals:
        yield from goal_rows(repeats)
