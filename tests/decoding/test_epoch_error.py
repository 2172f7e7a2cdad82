"""How certain the error of a later round of an epoch is: all draws of two nodes enumerated, and rounds of real data."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import ValueName
from sparsemean.decoding.epoch_error import energies, epoch_quality, later_rows, later_spread
from sparsemean.decoding.moment_sample import moment_sample
from sparsemean.decoding.summary import Summary
from sparsemean.decoding.totals import RoundTotals
from sparsemean.lab.weather import load_weather
from sparsemean.payload import Part, Payload
from sparsemean.payload.blocks import Blocks
from sparsemean.sampling import Clock

RNG = np.random.default_rng(5)
CLOCK = Clock(dim=7, k=4, began=0, scheduled=(2,), unscheduled=4)  # 2 of the 4 of U, 2 of the 3 of S
UNSCHEDULED = np.array([[0, 2, 3, 6], [1, 2, 4, 5]])
X, W = RNG.normal(size=(2, 7)) * np.array([[1.0], [2.0]]), np.array([1.0, 2.5])
BLOCKS = Blocks((3, 4))


def draws(node: int) -> list[tuple[list[int], list[int]]]:
    """All that a node may send of U and of S, equally likely."""
    of_u = UNSCHEDULED[node].tolist()
    of_s = [j for j in range(7) if j not in of_u]
    return [(list(u), list(s)) for u in combinations(of_u, 2) for s in combinations(of_s, 2)]


def parts(node: int, sent: tuple[list[int], list[int]]) -> list[Part]:
    scales = (2.0, 1.5)
    return [Part(np.array(at), X[node, at], scale) for at, scale in zip(sent, scales, strict=True)]


def totals(lo: int = 0, hi: int = 7, blocks: Blocks = BLOCKS) -> RoundTotals:
    return RoundTotals(blocks.within(lo, hi), True, 4, moment_sample(blocks, lo, hi), epochs=True)


def test_variances_are_those_of_all_draws() -> None:
    """Exactly for the estimate; the actual error's but for what coordinates of one node have to do with each other."""
    told, happened, off = [], [], [np.empty((0, 7))] * 2
    for node in (0, 1):
        drawn = [Payload(tuple(parts(node, sent))).dense(7) for sent in draws(node)]
        off[node] = W[node] * (np.array(drawn) - X[node])
    for first, second in product(*map(draws, (0, 1))):
        sums = totals()
        for node, sent in enumerate((first, second)):
            sums.add(np.full(2, W[node]), parts(node, sent), 2, energies=later_rows(0, 1))
        summary, weight = Summary.of(sums, np.zeros(0)), np.full(2, W.sum())
        found = epoch_quality(summary, (CLOCK,), weight)
        spread = later_spread(summary, list(energies(summary, (CLOCK,))), weight)
        happened.append(np.sum((sums.sums / W.sum() - W @ X / W.sum()) ** 2))
        assert found.error is not None
        assert found.error_se is not None
        told.append((found.error, found.error_se**2, spread.of_gap))
        assert found.actual == found.error
    error, variance, gap = np.array(told).T
    assert error.mean() == pytest.approx(np.mean(happened), rel=1e-10)
    assert variance.mean() == pytest.approx(error.var(), rel=1e-10)
    one, other = (np.cov(each.T, bias=True) for each in off)
    left_out = 4.0 * (np.sum(one * other) - np.sum(np.diag(one) * np.diag(other))) / W.sum() ** 4
    assert gap.mean() + left_out == pytest.approx(np.var(np.array(happened) - error), rel=1e-10)


def test_ranges_and_halves_of_the_nodes_add_up() -> None:
    blocks = Blocks((5000, 9000))
    whole, halves = totals(0, 14000, blocks), [totals(0, 14000, blocks) for _ in range(2)]
    ranges = [(0, 4096), (4096, 14000)]
    cut = [totals(lo, hi, blocks) for lo, hi in ranges]
    for node in range(4):
        at, y = np.sort(RNG.choice(14000, 300, replace=False)), RNG.normal(size=300)
        weight = np.array([1.0, 0.0]) if node == 3 else np.ones(2)
        for sums in (whole, halves[node % 2]):
            sums.add(weight, [Part(at, y, 3.0, noise=0.1)], 2, energies=[3])
        for sums, (lo, hi) in zip(cut, ranges, strict=True):
            here = (at >= lo) & (at < hi)
            sums.add(weight, [Part(at[here] - lo, y[here], 3.0, noise=0.1)], 2, energies=[3])
    halves[0].merge(halves[1])
    np.testing.assert_allclose(halves[0].later.sums(), whole.later.sums(), rtol=1e-12)
    np.testing.assert_allclose(sum(each.later.sums() for each in cut), whole.later.sums(), rtol=1e-12)
    assert np.all(whole.later.sums()[3:] > 0)


@pytest.mark.parametrize("values", ["float64", "int4"])
def test_intervals_hold_the_actual_error_of_later_rounds(values: ValueName) -> None:
    """Weather of 12 stations that stays, rounds 2 to 4 of 20 epochs: 95 % intervals cover 90 to 100 %."""
    vectors = load_weather().vectors.astype(float)[20][:12]
    scheme = sm.Scheme(sm.RandK(18, draw=sm.Epochs(ratio=2.0, restart=False)), memory=sm.PerNode(), values=values)
    held, off = [], []
    for seed in range(20):
        run = sm.Run(scheme, vectors.shape[1], seed=seed)
        for each in sm.simulate(run, np.broadcast_to(vectors, (4, *vectors.shape)))[1:]:
            assert each.actual_error_interval is not None
            assert each.error is not None
            assert each.error_se is not None
            happened = float(np.sum((each.mean - vectors.mean(axis=0)) ** 2))
            low, high = each.actual_error_interval
            held.append(low <= happened <= high)
            off.append((each.error_se / each.error, (happened - each.error) / each.error))
    assert np.mean(held) >= 0.90
    assert np.mean(np.array(off)[:, 0]) < 0.5  # so that it says something
