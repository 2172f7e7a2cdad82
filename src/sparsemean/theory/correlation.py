"""R1, R2 and their ratio: the correlation between the vectors of different nodes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput

from .arguments import node_count


def correlation(vectors: npt.ArrayLike) -> tuple[float, float]:
    """(R1, R2) = (Σ_i ‖x_i‖², ‖Σ_i x_i‖² − R1) of an (n, d) array (Theorem 1), summed in float64.

    R2 = 2 Σ_{i<l} ⟨x_i, x_l⟩; the ratio R2/R1 lies in ``ratio_range(n)``.

    >>> correlation([[1.0, 0.0], [1.0, 0.0]])
    (2.0, 2.0)
    """
    x = np.asarray(vectors)
    if x.ndim != 2 or x.size == 0:
        raise InvalidInput(f"vectors must be a non-empty (nodes, coordinates) array, not of shape {x.shape}")
    if x.dtype.kind not in "biuf":
        raise InvalidInput(f"vectors must be real numbers, not {x.dtype}")
    if not np.isfinite(x).all():
        raise InvalidInput("vectors hold NaN or infinity; remove or replace these values")
    with np.errstate(over="ignore", under="ignore"):
        rows = np.einsum("ij,ij->i", x, x, dtype=np.float64, casting="same_kind")
        total = x.sum(axis=0, dtype=np.float64)
        r1, both = float(rows.sum()), float(np.sum(total * total))
    if not (np.isfinite(r1) and np.isfinite(both)):
        raise InvalidInput("the squares of vectors overflow; scale them down")
    return r1, both - r1


def ratio_range(n: int) -> tuple[float, float]:
    """[−1, n − 1], in which R2/R1 always lies (Theorem 2): the vectors sum to zero, or are all equal.

    >>> ratio_range(10)
    (-1.0, 9.0)
    """
    return -1.0, node_count(n) - 1.0
