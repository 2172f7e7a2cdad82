"""One check that a claim rests on: a number with its band over seeds, and the limit that it should keep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsemean.lab.numbers import page_number
from sparsemean.lab.student import t_quantile

WANTED = {"<": "should be below", ">": "should be above", "=": "should be", "not <": "should not be clearly below"}
WANTED |= {"≤": "should be at most", "≥": "should be at least"}
"""The relations of a check, in words."""


@dataclass(frozen=True)
class Check:
    """A number that should be ``relation`` ``limit``.

    Parameters
    ----------
    what
        What the number is, for people.
    value, low, high
        Mean over seeds, and the ends of its 95 % interval by Student's t: ± 4.3 standard errors for three seeds.
    relation
        "<", ">", "=", "≤", "≥" or "not <".
    limit
        What the number is compared with.
    """

    what: str
    value: float
    low: float
    high: float
    relation: str
    limit: float

    @property
    def holds(self) -> bool | None:
        """True or False where the whole band is on one side of the limit, else None.

        "not <" is what is left where a "<" does not hold clearly; "=" is that the band contains the limit; "≤" and "≥"
        are for bounds that numbers without noise may reach, rounding aside.
        """
        if self.relation == "not <":
            return not self.high < self.limit
        if self.relation == "<":
            return True if self.high < self.limit else False if self.low >= self.limit else None
        if self.relation == ">":
            return True if self.low > self.limit else False if self.high <= self.limit else None
        near = 1e-9 * max(1.0, abs(self.limit))
        if self.relation in ("≤", "≥"):
            return self.value <= self.limit + near if self.relation == "≤" else self.value >= self.limit - near
        return self.low - near <= self.limit <= self.high + near

    @property
    def margin(self) -> float:
        """How far the value is on the right side of the limit, in a scale that compares checks: below 0 is wrong."""
        if self.relation == "=":
            return 0.0 if self.holds else -1.0
        sign = -1.0 if self.relation in ("<", "≤") else 1.0
        if self.value > 0 and self.limit > 0:
            return sign * (math.log(self.value) - math.log(self.limit)) if math.isfinite(self.value) else sign * 1e9
        return sign * (self.value - self.limit)

    @property
    def sentence(self) -> str:
        """For people.

        >>> Check("error of a over b", 0.25, 0.2, 0.3, "<", 1.0).sentence
        'error of a over b is 0.25 (0.2 to 0.3), and should be below 1'
        """
        band = "" if self.low == self.high else f" ({page_number(self.low)} to {page_number(self.high)})"
        return f"{self.what} is {page_number(self.value)}{band}, and {WANTED[self.relation]} {page_number(self.limit)}"

    def __str__(self) -> str:
        """On one line, with the answer.

        >>> str(Check("error of a over b", 0.25, 0.2, 0.3, "<", 1.0))
        'error of a over b: 0.25 [0.2, 0.3] < 1: yes'
        """
        band = "" if self.low == self.high else f" [{self.low:.3g}, {self.high:.3g}]"
        answer = {True: "yes", False: "no", None: "unclear"}[self.holds]
        return f"{self.what}: {self.value:.3g}{band} {self.relation} {self.limit:.3g}: {answer}"


def of_values(what: str, values: Sequence[float], relation: str, limit: float) -> Check:
    """From one number per seed.

    >>> of_values("toy", [1.0, 3.0], "<", 5.0)
    Check(what='toy', value=2.0, low=-10.706..., high=14.706..., relation='<', limit=5.0)
    """
    return Check(what, *_band(np.asarray(values, np.float64)), relation, limit)


def of_factors(what: str, factors: Sequence[float], relation: str, limit: float) -> Check:
    """From one positive factor per seed, whose logarithms are averaged.

    >>> str(of_factors("toy", [0.1, 1.0, 10.0], "<", 1.0))
    'toy: 1 [0.00328, 305] < 1: unclear'
    """
    given = np.asarray(factors, np.float64)
    if np.all((given > 0) & np.isfinite(given)):
        value, low, high = np.exp(_band(np.log(given))).tolist()
        return Check(what, value, low, high, relation, limit)
    return Check(what, float(np.median(given)), float(given.min()), float(given.max()), relation, limit)


def of_number(what: str, number: float, relation: str, limit: float) -> Check:
    """From a number without a band."""
    return Check(what, number, number, number, relation, limit)


def _band(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float, float]:
    if not np.all(np.isfinite(values)):
        return float(np.median(values)), float(values.min()), float(values.max())
    mean = float(values.mean())
    if len(values) < 2:
        return mean, mean, mean
    reach = t_quantile(len(values)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean, mean - reach, mean + reach
