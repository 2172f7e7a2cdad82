"""Estimates of the error: unbiased given the counts, by enumeration of every draw of tiny rounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations, permutations, product
from typing import Any, TypeAlias

import numpy as np
import pytest

from sparsemean.theory import CountLaw, error_coefficients
from sparsemean.theory.forms import Form, actual_form, per_r1_r2, plug_in_form, within_form
from sparsemean.theory.within import decoding

Draws: TypeAlias = list[np.ndarray]
"""Every outcome, equally likely: who sends what, (n, d)."""


def independent(n: int, d: int, k: int) -> Iterator[np.ndarray]:
    for chosen in product(combinations(range(d), k), repeat=n):
        sent = np.zeros((n, d), bool)
        for row, mine in zip(sent, chosen, strict=True):
            row[list(mine)] = True
        yield sent


def balanced(n: int, slots: int, d: int, k: int) -> Iterator[np.ndarray]:
    """Runs of k places of one order of the coordinates, in any order of the slots, of which the first n came."""
    for order, positions in product(permutations(range(d)), permutations(range(slots), n)):
        sent = np.zeros((n, d), bool)
        for row, position in zip(sent, positions, strict=True):
            row[[order[(position * k + i) % d] for i in range(k)]] = True
        yield sent


CASES: dict[str, tuple[int, float, int | None, Callable[[], Iterator[np.ndarray]]]] = {
    "independent": (3, 0.5, None, lambda: independent(3, 4, 2)),
    "two nodes": (2, 0.6, None, lambda: independent(2, 5, 3)),
    "balanced": (3, 0.5, 3, lambda: balanced(3, 3, 4, 2)),
    "one absent": (3, 0.6, 4, lambda: balanced(3, 4, 5, 3)),
}


def seen(x: np.ndarray, sent: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """N_m, Σ Q − S²/M, Σ x̄² by count, and x̄ of each coordinate."""
    counts, s = sent.sum(axis=0), (sent * x).sum(axis=0)
    mean = s / np.maximum(counts, 1)
    within = float(np.sum((sent * x * x).sum(axis=0) - s * mean))
    by_count = np.array([np.sum(mean[counts == each] ** 2) for each in m])
    return np.array([np.sum(counts == each) for each in m], float), within, by_count, mean


@pytest.mark.parametrize("T", ["one", "max", "avg", 0.7])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_given_the_counts_every_estimate_is_unbiased(case: tuple[int, float, int | None, Any], T: str | float) -> None:
    """The expected error from both forms, and the actual one, in each set of outcomes with the same histogram."""
    n, p, slots, draws = case
    every = list(draws())
    rng, m, law = np.random.default_rng(n), np.arange(n + 1.0), CountLaw(n, p, slots)
    x = 2.0 * rng.normal(size=every[0].shape[1]) + rng.normal(size=every[0].shape)
    (excess, error), mean = decoding(T, law), x.mean(axis=0)
    exact = error.on_spread * x.var(axis=0, ddof=1).sum() + error.on_mean * (mean**2).sum()
    off, actual = defaultdict(list), []
    for sent in every:
        number, within, by_count, means = seen(x, sent, m)
        happened = np.sum(((1.0 + excess[sent.sum(axis=0)]) * means - mean) ** 2)
        actual.append(happened)
        if number @ np.maximum(m - 1.0, 0.0) == 0.0:
            continue  # nobody met, so that nothing is known of the spread
        forms = (form(error, n, m, number) for form in (within_form, plug_in_form))
        stated = [float(form.of(within, by_count)) - exact for form in forms]
        predicted = actual_form(excess, n, m, number).of(within, by_count)
        off[tuple(number)].append([*stated, float(predicted) - happened])
    assert np.mean(actual) == pytest.approx(exact, rel=1e-12)
    assert len(off) > 1 or slots == n  # else the counts were no matter
    for histogram, rows in off.items():
        np.testing.assert_allclose(np.mean(rows, axis=0), 0.0, atol=1e-12 * exact * 10, err_msg=str(histogram))


@pytest.mark.parametrize(("n", "share", "slots"), [(1, 0.3, None), (2, 0.5, None), (7, 0.3, 9), (30, 0.1, None)])
@pytest.mark.parametrize("T", ["one", "max", -0.4])
def test_the_coefficients_are_those_of_theorem_1(n: int, share: float, slots: int | None, T: str | float) -> None:
    own, cross = per_r1_r2(decoding(T, CountLaw(n, share, slots)).error, n)
    expected = np.array(error_coefficients(T, n, share, slots=slots)) / n**2
    assert float(own) == pytest.approx(expected[0], rel=1e-12)
    assert float(cross) == pytest.approx(expected[1] if n > 1 else 0.0, rel=1e-12, abs=1e-13 * float(own))


def test_blocks_are_handled_as_each_alone() -> None:
    rng, m = np.random.default_rng(0), np.arange(6.0)
    number, n = rng.integers(1, 9, (6, 3)).astype(float), np.array([5.0, 6.0, 7.0])
    laws = [CountLaw(int(each), 0.3) for each in n]
    errors, excess = (
        [decoding("avg", law).error for law in laws],
        np.array([decoding("avg", law).excess[:6] for law in laws]).T,
    )
    together = type(errors[0])(*np.array(errors).T)
    for form in (within_form, plug_in_form):
        every = form(together, n, m, number)
        for b, error in enumerate(errors):
            _same(every, b, form(error, n[b], m, number[:, b]))
    every = actual_form(excess, n, m, number)
    for b in range(3):
        _same(every, b, actual_form(excess[:, b], n[b], m, number[:, b]))


def _same(every: Form, block: int, one: Form) -> None:
    assert np.asarray(every.on_spread)[block] == pytest.approx(one.on_spread, rel=1e-13)
    np.testing.assert_allclose(every.on_means[:, block], one.on_means, rtol=1e-13, atol=1e-15)
