"""The points of one line: mean and standard error over seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Ints


@dataclass(frozen=True, eq=False)
class Curve:
    """Statistics over the seeds at every x.

    Parameters
    ----------
    x
        Places on the horizontal axis, ascending.
    mean
        Mean over the seeds; infinite where at least one seed diverged.
    error
        Standard error of the mean; NaN where there is only one seed.
    seeds
        Number of seeds.
    lost
        How many of them diverged.
    """

    x: Doubles
    mean: Doubles
    error: Doubles
    seeds: Ints
    lost: Ints

    @property
    def finite_means(self) -> Doubles:
        """The means that can be drawn."""
        values: Doubles = self.mean[np.isfinite(self.mean)]
        return values

    def thinned(self, points: int) -> Curve:
        """At most so many points, evenly spaced, the first and the last among them."""
        if len(self.x) <= points:
            return self
        kept = np.unique(np.linspace(0, len(self.x) - 1, points).round().astype(np.int64))
        return Curve(self.x[kept], self.mean[kept], self.error[kept], self.seeds[kept], self.lost[kept])


def curve(x: npt.ArrayLike, y: npt.ArrayLike, own_error: npt.ArrayLike | None = None) -> Curve:
    """Pool the rows of one line: one point for all rows whose x agree to nine digits.

    Parameters
    ----------
    x, y
        One entry per row. Rows without y (NaN) are left out; an infinite y is a seed that diverged.
    own_error
        Each row's own standard error, where a row is a mean of many trials. It then replaces the scatter between rows.

    Examples
    --------
    >>> line = curve([0, 1, 0, 1], [1.0, 5.0, 3.0, 5.0])
    >>> line.x.tolist(), line.mean.tolist(), line.error.tolist()
    ([0.0, 1.0], [2.0, 5.0], [1.0, 0.0])
    """
    places, values = np.asarray(x, np.float64), np.asarray(y, np.float64)
    known = np.isfinite(places) & ~np.isnan(values)
    places, values = np.array([float(f"{place:.9g}") for place in places[known]]), values[known]
    own = None if own_error is None else np.asarray(own_error, np.float64)[known]
    points, group = np.unique(places, return_inverse=True)
    finite = np.isfinite(values)
    held = np.where(finite, values, 0.0)
    seeds = np.bincount(group, minlength=len(points))
    lost = np.bincount(group, ~finite, len(points)).astype(np.int64)
    with np.errstate(over="ignore", invalid="ignore"):  # finite, yet near the largest number there is
        mean = np.bincount(group, held, len(points)) / np.maximum(seeds, 1)
        squares = np.bincount(group, (held - mean[group]) ** 2, len(points))
        standard_error = np.sqrt(squares / np.maximum(seeds - 1, 1) / np.maximum(seeds, 1))
    standard_error[seeds < 2] = math.nan
    if own is not None and np.all(np.isfinite(own)):
        standard_error = np.sqrt(np.bincount(group, own**2, len(points))) / np.maximum(seeds, 1)
    mean[lost > 0] = math.inf
    standard_error[lost > 0] = math.nan
    return Curve(points, mean, standard_error, seeds.astype(np.int64), lost)
