"""Small populations of values at a coordinate, with the definitions of what formulas are about, in fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from math import prod

POPULATIONS = [
    [Fraction(v) for v in values] for values in ((1, -2, 4, 7), (3, 3, 0, -1, 5), (0, 0, 0, 9, 1, 2), (2, 2, 2, 2, 2))
]


def symmetric_mean(x: Sequence[Fraction], powers: Sequence[int]) -> Fraction:
    """The mean of x_i^a x_j^b … over distinct i, j, …"""
    terms = [prod(v**power for v, power in zip(some, powers, strict=True)) for some in permutations(x, len(powers))]
    return Fraction(sum(terms)) / len(terms)


def polykays(x: Sequence[Fraction]) -> list[Fraction]:
    """K4, K31, K22, K211 and K1111 (Tukey, 1950), of at least four values."""
    b4, b31, b22, b211, b1111 = (symmetric_mean(x, p) for p in ((4,), (3, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1)))
    return [
        b4 - 4 * b31 - 3 * b22 + 12 * b211 - 6 * b1111,
        b31 - 3 * b211 + 2 * b1111,
        b22 - 2 * b211 + b1111,
        b211 - b1111,
        b1111,
    ]


def mean_and_variance(x: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
    """With divisor n − 1; 0 for a single value."""
    mean = sum(x, Fraction(0)) / len(x)
    return mean, sum((v - mean) ** 2 for v in x) / Fraction(max(len(x) - 1, 1))
