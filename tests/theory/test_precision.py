"""Every formula against forty digits, for few nodes and for a million."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product

import mpmath as mp
import numpy as np
import pytest

from sparsemean.theory import (
    beta_bar,
    constants,
    error_coefficients,
    feedback_factor,
    gains,
    rand_k_mse,
    spatial_mse,
    weights,
)
from sparsemean.theory.binomial import count_given_sent, pmf

DIGITS = 45
NODES = (1, 2, 3, 10, 100, 1000)
SHARES = (0.003, 0.1, 0.5, 0.97)
MANY = 10**6
TABLE = np.random.default_rng(5).uniform(0.5, 3.0, size=1000)


@cache
def law(n: int, p: float) -> dict[int, mp.mpf]:
    """Binomial(n, p), for large n without the counts whose probability is below 1e-32."""
    with mp.workdps(DIGITS):
        x, mode = mp.mpf(p), min(n, int((n + 1) * p))
        top = mp.binomial(n, mode) * x**mode * (1 - x) ** (n - mode) if n <= 1000 else _top(n, mode, x)
        found, floor = {mode: top}, mp.mpf(10) ** -32 if n > 1000 else mp.mpf(0)
        for step in (1, -1):
            m, value = mode, top
            while 0 <= m + step <= n and value > floor:
                value *= (n - m) * x / ((m + 1) * (1 - x)) if step == 1 else m * (1 - x) / ((n - m + 1) * x)
                m += step
                found[m] = value
        return found


def _top(n: int, m: int, x: mp.mpf) -> mp.mpf:
    log = mp.loggamma(n + 1) - mp.loggamma(m + 1) - mp.loggamma(n - m + 1) + m * mp.log(x) + (n - m) * mp.log1p(-x)
    return mp.exp(log)


def exact_T(T, n: int) -> Callable[[int], mp.mpf]:
    if not isinstance(T, (str, float, int)):
        return lambda m: mp.mpf(float(T[m - 1]))
    named = {"max": mp.mpf(n - 1), "avg": mp.mpf(n) / 2}
    ratio = named[T] if isinstance(T, str) else mp.mpf(T)
    return lambda m: 1 + ratio * (m - 1) / (n - 1) if n > 1 else mp.mpf(1)


class Exact:
    """The definitions, written as in the paper."""

    def __init__(self, T, n: int, p: float) -> None:
        t, x = exact_T(T, n), mp.mpf(p)
        b = {m + 1: v for m, v in law(n - 1, p).items()}
        self.T, self.n, self.p = t, n, x
        self.mean_inverse = sum(v / t(m) for m, v in b.items())
        self.beta = 1 / (x * self.mean_inverse)
        self.a1 = self.beta**2 * x * sum(v / t(m) ** 2 for m, v in b.items()) - 1
        pairs = sum(v * (m - 1) / t(m) ** 2 for m, v in b.items())
        self.a2 = self.beta**2 * x * pairs / (n - 1) - 1 if n > 1 else mp.mpf(0)
        plain = {m: m / (t(m) * self.mean_inverse * n * x) if m else mp.mpf(0) for m in law(n, p)}
        self.feedback = sum(v * (plain[m] - 1) ** 2 for m, v in law(n, p).items())

    def gain(self, m: int) -> mp.mpf:
        return 1 / self.T(m) / self.mean_inverse

    def mse(self, r1: float, r2: float) -> mp.mpf:
        if r2 < 0.0:
            return (self.a1 * mp.mpf(r1) + self.a2 * mp.mpf(r2)) / self.n**2
        shared = mp.mpf(r2) / (self.n - 1)  # the same, where forty digits would cancel
        return (self.a1 * (r1 - shared) + self.n * self.feedback * shared) / self.n**2

    def rounding(self, ratio: float) -> mp.mpf:
        """What T's own last bit does to the error on (nearly) equal vectors: no float formula can be better."""
        return 4e-16 * mp.sqrt(self.feedback) * max(ratio, 0.0) / self.n


def close(value: float, exact: mp.mpf, absolute: float = 0.0) -> bool:
    return bool(abs(mp.mpf(float(value)) - exact) <= 1e-12 * abs(exact) + absolute + 1e-300)


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(DIGITS):
        yield


@pytest.mark.parametrize("n", [*NODES, 10**5, MANY])
@pytest.mark.parametrize("p", [1e-5, 0.01, 0.1, 0.3, 0.5, 0.7])
def test_pmf(n, p):
    exact, found = law(n, p), pmf(n, p)
    bulk = [m for m, v in exact.items() if v > 1e-15]
    assert max(abs(found[m] / exact[m] - 1) for m in bulk) < 2e-13
    assert found.sum() == pytest.approx(1.0, abs=1e-14)
    assert len(found) == n + 1


@pytest.mark.parametrize("n", [0, 1, 5])
def test_pmf_of_certain_events(n):
    assert pmf(n, 0.0).tolist() == [1.0] + [0.0] * n
    assert pmf(n, 1.0).tolist() == [0.0] * n + [1.0]
    assert count_given_sent(n + 1, 1.0).tolist() == [0.0] * (n + 1) + [1.0]


@pytest.mark.parametrize("n", NODES)
@pytest.mark.parametrize("p", SHARES)
@pytest.mark.parametrize("T", ["max", "avg", -0.5, 0.7, 40.0, TABLE])
def test_formulas(n, p, T):
    exact = Exact(T, n, p)
    for m in {1, (n + 1) // 2, n}:
        assert close(gains(T, n, p)[m], exact.gain(m))
    assert gains(T, n, p)[0] == 0.0
    assert close(beta_bar(T, n, p), exact.beta)
    a1, a2 = error_coefficients(T, n, p)
    c1, c2 = constants(T, n, p)
    if n == 1:
        assert close(a1, exact.a1)
        assert (a2, c1, c2) == (0.0, 0.0, 0.0)
        return
    assert close(a1, exact.a1)
    assert close(a2, exact.a2, 4e-16)
    assert close(c1, exact.a1 - (1 / exact.p - 1), 4e-16)
    assert close(c2, -exact.a2, 4e-16)
    assert close(feedback_factor(T, n, p), exact.feedback, exact.rounding(n))
    for ratio in (-1.0, -0.5, 0.0, 0.3, n / 2, n - 1.0):
        assert close(spatial_mse(1.0, ratio, n, p, T), exact.mse(1.0, ratio), exact.rounding(ratio / n))


CONSTANT = ["one", 0.0, lambda m, n: 3.7, np.full(MANY, 0.3)]


@pytest.mark.parametrize(
    ("n", "p", "T"),
    [*product(NODES, SHARES, CONSTANT), *((MANY, p, T) for p, T in zip(SHARES, CONSTANT, strict=True))],
)
def test_constant_T_is_rand_k_to_the_last_bit(n, p, T):
    assert np.all(gains(T, n, p)[1:] == 1.0)
    assert error_coefficients(T, n, p) == ((1.0 - p) / p, 0.0)
    assert constants(T, n, p) == (0.0, 0.0)
    assert close(feedback_factor(T, n, p), (1 / mp.mpf(p) - 1) / n)
    assert spatial_mse(3.0, 0.0, n, p, T) == pytest.approx(rand_k_mse(3.0, n, p), rel=1e-15)
    assert close(rand_k_mse(3.0, n, p), (1 / mp.mpf(p) - 1) * 3 / n**2)


@pytest.mark.parametrize("n", [2, 10, 1000, MANY])
@pytest.mark.parametrize("p", [1e-6, 0.003, 0.5])
def test_max_in_closed_form(n, p):
    """E[1/M | sent] = (1 − (1 − p)ⁿ)/(np), and the error on equal vectors is P(M = 0)/P(M > 0)."""
    nothing = (1 - mp.mpf(p)) ** n
    assert close(beta_bar("max", n, p), n / (1 - nothing))
    assert close(gains("max", n, p)[n], p / (1 - nothing))
    if nothing > 1e-300:
        assert close(feedback_factor("max", n, p), nothing / (1 - nothing))


@pytest.mark.parametrize(("T", "p"), [("avg", 1e-5), (-0.5, 1e-5), ("avg", 0.1), (2.5, 0.01), (-0.5, 0.01)])
def test_a_million_nodes(T, p):
    exact = Exact(T, MANY, p)
    assert close(beta_bar(T, MANY, p), exact.beta)
    a1, a2 = error_coefficients(T, MANY, p)
    assert close(a1, exact.a1)
    assert close(a2, exact.a2, 4e-16)
    assert close(feedback_factor(T, MANY, p), exact.feedback, exact.rounding(MANY))
    for ratio in (-0.5, 2.5, MANY / 2):
        assert close(spatial_mse(1.0, ratio, MANY, p, T), exact.mse(1.0, ratio))


@pytest.mark.parametrize("p", [0.1, 0.6])
def test_ratio_minus_one_is_the_limit(p):
    n = 4
    limit = gains(-1, n, p)
    assert limit[:n].tolist() == [0.0] * n
    assert close(limit[n], 1 / mp.mpf(p) ** (n - 1))
    assert beta_bar(-1, n, p) == 0.0
    assert gains(-1 + 1e-13, n, p) == pytest.approx(limit, rel=1e-8, abs=1e-8)
    a1, a2 = error_coefficients(-1, n, p)
    assert close(a1, 1 / mp.mpf(p) ** n - 1)
    assert close(a2, 1 / mp.mpf(p) ** n - 1)
    assert weights(-1, n)[-1] == 0.0
