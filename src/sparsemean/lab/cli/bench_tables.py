"""The tables that ``sparsemean bench`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sparsemean.lab.bench.baselines import MEANING
from sparsemean.lab.bench.changes import SpeedChange
from sparsemean.lab.bench.goals import judged
from sparsemean.lab.bench.link import Break
from sparsemean.lab.bench.machine import BUSY
from sparsemean.lab.bench.measurement import Measurement
from sparsemean.lab.bench.record import BenchRecord
from sparsemean.lab.cli.output import plain, print_table
from sparsemean.lab.numbers import terminal_number

WHAT = 26  # letters of what is done
LINK_COLUMNS = ("case", "bytes", "ours, ms", "dense, ms", "× as fast", "pays below, Mbit/s", "unlike", "alike")
WIDE = 125  # letters that all of these take
FEW = 20  # changes that are shown, of the faster and of the slower ones


def show(record: BenchRecord) -> None:
    """The machine, the rows, what they mean, and what has to be said about them."""
    here = record.machine
    versions = ", ".join(f"{name} {here[name]}" for name in ("numpy", "numba", "scipy", "torch"))
    _say(f"{here['processor']}, {here['cores']} cores, Python {here['python']}, {versions}")
    if record.rows:
        _show_rows(record.rows)
    if record.links:
        _show_links(record.links)
    if found := judged(record.rows):
        print_table(
            ("what we want", "wanted", "measured", "holds"),
            [
                (goal.name, goal.wanted, terminal_number(value), "yes" if goal.holds(value) else "no")
                for goal, value in found
            ],
        )
    for line in record.left_out:
        _say(f"Left out: {line}.")
    if record.busy:
        most, cores = max(row.others for row in record.busy), record.machine["cores"]
        _say(f"Something else ran in rows marked with *, on up to {most:.2g} of {cores} cores: read them with care.")
    if not record.complete:
        _say(f"Stopped after {len(record.rows) or len(record.links)} rows, which are kept.")


def show_changes(found: Sequence[SpeedChange], old: BenchRecord) -> None:
    """Rows that every baseline agrees have changed; how many did not."""
    if not found:
        _say("Nothing that was measured is in both records: measure the same sizes and schemes.")
        return
    slower = [change for change in found if change.verdict == "slower"][:FEW]
    faster = [change for change in reversed(found) if change.verdict == "faster"][:FEW]
    if slower or faster:
        print_table(
            ("changed", "before, ms", "now, ms", "× as fast", "by baseline", "memory"),
            [
                (
                    change.label,
                    f"{1e3 * change.before:.4g}",
                    f"{1e3 * change.after:.4g}",
                    f"{change.mean:.2f}",
                    f"{change.low:.2f}-{change.high:.2f}",
                    "" if change.memory is None else f"× {change.memory:.2f}",
                )
                for change in (*slower, *faster)
            ],
        )
    counts = {verdict: sum(change.verdict == verdict for change in found) for verdict in ("slower", "faster", "same")}
    _say(
        f"Of {len(found)} rows that both have, {counts['slower']} are slower, {counts['faster']} faster, and "
        f"{counts['same']} the same within 10 %, relative to every baseline; before was {old.version} on "
        f"{old.machine['processor']}."
    )


def _show_rows(rows: Sequence[Measurement]) -> None:
    """A table for each case; what we are times as fast as may take several lines where the window is narrow."""
    here = Console()
    console = Console(width=here.width if here.is_terminal else max(here.width, 160), highlight=False)
    for case, own in groupby(rows, key=lambda row: row.case):
        console.print(f"\n{case or 'whatever the size'}")
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(width=WHAT)
        for width in (10, 7):
            table.add_column(width=width, justify="right")
        table.add_column()
        table.add_column(width=10, justify="right")
        for row in own:
            table.add_row(*map(escape, _cells(row)))
        console.print(table)
    _say("\n0.5 × dense: half as fast as it. Beside the time: how far the quartiles are from it; last: peak memory.")
    for name in MEANING:
        if any(name in row.baselines for row in rows):
            _say(f"  {name}: {MEANING[name]}")


def _cells(row: Measurement) -> list[str]:
    took = row.seconds
    spread = max(took.high - took.median, took.median - took.low) / took.median
    times = [f"{ratio.median:.2g} × {name}".replace(" ", "\u00a0") for name, ratio in row.ratios.items()]
    return [
        f"  {row.what}{' *' if row.others > BUSY else ''}",
        f"{1e3 * took.median:.4g} ms",
        f"± {100 * spread:.0f} %",
        " · ".join(times),
        "" if row.peak_bytes is None else f"{row.peak_bytes / 1e6:.3g} MB",
    ]


def _show_links(breaks: Sequence[Break]) -> None:
    here = Console()
    shown = (
        LINK_COLUMNS
        if not here.is_terminal or here.width >= WIDE
        else ("case", "bytes", "× as fast", "unlike", "alike")
    )
    cells = [dict(zip(LINK_COLUMNS, _link_cells(row), strict=True)) for row in breaks]
    print_table(shown, [[row[column] for column in shown] for row in cells], wrap=True)
    _say(
        "unlike, alike: error of the mean, relative to the vectors' mean squared length, where they have nothing in "
        "common, and where they are alike; whole vectors have 0. useless: no better than answering 0. For your own "
        "vectors: sparsemean compare FILE"
    )


def _link_cells(row: Break) -> list[str]:
    return [
        str(row.case),
        f"{row.bytes_sent:,}",
        f"{1e3 * row.ours:.2f}",
        f"{1e3 * row.dense:.2f}",
        f"{row.dense / row.ours:.3g}",
        {float("inf"): "always", 0.0: "never"}.get(row.even_bits, terminal_number(row.even_bits / 1e6)),
        _error(row.unlike, row.unlike_zero),
        _error(row.alike, row.alike_zero),
    ]


def _error(error: float | None, zero: float | None) -> str:
    if error is None or zero is None:
        return ""
    return f"{error:.2g}" + (" useless" if error >= zero else "")


def _say(text: str) -> None:
    Console().print(escape(plain(text)), highlight=False, soft_wrap=True)
