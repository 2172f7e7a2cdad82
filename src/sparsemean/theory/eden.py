"""The error of values that are rotated at random and rounded to the best levels of a normal distribution (EDEN)."""

from __future__ import annotations

from sparsemean.errors import InvalidInput
from sparsemean.kernels.lloyd_max import distortion


def eden_error(bits: float) -> float:
    """E‖x̂ − x‖²/‖x‖² of a vector whose values travel as "eden-b": D/(1 − D).

    D is the squared error of the best 2^b levels of a standard normal number. The estimate with the least error, of
    ‖x‖²·D, would be too short by 1 − D; stretched so that it is unbiased, it has this one.

    Parameters
    ----------
    bits
        b, from 1 to 8; where it is not whole, that part of the values has a bit more.

    >>> [round(eden_error(bits), 4) for bits in (1, 1.5, 2, 3, 4)]
    [0.5708, 0.3165, 0.1331, 0.0358, 0.0096]
    """
    if not 1.0 <= bits <= 8.0:
        raise InvalidInput(f"values of eden-b have from 1 to 8 bits, got {bits!r}")
    lost = float(distortion(bits))
    return lost / (1.0 - lost)
