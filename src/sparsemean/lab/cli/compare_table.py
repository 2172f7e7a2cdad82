"""What ``sparsemean compare`` prints: the vectors, a table of schemes that fits the terminal, and advice."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from sparsemean.lab.cli.output import plain, print_table, table_fits, table_width, yes
from sparsemean.lab.compare import Comparison, Result, advice
from sparsemean.lab.numbers import ROUNDING, percent, size_of, terminal_number
from sparsemean.schemes import AUTO

FEW = ["  scheme", "k", "bytes", "error", "unbiased"]
ALL = [*FEW[:4], "all rounds", "exact", "server's own", "unbiased", "plans", "node state"]
WIDE = 125
"""Where a terminal has fewer columns, or the table would need more than it has, so has the table."""
BEST = 10
"""How many rows there are, beside references."""


def show(found: Comparison, source: str, note: str, everything: bool) -> None:
    """Print it all.

    Parameters
    ----------
    found
        What was compared.
    source, note
        Where the vectors come from, and what was guessed about the file.
    everything
        Whether to show all rows.
    """
    tell(_facts(found))
    shown = found.results if everything else _best(found)
    wide = table_width() >= WIDE and table_fits(ALL, _rows(found, shown, wide=True))
    print_table(ALL if wide else FEW, _rows(found, shown, wide), wrap=True)
    for line in _legend(found, shown, wide):
        tell(line)
    tell(advice(found), "bold")
    if found.recommended is not None:
        tell(f"  {found.recommended.code}", "bold green")
    if note:
        Console().print(f"Note: {plain(note)}.", highlight=False, markup=False, soft_wrap=True)
    Console().print(f"Data: {plain(source)}", style="dim", highlight=False, markup=False, soft_wrap=True)


def tell(text: str, style: str = "") -> None:
    """Print a paragraph; nothing in it is markup."""
    Console().print(text, style=style, highlight=False, markup=False)


def _facts(found: Comparison) -> str:
    spent = (
        f"at most {found.budget.bytes} bytes" if found.budget.bytes else f"{found.budget.share:.3g} of all coordinates"
    )
    change = found.correlation.change
    return (
        f"{found.nodes} nodes, {found.dim} coordinates, {found.rounds} rounds; {spent} per node and round. "
        f"Correlation: R2/R1 = {found.correlation.ratio:.3g} of at most {found.nodes - 1}."
        + ("" if change is None else f" Change per round: {percent(change)}.")
    )


def _best(found: Comparison) -> tuple[Result, ...]:
    """The best of those within the budget, those to compare with, and auto."""
    able = [result for result in found.results if not (result.over_budget or result.diverges)]
    chosen = {*able[:BEST], *(each for each in found.results if each.reference or each.name == AUTO)}
    chosen |= {found.recommended} if found.recommended else set()
    return tuple(result for result in found.results if result in chosen)


def _rows(found: Comparison, shown: tuple[Result, ...], wide: bool) -> Iterator[list[str]]:
    zero = ["  answering 0", "0", "0", _measured(found.steady_zero_error)]
    zero += [_measured(found.zero_error), "", "", "no", "no", "no"] if wide else ["no"]
    for result in shown:
        if zero and result.steady >= found.steady_zero_error:
            yield zero
            zero = []
        yield _cells(result, result == found.recommended, found.dim, wide)
    if zero:
        yield zero


def _cells(result: Result, recommended: bool, dim: int, wide: bool) -> list[str]:
    few = [
        ("→ " if recommended else "  ") + result.scheme,
        size_of(result.k, dim),
        f"{result.bytes_per_node:.0f}" + ("+" if result.over_budget else ""),
        _measured(result.steady, result.steady_se) + (" diverges" if result.diverges else ""),
    ]
    if not wide:
        return [*few, yes(result.unbiased)]
    said = [_told(result.exact, result.exact_bound), _told(result.server_estimate, result.server_bound)]
    facts = [yes(fact) for fact in (result.unbiased, result.planned, result.node_state)]
    return [*few, _measured(result.nmse, result.nmse_se), *said, *facts]


def _told(error: float | None, bound: bool) -> str:
    return "≤ " * (bound and error is not None) + terminal_number(error)


def _measured(error: float, standard_error: float = 0.0) -> str:
    """The error, ± two standard errors as a part of it; 0 for rounding errors."""
    if abs(error) < ROUNDING:
        return "0"
    return f"{error:.3g}" + (f" ±{percent(2 * standard_error / error)}" if standard_error > ROUNDING * error else "")


def _legend(found: Comparison, shown: tuple[Result, ...], wide: bool) -> Iterator[str]:
    steady = f" in rounds {found.warmup + 1} to {found.rounds}" if found.warmup else ""
    often = sorted({result.seeds for result in found.results})
    seeds = f"{often[0]} seeds" if len(often) == 1 else f"{often[0]} to {often[-1]} seeds"
    known = "from a single seed" if often == [1] else f"± two standard errors, {seeds}"
    yield f"error: squared error of the mean over the vectors' mean squared length{steady}; {known}."
    if wide and found.warmup:
        yield "all rounds: the same over all rounds; so are exact, from the formulas, and what the server said itself."
    if any(result.over_budget for result in shown):
        yield f"+: has payloads of more than {found.budget.bytes} bytes, and is shown to compare with."
    if wide and any(result.server_bound or result.exact_bound for result in shown):
        yield "≤: an upper bound: no two nodes send the same coordinate, or they share out dither."
    if not found.complete:
        yield "Stopped before the end: rows that are missing were not played."
    if len(shown) < len(found.results):
        yield f"{len(found.results) - len(shown)} more rows with --all."
    if found.left_out:
        yield f"Too large for the budget: {', '.join(found.left_out)}."
