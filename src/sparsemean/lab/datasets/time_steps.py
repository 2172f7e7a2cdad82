"""Times at equal steps: those that are missing between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sparsemean.lab.datasets.content import counted

TOLERANCE = 0.25
"""How far a step between times may be from a whole multiple of the usual one: months, and clocks that are not exact."""

NONE_MISSING = "if no line is missing there, as over weekends, write 1, 2, 3, … in place of the times"


def evened(times: Sequence[Any]) -> tuple[list[Any], str]:
    """Ascending times with those that are missing between equal steps, and a note of what was found.

    Times whose steps are no multiples of the usual one, or that would more than double, stay as they are.

    >>> evened([0, 1, 2, 5])
    ([0, 1, 2, 3, 4, 5], 'no line for 2 times, the first 3')
    """
    pairs = list(pairwise(times))
    if len(pairs) < 2:
        return list(times), ""
    usual = sorted(after - before for before, after in pairs)[(len(pairs) - 1) // 2]
    ratios = [(after - before) / usual for before, after in pairs]
    counts = [max(1, round(ratio)) for ratio in ratios]
    off = [i for i, ratio in enumerate(ratios) if abs(ratio - counts[i]) > TOLERANCE]
    if sum(counts) - len(counts) > len(times):
        off = off or [ratios.index(max(ratios))]
    if off:
        before, after = pairs[off[0]]
        return list(times), (
            f"times are not at equal steps, the first {before} and {after} where the usual step is {usual}, and were "
            "taken as they follow one another"
        )
    full = [_between(*pair, i, count) for pair, count in zip(pairs, counts, strict=True) for i in range(count)]
    full.append(times[-1])
    if len(full) == len(times):
        return full, ""
    missing = sorted(set(full) - set(times))
    return full, f"no line for {counted(len(missing), 'time')}, the first {missing[0]}"


def _between(before: Any, after: Any, i: int, count: int) -> Any:
    part = (after - before) * i
    return before + (part // count if isinstance(part, int) else part / count)
