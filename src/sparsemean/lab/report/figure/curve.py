"""The points of one line: mean over seeds, and how far its 95 % interval reaches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Ints
from sparsemean.lab.student import t_quantile


@dataclass(frozen=True, eq=False)
class Curve:
    """Statistics over the seeds at every x.

    Parameters
    ----------
    x
        Places on the horizontal axis, ascending.
    mean
        Mean over the seeds; infinite where at least one seed diverged.
    margin
        Half the width of the 95 % interval of the mean: by Student's t over the seeds, 4.3 standard errors for three of
        them; two standard errors where each row brings its own. NaN where there is only one seed.
    seeds
        Number of seeds.
    lost
        How many of them diverged.
    """

    x: Doubles
    mean: Doubles
    margin: Doubles
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
        return Curve(self.x[kept], self.mean[kept], self.margin[kept], self.seeds[kept], self.lost[kept])


def curve(x: npt.ArrayLike, y: npt.ArrayLike, own_error: npt.ArrayLike | None = None) -> Curve:
    """Pool the rows of one line: one point for all rows whose x agree to nine digits.

    Parameters
    ----------
    x, y
        One entry per row. Rows without y (NaN) are left out; an infinite y is a seed that diverged.
    own_error
        Each row's own standard error, where a row is a mean of many trials: two of these replace the scatter of rows.

    Examples
    --------
    >>> line = curve([0, 1, 0, 1], [1.0, 5.0, 3.0, 5.0])
    >>> line.x.tolist(), line.mean.tolist(), line.margin.round(1).tolist()
    ([0.0, 1.0], [2.0, 5.0], [12.7, 0.0])
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
        quantile = {count: t_quantile(count) for count in set(seeds.tolist()) if count > 1}
        margin = standard_error * np.array([quantile.get(count, math.nan) for count in seeds.tolist()])
    if own is not None and np.all(np.isfinite(own)):
        margin = 2 * np.sqrt(np.bincount(group, own**2, len(points))) / np.maximum(seeds, 1)
    mean[lost > 0] = math.inf
    margin[lost > 0] = math.nan
    return Curve(points, mean, margin, seeds.astype(np.int64), lost)
