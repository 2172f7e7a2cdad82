"""Changes between two records: ratios of ratios, since the two may come from different machines."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sparsemean.lab.bench.measurement import Measurement
from sparsemean.lab.bench.record import BenchRecord

NOISE = 1.1  # times as fast: smaller changes come and go by themselves


@dataclass(frozen=True)
class SpeedChange:
    """How many times as fast as before a measurement is, relative to its baselines.

    Parameters
    ----------
    label
        What was done, and at which size.
    before, after
        Seconds.
    low, mean, high
        How many times as fast: the least and the most over the baselines, and their geometric mean.
    memory
        Peak memory over that of before; None where unknown.
    """

    label: str
    before: float
    after: float
    low: float
    mean: float
    high: float
    memory: float | None

    @property
    def verdict(self) -> str:
        """Only what every baseline agrees on is a change.

        >>> SpeedChange("", 2.0, 1.0, 1.5, 1.8, 2.1, None).verdict
        'faster'
        >>> SpeedChange("", 1.0, 1.0, 0.8, 1.0, 1.2, None).verdict
        'same'
        """
        if self.low > NOISE:
            return "faster"
        return "slower" if self.high < 1 / NOISE else "same"


def changes(old: BenchRecord, new: BenchRecord) -> list[SpeedChange]:
    """Of rows that both have, the slower ones first."""
    before = {row.label: row for row in old.rows}
    found = [change for row in new.rows if row.label in before for change in _change(before[row.label], row)]
    return sorted(found, key=lambda change: change.mean)


def _change(old: Measurement, new: Measurement) -> list[SpeedChange]:
    shared = [name for name in new.baselines if name in old.baselines]
    times = [new.ratios[name].median / old.ratios[name].median for name in shared]
    times = times or [old.seconds.median / new.seconds.median]  # nothing to compare with but the clock
    mean = math.exp(sum(map(math.log, times)) / len(times))
    memory = new.peak_bytes / old.peak_bytes if new.peak_bytes and old.peak_bytes else None
    return [SpeedChange(new.label, old.seconds.median, new.seconds.median, min(times), mean, max(times), memory)]
