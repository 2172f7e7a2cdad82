"""Rows of the theory table: a measured number, the value or bound of theory, and whether they agree."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sparsemean.lab.tables import TableRow

LARGEST_Z = 4.0
"""One row in 16,000 lies farther off by chance; the seeds are fixed, so a row that passes goes on passing."""


def equal(statement: str, setting: str, samples: npt.ArrayLike, exact: float) -> TableRow:
    """Whether the mean of the samples is ``exact``, within ``LARGEST_Z`` standard errors.

    >>> equal("lemma-1", "toy", [1.0, 3.0], 2.5)["z"]
    -0.5
    """
    values = np.asarray(samples, np.float64)
    se = float(values.std(ddof=1) / math.sqrt(values.size))
    z = (float(values.mean()) - exact) / se if se > 0 else 0.0 if values[0] == exact else math.inf
    return _row(statement, setting, float(values.mean()), "=", exact, abs(z) <= LARGEST_Z, se, z)


def same(statement: str, setting: str, measured: float, exact: float, tolerance: float = 1e-9) -> TableRow:
    """Whether a number without noise is ``exact``."""
    near = math.isclose(measured, exact, rel_tol=tolerance, abs_tol=tolerance)
    return _row(statement, setting, measured, "=", exact, near)


def at_most(statement: str, setting: str, measured: float, bound: float) -> TableRow:
    """Whether a number stays below a bound, rounding aside."""
    return _row(statement, setting, measured, "≤", bound, measured <= bound + 1e-9 * abs(bound))


def at_least(statement: str, setting: str, measured: float, bound: float) -> TableRow:
    """Whether a number stays above a bound, rounding aside."""
    return _row(statement, setting, measured, "≥", bound, measured >= bound - 1e-9 * abs(bound))


def _row(
    statement: str,
    setting: str,
    measured: float,
    relation: str,
    exact: float,
    passed: bool,
    se: float | None = None,
    z: float | None = None,
) -> TableRow:
    number: TableRow = {"measured": float(measured), "se": se, "relation": relation, "exact": exact, "z": z}
    return {"statement": statement, "setting": setting, **number, "passed": "yes" if passed else "no"}
