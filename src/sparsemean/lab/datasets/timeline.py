"""Table lines in the order of their times, with a line of missing numbers wherever one is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparsemean.lab.datasets import cell
from sparsemean.lab.datasets.content import counted
from sparsemean.lab.datasets.reading import Reading
from sparsemean.lab.datasets.rows import Rows
from sparsemean.lab.datasets.time_steps import NONE_MISSING, evened


def in_time_order(rows: Rows, reading: Reading) -> Rows:
    """The lines by time, where a round is made of several and their times stand in columns that are left out."""
    if not (rows.stamps and reading.transpose and reading.steps) or rows.rounds is not None:
        return rows
    times = _times(rows.stamps)
    if times is None:
        strange = next((row for row, stamp in enumerate(rows.stamps) if cell.moment(stamp[0]) is None), 0)
        note = (
            "the order of the lines and gaps between them were not checked, since not all times are as "
            f"2024-01-31T06:00: {rows.place(strange)} has {' '.join(rows.stamps[strange])!r}"
        )
        return replace(rows, notes=[*rows.notes, note])
    lines: dict[Any, list[int]] = {}
    for row, time in enumerate(times):
        lines.setdefault(time, []).append(row)
    notes = [] if times == sorted(times) else ["lines were put in the order of their times"]
    usual = Counter(map(len, lines.values())).most_common(1)[0][0]
    if uneven := next((time for time, same in lines.items() if len(same) != usual), None):
        held = lines[uneven]
        notes.append(
            f"{uneven} stands in {counted(len(held), 'line')}, the first {rows.place(held[0])}, most times in {usual}; "
            "if that is wrong, all after them are shifted"
        )
    full, told = evened(sorted(lines)) if reading.steps > 1 else (sorted(lines), "")
    order = [(row, time) for time in full for row in lines.get(time, [-1] * usual)]
    source = np.array([row for row, _ in order])

    def place(row: int) -> str:
        earlier, time = order[row]
        return f"{time}, which has no line" if earlier < 0 else rows.place(earlier)

    return replace(
        rows,
        numbers=np.where((source < 0)[:, None], np.nan, rows.numbers[source]),
        nodes=None,
        place=place,
        notes=[*rows.notes, *notes, *([told] if told else [])],
        hint=NONE_MISSING if len(full) > len(lines) else "",
    )


def _times(stamps: Sequence[Sequence[str]]) -> list[Any] | None:
    """The moments that all columns tell together, else the first alone; None where they cannot be put in order."""
    for texts in ([" ".join(stamp) for stamp in stamps], [stamp[0] for stamp in stamps]):
        numbers = [cell.number(text) for text in texts]
        if all(number is not None and np.isfinite(number) for number in numbers):
            # Numbers that come again may be hours of several days.
            return numbers if len(set(numbers)) == len(numbers) else None
        moments = [cell.moment(text) for text in texts]
        if None not in moments:
            return moments
    return None
