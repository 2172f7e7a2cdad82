"""Lloyd–Max quantisers of the standard normal distribution: the levels with the least squared error for b bits."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles
from sparsemean.kernels.bit_stream import Singles

UNIT = 2.0**-12

# The upper half of the levels in units of 2⁻¹²; the lower half is its mirror image. Part of the wire format.
# fmt: off
_UPPER = (
    (3268,),
    (1855, 6187),
    (1004, 3097, 5505, 8814),
    (526, 1589, 2690, 3860, 5146, 6628, 8475, 11193),
    (270, 811, 1357, 1912, 2478, 3060, 3664, 4296, 4964, 5678, 6456, 7321, 8310, 9493, 11023, 13356),
    (
        137, 411, 685, 961, 1238, 1517, 1798, 2082, 2370, 2661, 2957, 3258, 3565, 3880, 4201, 4532, 4873, 5226, 5592,
        5973, 6373, 6794, 7240, 7717, 8231, 8793, 9417, 10122, 10946, 11950, 13273, 15336,
    ),
    (
        69, 207, 345, 483, 621, 760, 898, 1038, 1177, 1317, 1458, 1599, 1740, 1883, 2026, 2170, 2315, 2461, 2608,
        2756, 2905, 3056, 3208, 3361, 3516, 3673, 3832, 3992, 4155, 4319, 4486, 4656, 4828, 5004, 5182, 5364, 5549,
        5738, 5932, 6129, 6332, 6540, 6754, 6974, 7201, 7436, 7679, 7932, 8194, 8469, 8757, 9060, 9381, 9722, 10088,
        10482, 10911, 11385, 11915, 12522, 13238, 14121, 15298, 17161,
    ),
    (
        35, 104, 173, 242, 311, 381, 450, 519, 589, 658, 728, 797, 867, 937, 1007, 1077, 1147, 1217, 1287, 1357, 1428,
        1499, 1570, 1640, 1712, 1783, 1854, 1926, 1998, 2070, 2142, 2215, 2288, 2361, 2434, 2508, 2581, 2655, 2730,
        2804, 2879, 2955, 3030, 3106, 3183, 3259, 3336, 3414, 3492, 3570, 3649, 3728, 3808, 3888, 3969, 4050, 4131,
        4214, 4296, 4380, 4464, 4549, 4634, 4720, 4807, 4894, 4982, 5071, 5161, 5251, 5343, 5435, 5528, 5623, 5718,
        5814, 5911, 6010, 6110, 6210, 6313, 6416, 6521, 6627, 6735, 6844, 6955, 7068, 7183, 7299, 7418, 7538, 7661,
        7786, 7914, 8044, 8177, 8313, 8452, 8594, 8740, 8890, 9044, 9202, 9365, 9533, 9706, 9886, 10072, 10265, 10466,
        10676, 10896, 11127, 11370, 11627, 11901, 12193, 12508, 12850, 13224, 13639, 14107, 14646, 15285, 16079,
        17148, 18856,
    ),
)
# fmt: on

_DISTORTION = (
    *(0.3633802276, 0.1174818519, 0.0345477627, 0.0095010097),
    *(0.0025046713, 0.0006442421, 0.0001634808, 0.0000411878),
)


def distortion(bits: npt.ArrayLike) -> Doubles:
    """D = 1 − E[ZQ]²/E[Q²] of a standard normal Z and its level Q; for the best levels that is E(Z − Q)².

    Where bits are not whole, that part of the numbers has a bit more.

    >>> distortion([1, 1.5, 2])
    array([0.36338023, 0.24043104, 0.11748185])
    """
    return np.interp(np.asarray(bits, np.float64), np.arange(1.0, 9.0), _DISTORTION)


@cache
def centroids(bits: int) -> Singles:
    """The 2^bits levels, ascending.

    >>> centroids(1), centroids(2)[2:] * 4096
    (array([-0.79785156,  0.79785156], dtype=float32), array([1855., 6187.], dtype=float32))
    """
    upper = np.array(_UPPER[bits - 1], np.float32) * np.float32(UNIT)
    return _fixed(np.concatenate([-upper[::-1], upper]))


@cache
def thresholds(bits: int) -> Singles:
    """The 2^bits − 1 midpoints of neighbouring levels; the code of a number is how many of them lie below it."""
    levels = centroids(bits)
    return _fixed((levels[1:] + levels[:-1]) * np.float32(0.5))


def _fixed(levels: Singles) -> Singles:
    levels.flags.writeable = False
    return levels
