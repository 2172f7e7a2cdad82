"""A comparison of schemes on the same vectors at the same budget, and which of them to recommend."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sparsemean.lab.compare.budget import ORACLE, Budget
from sparsemean.lab.compare.correlation import VectorCorrelation
from sparsemean.lab.compare.result import Result
from sparsemean.schemes import AUTO, SIZELESS, names

OTHER_USE = ("-ratio", "-shrunk")
"""Endings of names of schemes that are made for something else: unequal weights, and monitoring alone."""
NOTHING = 1e-10
"""Errors below this count as none, and as all alike: a distance of 1e-5 of the vectors' length."""
SAME, WORTH_A_BIAS = 0.03, 0.1
"""Errors that differ by two standard errors at the most are taken as the same, but not where they differ by more than
this part; a biased scheme has to err less by more than the second."""
ROUNDING = 1e-6
PRECISE, ENOUGH = 0.05, 6
"""Which part of an error two standard errors of it should be at the most, as told by at least so many seeds."""


@dataclass(frozen=True)
class Comparison:
    """All results, sorted by their error in the steady state.

    Parameters
    ----------
    results
        One per scheme.
    correlation
        Of the vectors, between nodes and between rounds.
    rounds, nodes, dim, seeds, budget
        What was compared, and how often each scheme was played at least.
    left_out
        Names of the schemes too large for the budget.
    warmup
        How many rounds come before the steady state.
    zero_error, steady_zero_error
        The error of answering 0, over all rounds and in the steady state.
    concentration
        Which part of a vector's energy the largest entries hold, as many of them as rand-k sends.
    complete
        False where it was stopped before all was played.
    """

    results: tuple[Result, ...]
    correlation: VectorCorrelation
    rounds: int
    nodes: int
    dim: int
    seeds: int
    budget: Budget
    left_out: tuple[str, ...]
    warmup: int
    zero_error: float
    steady_zero_error: float
    concentration: float
    complete: bool = True

    @cached_property
    def choices(self) -> tuple[Result, ...]:
        """Those that may be recommended.

        Not one that is told the true correlation, is made for another use, diverges, or is over the budget; nor one
        that errs more than answering 0 does. Whole vectors compress only where bytes are counted.
        """
        return tuple(filter(self._is_choice, self.results))

    def _is_choice(self, result: Result) -> bool:
        whole = result.name in SIZELESS and self.budget.bytes is None
        told = result.name == ORACLE or result.name.endswith(OTHER_USE)
        useful = result.steady < max(self.steady_zero_error, NOTHING) and math.isfinite(result.nmse)
        return useful and not (whole or told or result.diverges or result.over_budget)

    @cached_property
    def recommended(self) -> Result | None:
        """The one to use: of those that err as little as the best in the steady state, the simplest unbiased one."""
        return self.best_of(self.choices)

    @staticmethod
    def best_of(among: Iterable[Result]) -> Result | None:
        """The same of these alone."""
        ranked = sorted(among, key=lambda result: result.steady)
        unbiased = [result for result in ranked if result.unbiased]
        if unbiased and as_good(unbiased[0], ranked[0], WORTH_A_BIAS):
            ranked = unbiased
        tied = [result for result in ranked if as_good(result, ranked[0], SAME)]
        return min(tied, key=_preference, default=None)

    @cached_property
    def best_over_all_rounds(self) -> Result | None:
        """The choice with the least error over all rounds; an unbiased one where the recommended one is."""
        unbiased = self.recommended is not None and self.recommended.unbiased
        able = [result for result in self.choices if result.unbiased or not unbiased]
        return min(able, key=lambda result: result.nmse, default=None)

    @property
    def unsettled(self) -> tuple[Result, ...]:
        """Those whose errors matter for the recommendation, and are not known well enough."""
        ranked = sorted(self.choices, key=lambda result: result.steady)
        groups = ranked, [result for result in ranked if result.unbiased]
        wanted = {self.best_of(group) for group in groups if group}
        wanted |= {result for group in groups for result in group if may_be_best(result, group[0])}
        return tuple(result for result in ranked if result in wanted and not _settled(result))

    def to_json(self) -> dict[str, Any]:
        """As plain data. The correlation is called "likeness" there, as in files written by earlier versions.

        Each result has ``nmse_plus_minus`` and ``steady_plus_minus`` as well: two standard errors, what ± means.
        """
        plain = {"likeness" if name == "correlation" else name: value for name, value in asdict(self).items()}
        best = self.recommended
        return {
            **plain,
            "results": [result.to_json() for result in self.results],
            "recommended": None if best is None else best.scheme,
            "code": None if best is None else best.code,
        }


def precise(result: Result) -> bool:
    """Whether two standard errors are a small part of the error; false where a single seed tells nothing of that."""
    return result.steady < NOTHING or 2.0 * result.steady_se <= PRECISE * result.steady


def _settled(result: Result) -> bool:
    return precise(result) and (result.steady < NOTHING or result.seeds >= ENOUGH)


def as_good(result: Result, best: Result, part: float) -> bool:
    """Whether the error cannot be told from that of the best, by two standard errors, nor is larger by such a part."""
    more, doubt = _difference(result, best)
    return result.steady <= NOTHING or more <= min(doubt, part * best.steady) + ROUNDING * best.steady


def may_be_best(result: Result, best: Result) -> bool:
    """Whether more seeds may show that it errs less than the one that is the best so far, or is the best itself."""
    more, doubt = _difference(result, best)
    return result is best or (more <= doubt and doubt > ROUNDING * best.steady)


def _difference(result: Result, best: Result) -> tuple[float, float]:
    """By how much it errs more than the best, seed by seed, and two standard errors of that; 0 of a single seed."""
    both = min(result.seeds, best.seeds)
    differences = np.subtract(result.steady_by_seed[:both], best.steady_by_seed[:both])
    doubt = 2.0 * float(differences.std(ddof=1)) / math.sqrt(both) if both > 1 else 0.0
    return float(differences.mean()), doubt


def _preference(result: Result) -> tuple[bool, bool, bool, int, str]:
    """Unbiased, nothing kept at nodes, no plans; then the place among the names, which go from simple to composed."""
    place = len(names()) if result.name == AUTO else list[str](names()).index(result.name)
    return not result.unbiased, result.node_state, result.planned, place, result.scheme
