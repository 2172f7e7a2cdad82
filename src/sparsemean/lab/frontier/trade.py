"""The trade between error and bytes in one sentence: the knee of the front, its cheap end, and the dense means."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sparsemean.lab.frontier.frontier import Frontier, Point
from sparsemean.lab.frontier.sweep import DENSE
from sparsemean.lab.numbers import page_number


def trade(frontier: Frontier) -> str:
    """Name the knee of the front of unbiased schemes, and what there is for fewer and for more bytes."""
    if not frontier.points:
        return "Nothing is finished yet."
    useful = [point for point in frontier.unbiased_front if point.nmse < frontier.zero_error]
    if not useful:
        return "No unbiased scheme is better than answering 0 within these budgets; give larger ones."
    if len(useful) == 1:
        return f"Only {described(useful[0])} is better than answering 0 and not beaten."
    knee = useful[knee_of([(point.bytes_per_node, point.nmse) for point in useful])]
    words = [f"The knee of the front is {described(knee)}"]
    if knee != useful[0]:
        words.append(f"the cheapest that is better than answering 0 is {described(useful[0])}")
    dense = [point for point in frontier.points if point.scheme in DENSE and point not in (knee, useful[0])]
    dense.sort(key=lambda point: point.bytes_per_node)
    words += [f"dense means: {', '.join(map(described, dense))}"] if dense else []
    return "; ".join(words) + "."


def knee_of(costs: Sequence[tuple[float, float]]) -> int:
    """The index of the point farthest below the straight line from the first to the last, both costs as logarithms.

    Parameters
    ----------
    costs
        The points of a front by ascending first cost, all above 0.

    Examples
    --------
    >>> knee_of([(100, 1e-1), (200, 9e-2), (400, 1e-6), (1600, 9e-7)])
    2
    """
    x = [math.log(first) for first, _ in costs]
    y = [math.log(max(second, 1e-300)) for _, second in costs]
    slope = (y[-1] - y[0]) / (x[-1] - x[0]) if x[-1] > x[0] else 0.0
    return max(range(len(costs)), key=lambda i: y[0] + slope * (x[i] - x[0]) - y[i])


def described(point: Point) -> str:
    """Name, bytes and error.

    >>> described(Point("identity int8", None, 4000, 4100.0, 1.23e-6, 0.0, None, True, False, False))
    'identity int8 (4.1 KB, 1.2·10⁻⁶)'
    """
    return f"{point.scheme} ({size(point.bytes_per_node)}, {page_number(float(f'{point.nmse:.2g}'))})"


def size(bytes: float) -> str:
    """Bytes for people, with units of 1000.

    >>> size(464.0), size(4096.0), size(2.5e6), size(999.7)
    ('464 bytes', '4.1 KB', '2.5 MB', '1 KB')
    """
    if round(bytes) < 1000:
        return f"{bytes:.0f} bytes"
    power = min(3, int(math.log10(round(bytes)) / 3 + 1e-9))
    return f"{bytes / 1000**power:.3g} {('', 'KB', 'MB', 'GB')[power]}"
