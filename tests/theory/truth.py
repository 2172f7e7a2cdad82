"""Tiny rounds at one coordinate, every outcome with its exact probability: what the formulas are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import TypeAlias

from sparsemean.theory import Weighting

Outcomes: TypeAlias = dict[tuple[int, ...], Fraction]
"""Who sends (0 or 1 for each node that came) → probability."""

Factors: TypeAlias = dict[tuple[int, ...], list[Fraction]]
"""Who sends → what each node's value is multiplied by."""

TABLE = (Fraction(3, 2), Fraction(1, 4), Fraction(5), Fraction(2), Fraction(1, 3), Fraction(7, 3))
MEMBERS = ["one", "max", "avg", Fraction(-4, 5), Fraction(17, 10), TABLE]
SHARES = [
    Fraction(*p) for p in ((1, 12), (1, 6), (1, 5), (1, 4), (1, 3), (2, 5), (1, 2), (7, 12), (3, 4), (11, 12), (1, 1))
]


@cache
def balanced(N: int, p: Fraction, came: tuple[int, ...]) -> Outcomes:
    """⌊Np⌋ or ⌈Np⌉ senders are planned, any subset of the N slots of that size alike; the slots ``came`` are seen."""
    low, found = math.floor(N * p), Outcomes()
    for s, chance in ((low, 1 - (N * p - low)), (low + 1, N * p - low)):
        for senders in combinations(range(N), s) if chance else ():
            sent = tuple(int(slot in senders) for slot in came)
            found[sent] = found.get(sent, Fraction(0)) + chance / math.comb(N, s)
    return found


def independent(n: int, p: Fraction) -> Outcomes:
    return {sent: p ** sum(sent) * (1 - p) ** (n - sum(sent)) for sent in product((0, 1), repeat=n)}


def together(classes: Sequence[Outcomes]) -> Outcomes:
    """Classes drawn independently of each other."""
    found: Outcomes = {(): Fraction(1)}
    for outcomes in classes:
        found = {a + b: x * y for a, x in found.items() for b, y in outcomes.items()}
    return found


def mean(outcomes: Outcomes, value: Callable[[tuple[int, ...]], Fraction | int]) -> Fraction:
    return sum((chance * value(sent) for sent, chance in outcomes.items()), Fraction(0))


def exact_T(T: object, n: int) -> list[Fraction]:
    """T(1), …, T(n)."""
    if isinstance(T, tuple):
        return list(T[:n])
    named = {"one": Fraction(0), "max": Fraction(n - 1), "avg": Fraction(n, 2)}
    ratio = named[T] if isinstance(T, str) else T
    assert isinstance(ratio, Fraction)
    return [1 + ratio * m / max(n - 1, 1) for m in range(n)]


def given(T: object) -> Weighting:
    """T as the library takes it."""
    if isinstance(T, tuple):
        return tuple(map(float, T))
    return float(T) if isinstance(T, Fraction) else T  # type: ignore[return-value]


def mean_inverse(outcomes: Outcomes, T: object, i: int) -> Fraction:
    """E[1/T(M); i sent] = 1/β̄."""

    def inverse(sent: tuple[int, ...]) -> Fraction:
        return 1 / exact_T(T, len(sent))[sum(sent) - 1] if sent[i] else Fraction(0)

    return mean(outcomes, inverse)


def factors(outcomes: Outcomes, n: int, T: object) -> Factors:
    """ξ_i g_i(M)/p_i of every node, in every outcome, g_i(m) = (1/T(m))/E[1/T(M) | i sent], by enumeration."""
    values, scales = exact_T(T, n), [mean_inverse(outcomes, T, i) for i in range(n)]
    return {
        sent: [1 / values[sum(sent) - 1] / scale if xi else Fraction(0) for xi, scale in zip(sent, scales, strict=True)]
        for sent in outcomes
    }


def product_mean(outcomes: Outcomes, factor: Factors, i: int, j: int) -> Fraction:
    """E[f_i f_j]."""
    return mean(outcomes, lambda sent: factor[sent][i] * factor[sent][j])


def vector(n: int, seed: int = 0) -> list[Fraction]:
    """Unlike values with a mean, one for each node."""
    return [Fraction((7 * i * i + 3 * i + 5 * seed) % 11 - 3, 4) for i in range(n)]


def energies(x: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
    """R1 and R2."""
    r1 = sum((v * v for v in x), Fraction(0))
    return r1, sum(x, Fraction(0)) ** 2 - r1


def error(outcomes: Outcomes, factor: Factors, x: Sequence[Fraction], noise: Sequence[Fraction] = ()) -> Fraction:
    """E(estimate − mean)², values being sent as x_i ± noise_i, if any; checks on the way that it is unbiased."""
    n, truth, found = len(x), sum(x, Fraction(0)) / len(x), Fraction(0)
    for signs in product((-1, 1), repeat=len(noise)):
        off = [sign * sigma for sign, sigma in zip(signs, noise, strict=True)] or [Fraction(0)] * n
        seen = [v + e for v, e in zip(x, off, strict=True)]
        estimates = {sent: sum(map(Fraction.__mul__, each, seen), Fraction(0)) / n for sent, each in factor.items()}
        assert sum(chance * estimates[sent] for sent, chance in outcomes.items()) == sum(seen, Fraction(0)) / n
        found += sum((chance * (estimates[sent] - truth) ** 2 for sent, chance in outcomes.items()), Fraction(0))
    return found / (1 << len(noise))
