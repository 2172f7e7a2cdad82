"""What T may be: the function of the count M by which a received sum is divided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput

from .arguments import finite, node_count

Weighting: TypeAlias = (
    str | float | Callable[[npt.NDArray[np.float64], int], npt.ArrayLike] | Sequence[float] | npt.NDArray[np.float64]
)

FixedWeighting: TypeAlias = str | float | Callable[[npt.NDArray[np.float64], int], npt.ArrayLike] | tuple[float, ...]
"""A weighting that cannot change, and so can be looked up."""

A = TypeVar("A", bound=Any)
"""A NumPy array or a torch tensor: functions of ``A`` serve both, and read nothing back from a tensor's device."""

NAMES = ("one", "max", "avg")


def weights(T: Weighting, n: int) -> npt.NDArray[np.float64]:
    """T(1), ..., T(n) of a member of the Rand-k-Spatial family (Section 3).

    ========================  ==========================================================================
    ``"one"``                 T(m) = 1, plain Rand-k
    ``"max"``                 T(m) = m, best when all vectors are equal
    ``"avg"``                 T(m) = 1 + (n/2)(m − 1)/(n − 1), the paper's default
    a number ρ ≥ −1           T(m) = 1 + ρ(m − 1)/(n − 1), best when R2/R1 = ρ (Theorem 2)
    a callable ``T(m, n)``    of the array m = 1..n
    a table                   entry m − 1 is T(m); at least n entries
    ========================  ==========================================================================

    With one node the names and numbers all mean T = 1. Every T(m) must be finite and positive, in a range of 1e300;
    only ρ = −1 ends in T(n) = 0, which stands for the limit ρ → −1 (``gains``).

    >>> weights("avg", 3).tolist(), weights(-1, 3).tolist()
    ([1.0, 1.75, 2.5], [1.0, 0.5, 0.0])
    """
    n = node_count(n)
    if isinstance(T, str):
        return linear_weights(_named_ratio(T, n), np.arange(n, dtype=np.float64))
    if isinstance(T, (int, float, np.integer, np.floating)):
        ratio = finite(T, "the ratio of T")
        if ratio < -1.0:
            raise InvalidInput(f"the ratio of T must be at least -1, not {ratio!r}; clip it as optimal_ratio does")
        return linear_weights(ratio, np.arange(n, dtype=np.float64))
    if callable(T):
        returned = _numbers(T(np.arange(1.0, n + 1.0), n))
        if returned.shape not in ((), (1,), (n,)):
            raise InvalidInput(f"T(m, n) returned shape {returned.shape} for {n} counts m; return one number for each")
        return _positive(np.broadcast_to(returned, (n,)).copy())
    table = _numbers(T)
    if table.ndim != 1 or len(table) < n:
        raise InvalidInput(
            f"the table of T has shape {table.shape} but {n} nodes take part; "
            f"give one entry for each count 1..n, or a callable T(m, n)"
        )
    return _positive(table[:n].copy())


def linear_weights(ratio: float | A, others: A) -> A:
    """T(m) = 1 + ρ(m − 1)/(n − 1) for m = 1..n, the T that is best when R2/R1 = ρ (Theorem 2); 1 where n = 1.

    Parameters
    ----------
    ratio : float or 0-d tensor
        ρ.
    others : array or tensor
        m − 1 = 0, …, n − 1, as floating-point numbers.

    >>> linear_weights(1.0, np.arange(3.0)).tolist()
    [1.0, 1.5, 2.0]
    """
    return 1.0 + ratio * others / max(len(others) - 1, 1)  # type: ignore[return-value]  # 1.0 + A is no float


def _numbers(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"T is {', '.join(NAMES)}, the ratio R2/R1, a callable T(m, n) or a table of numbers T(1), T(2), …, "
            f"not {values!r}"
        ) from None


def _named_ratio(name: str, n: int) -> float:
    ratios = {"one": 0.0, "max": n - 1.0, "avg": n / 2}
    if name not in ratios:
        raise InvalidInput(f"unknown T {name!r}; use one of {', '.join(NAMES)}, or give the ratio R2/R1 as a number")
    return ratios[name]


def _positive(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if not np.all(np.isfinite(values) & (values > 0.0)):
        m = 1 + int(np.argmin(np.isfinite(values) & (values > 0.0)))
        raise InvalidInput(f"T({m}) = {float(values[m - 1])!r}, but every T(m) must be finite and positive")
    if values.max() * 1e-300 > values.min():
        raise InvalidInput("T spans more than a factor of 1e300; such weights leave out all counts but one")
    return values
