"""Nodes that send different shares: all outcomes of small rounds, one class as before, and the corners."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import product

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean import theory
from sparsemean.errors import InvalidInput
from sparsemean.theory import Weighting, mixed_coefficients, mixed_correlation, mixed_feedback, mixed_gains, mixed_mse


def steep(m, n):
    return np.exp(-np.minimum(m, 600.0))


TABLE = tuple(np.random.default_rng(11).uniform(0.2, 4.0, 9))
MEMBERS = ["one", "max", "avg", -1, -0.8, 0.4, 1.7, TABLE, steep]
ROUNDS = [
    ((1,), (0.3,)),
    ((3,), (0.3,)),
    ((1, 1), (0.5, 1.0)),
    ((1, 2), (0.2, 0.7)),
    ((3, 1), (0.05, 0.9)),
    ((2, 0, 3), (0.3, 0.5, 0.6)),
    ((0, 2, 2), (0.9, 1.0, 0.2)),
    ((2, 3, 1, 3), (0.1, 0.3, 0.5, 0.8)),
    ((1, 1, 1, 1), (0.1, 0.2, 0.6, 0.7)),
    ((2, 2), (0.4, 0.4)),
    ((2, 1), (1.0, 1.0)),
]


def name(value):
    return getattr(value, "__name__", str(value))


def members(nodes: Sequence[int]) -> np.ndarray:
    return np.repeat(np.arange(len(nodes)), nodes)


def outcomes(nodes: Sequence[int], shares: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Who sends a coordinate, as 0/1 of shape (2ⁿ, n), and how likely that is."""
    p = np.repeat(shares, nodes)
    sent = np.array(list(product((0.0, 1.0), repeat=len(p))))
    return sent, np.prod(np.where(sent == 1.0, p, 1.0 - p), axis=1)


def factors(T: Weighting, nodes: Sequence[int], shares: Sequence[float], sent: np.ndarray) -> np.ndarray:
    """ξ_i g_s(M)/p_s for every outcome and node."""
    table = np.array(mixed_gains(T, nodes, shares))
    return np.asarray(sent * table[members(nodes)][:, sent.sum(axis=1).astype(int)].T / np.repeat(shares, nodes))


@pytest.mark.parametrize("T", MEMBERS, ids=name)
@pytest.mark.parametrize(("nodes", "shares"), ROUNDS)
def test_unbiased_with_the_error_of_the_formula(nodes, shares, T):
    sent, chance = outcomes(nodes, shares)
    factor = factors(T, nodes, shares, sent)
    n = sum(nodes)
    assert chance @ factor == pytest.approx(np.ones(n), rel=1e-12)
    x = np.random.default_rng(n).standard_normal((n, 1)) + 0.5
    estimates = factor @ x[:, 0] / n
    error = chance @ (estimates - x.mean()) ** 2
    r1, r2 = mixed_correlation(x, members(nodes), len(nodes))
    own, cross = mixed_coefficients(T, nodes, shares)
    sizes = (np.abs(own) @ np.abs(r1) + np.sum(np.abs(cross) * np.abs(r2))) / n**2
    assert mixed_mse(r1, r2, nodes, shares, T) == pytest.approx(error, rel=1e-12, abs=1e-12 * sizes + 1e-24)
    assert (own @ r1 + np.sum(cross * r2)) / n**2 == pytest.approx(error, rel=1e-12, abs=1e-12 * sizes + 1e-24)
    feedback = chance @ (factor.mean(axis=1) - 1.0) ** 2
    equal = (np.abs(own) @ nodes + np.sum(np.abs(cross) * np.outer(nodes, nodes))) / n**2
    assert mixed_feedback(T, nodes, shares) == pytest.approx(feedback, rel=1e-12, abs=1e-12 * equal + 1e-24)


@pytest.mark.parametrize("T", MEMBERS, ids=name)
@pytest.mark.parametrize(("nodes", "shares"), ROUNDS)
def test_every_coefficient_by_its_definition(nodes, shares, T):
    sent, chance = outcomes(nodes, shares)
    factor, label = factors(T, nodes, shares, sent), members(nodes)
    own, cross = mixed_coefficients(T, nodes, shares)
    second = factor.T @ (chance[:, None] * factor) - 1.0
    wanted_own, wanted_cross = np.zeros_like(own), np.zeros_like(cross)
    for i, l in product(range(len(label)), repeat=2):  # noqa: E741
        if i == l:
            wanted_own[label[i]] = second[i, i]
        else:
            wanted_cross[label[i], label[l]] = second[i, l]
    assert own == pytest.approx(wanted_own, rel=1e-12, abs=1e-14)
    assert cross == pytest.approx(wanted_cross, rel=1e-12, abs=1e-14)
    assert (cross == cross.T).all()


@pytest.mark.parametrize("T", MEMBERS, ids=name)
@pytest.mark.parametrize(("n", "p"), [(1, 0.2), (2, 0.5), (3, 1.0), (9, 0.01), (9, 0.4), (9, 1 - 1e-9)])
def test_one_class_is_the_common_share(n, p, T):
    for nodes, shares in (((n,), (p,)), ((0, n), (0.3, p)), ((n // 2, n - n // 2), (p, p))):
        for g in (g for g, count in zip(mixed_gains(T, nodes, shares), nodes, strict=True) if count):
            assert g == pytest.approx(theory.gains(T, n, p), rel=1e-13, abs=0.0)
        a1, a2 = theory.error_coefficients(T, n, p)
        own, cross = mixed_coefficients(T, nodes, shares)
        counts = np.array(nodes)
        assert own == pytest.approx(a1 * (counts > 0), rel=1e-10, abs=1e-15)
        assert cross == pytest.approx(a2 * (np.outer(counts, counts) > np.diag(counts)), rel=1e-10, abs=1e-15)
        assert mixed_feedback(T, nodes, shares) == pytest.approx(theory.feedback_factor(T, n, p), rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("p", [0.003, 0.1, 0.97])
@pytest.mark.parametrize("T", ["max", "avg", -0.5, 40.0, -1.0, -1 + 1e-15, steep], ids=name)
def test_one_class_of_many(n, p, T):
    a1, a2 = theory.error_coefficients(T, n, p)
    assert mixed_gains(T, [n], [p])[0] == pytest.approx(theory.gains(T, n, p), rel=1e-12 if T == -1 else 1e-13, abs=0.0)
    own, cross = mixed_coefficients(T, [n], [p])
    assert own[0] == pytest.approx(a1, rel=1e-10)
    assert cross[0, 0] == pytest.approx(a2, rel=1e-10)
    for ratio in (-0.7, 0.0, n / 3):
        found, wanted = mixed_mse([2.0], [[2.0 * ratio]], [n], [p], T), theory.spatial_mse(2.0, 2.0 * ratio, n, p, T)
        assert found == pytest.approx(wanted, rel=1e-10, abs=1e-14 * min(a1, 1e300) / n)


@pytest.mark.parametrize("T", ["one", 0.0, lambda m, n: 3.7, [0.3] * 300])
@pytest.mark.parametrize(("nodes", "shares"), [*ROUNDS, ((100, 0, 120, 80), (0.01, 0.5, 0.3, 1.0))])
def test_constant_T_is_rand_k_to_the_last_bit(nodes, shares, T):
    n = sum(nodes)
    for g, count in zip(mixed_gains(T, nodes, shares), nodes, strict=True):
        assert g.tolist() == [0.0] + [float(count > 0)] * n
    own, cross = mixed_coefficients(T, nodes, shares)
    assert own.tolist() == [(1.0 - p) / p * (count > 0) for p, count in zip(shares, nodes, strict=True)]
    assert not cross.any()
    sums = [(1.0 / p - 1.0) * count for p, count in zip(shares, nodes, strict=True)]
    assert mixed_feedback(T, nodes, shares) == pytest.approx(sum(sums) / n**2, rel=1e-13, abs=1e-16)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(0.01, 1.0)), min_size=1, max_size=4).filter(
        lambda found: sum(count for count, _ in found) > 0
    ),
    st.one_of(st.sampled_from(["max", "avg"]), st.floats(-0.95, 20.0)),
)
def test_any_round_is_unbiased(found, T):
    nodes, shares = zip(*found, strict=True)
    sent, chance = outcomes(nodes, shares)
    assert chance @ factors(T, nodes, shares, sent) == pytest.approx(np.ones(sum(nodes)), rel=1e-12)


def test_different_shares_need_different_gains():
    """The gains of the average share would be biased: the law of M depends on who is known to have sent."""
    first, second = mixed_gains("max", [3, 3], [0.1, 0.6])
    common = theory.gains("max", 6, 0.35)
    assert (np.abs(first[1:] / second[1:] - 1.0) > 0.05).all()
    assert (np.abs(first[1:] / common[1:] - 1.0) > 0.01).all()


def test_a_node_that_sends_everything_still_errs():
    """Its values are scaled by a count that the others make random."""
    own, _ = mixed_coefficients("max", [1, 4], [1.0, 0.2])
    assert own[0] > 0.1
    assert mixed_coefficients("one", [1, 4], [1.0, 0.2])[0][0] == 0.0


@pytest.mark.parametrize("T", ["max", "avg", -0.5])
def test_simulated_rounds(T):
    nodes, shares, d, repeats = (12, 6, 2), (0.05, 0.3, 1.0), 5, 20_000
    rng, label, n = np.random.default_rng(7), members(nodes), sum(nodes)
    p = np.repeat(shares, nodes)
    x = rng.standard_normal((n, d)) + 0.4
    table = np.array(mixed_gains(T, nodes, shares))
    estimates = np.empty((repeats, d))
    for j in range(d):
        sent = rng.random((repeats, n)) < p
        estimates[:, j] = (sent * table[label][:, sent.sum(axis=1)].T) @ (x[:, j] / p) / n
    off = estimates - x.mean(axis=0)
    assert (np.abs(off.mean(axis=0)) < 4.5 * off.std(axis=0) / math.sqrt(repeats)).all()
    errors = (off**2).sum(axis=1)
    wanted = mixed_mse(*mixed_correlation(x, label, 3), nodes, shares, T)
    assert abs(errors.mean() - wanted) < 4.5 * errors.std() / math.sqrt(repeats)


@pytest.mark.parametrize(("nodes", "shares"), [((40, 70), (0.02, 0.3)), ((5, 1, 90), (0.9, 1.0, 0.001))])
@pytest.mark.parametrize("T", ["max", 1e-9, -0.999999])
def test_against_forty_digits(nodes, shares, T):
    n = sum(nodes)
    with mp.workdps(45):
        values = [mp.mpf(v) for v in theory.weights(T, n)]

        def law(*without: int) -> list[mp.mpf]:
            found = [mp.mpf(1)]
            for s, p in enumerate(map(mp.mpf, shares)):
                for _ in range(nodes[s] - without.count(s)):
                    found = [(1 - p) * a + p * b for a, b in zip([*found, 0], [0, *found], strict=True)]
            return found

        means = [sum(v / values[m] for m, v in enumerate(law(s))) for s in range(len(nodes))]
        own, cross = mixed_coefficients(T, nodes, shares)
        for s, p in enumerate(map(mp.mpf, shares)):
            second = sum(v / values[m] ** 2 for m, v in enumerate(law(s))) / means[s] ** 2
            # 1/T itself is rounded, which is all that is left where T hardly varies.
            excess = second - 1
            wanted = (1 - p + excess) / p
            assert abs(own[s] - wanted) <= 1e-12 * wanted + 4e-16 * mp.sqrt(excess) / p
            assert mixed_gains(T, nodes, shares)[s][n] == pytest.approx(float(1 / values[-1] / means[s]), rel=1e-13)
            for t in range(s, len(nodes)):
                if s != t or nodes[s] > 1:
                    both = sum(v / values[m + 1] ** 2 for m, v in enumerate(law(s, t))) / means[s] / means[t] - 1
                    assert abs(cross[s, t] - both) <= 1e-12 * abs(both) + 4e-16


@pytest.mark.parametrize("T", ["max", "avg", -0.5, -1])
@pytest.mark.parametrize("shares", [(0.001, 0.1, 0.5), (0.5, 0.5, 0.5), (1e-6, 0.3, 1.0)])
def test_many_nodes(T, shares):
    nodes = (40_000, 30_000, 30_000)
    own, cross = mixed_coefficients(T, nodes, shares)
    gains = mixed_gains(T, nodes, shares)
    assert np.isfinite(gains).all()
    assert not np.isnan(own).any()
    assert not np.isnan(cross).any()
    if T != -1:
        assert own == pytest.approx(1.0 / np.array(shares) - 1.0, rel=1e-2, abs=1e-2)
        assert np.abs(cross).max() < 1e-2
    if shares == (0.5, 0.5, 0.5):
        np.testing.assert_allclose(gains[0], theory.gains(T, sum(nodes), 0.5), rtol=1e-13)
        a1, a2 = theory.error_coefficients(T, sum(nodes), 0.5)
        assert own == pytest.approx(np.full(3, a1), rel=1e-12)
        assert cross == pytest.approx(np.full((3, 3), a2), rel=1e-9)


@pytest.mark.parametrize("T", ["max", -1])
def test_a_million_nodes_quickly(T):
    start = time.process_time()
    mixed_coefficients(T, (500_000, 500_000), (0.1, 0.5))
    assert time.process_time() - start < 10.0  # some 0.1 s; the square of n takes minutes


def test_errors_beyond_any_float_are_infinite():
    T, share = (1.0, 1e-300), 1e-200
    own, cross = mixed_coefficients(T, (1, 1), (share, share))
    assert (own[0], cross[0, 1]) == theory.error_coefficients(T, 2, share) == (math.inf, math.inf)
    assert mixed_mse([1.0, 1.0], np.zeros((2, 2)), (1, 1), (share, share), T) == math.inf
    assert mixed_mse([0.0, 0.0], np.zeros((2, 2)), (1, 1), (share, share), T) == 0.0


def test_ratio_minus_one_is_the_limit():
    nodes, shares = (2, 0, 2), (0.3, 0.5, 0.9)
    everyone = (0.3 * 0.9) ** 2
    first, empty, last = mixed_gains(-1, nodes, shares)
    assert first == pytest.approx([0.0] * 4 + [0.3 / everyone])
    assert last == pytest.approx([0.0] * 4 + [0.9 / everyone])
    assert not empty.any()
    near = mixed_gains(-1 + 1e-13, nodes, shares)
    assert near[0] == pytest.approx(first, rel=1e-8, abs=1e-8)
    own, cross = mixed_coefficients(-1, nodes, shares)
    limit = 1.0 / everyone - 1.0
    assert own == pytest.approx([limit, 0.0, limit])
    assert cross == pytest.approx(np.array([[limit, 0.0, limit], [0.0] * 3, [limit, 0.0, limit]]))
    close = mixed_coefficients(-1 + 1e-13, nodes, shares)
    assert close[0] == pytest.approx(own, rel=1e-8)
    assert close[1] == pytest.approx(cross, rel=1e-8)
    assert mixed_feedback(-1, nodes, shares) == pytest.approx(limit)
    assert mixed_feedback(-1, (2, 3), (1.0, 1.0)) == 0.0


def test_vectors_that_cancel():
    cancelling = ([1.0, 1.0], [[0.0, -1.0], [-1.0, 0.0]])
    for nodes in ((1, 1), (5000, 5000)):
        assert mixed_mse(*cancelling, nodes, (0.1, 0.2), -1) == 0.0
    assert mixed_mse([1.0, 1.0], np.zeros((2, 2)), (5000, 5000), (0.1, 0.2), -1) == math.inf
    assert mixed_mse([0.0, 0.0], np.zeros((2, 2)), (5000, 5000), (0.1, 0.2), -1) == 0.0
    assert not np.array(mixed_gains(-1, (5000, 5000), (0.1, 0.2))).any()
    own, cross = mixed_coefficients(-1, (5000, 1), (0.1, 0.2))
    assert own.tolist() == [math.inf] * 2
    assert cross.tolist() == [[math.inf, math.inf], [math.inf, 0.0]]
    assert mixed_feedback(-1, (5000, 1), (0.1, 0.2)) == math.inf


@pytest.mark.parametrize("T", ["one", "max", "avg", -1, -0.999999, 0.5, 1e6, steep], ids=name)
@pytest.mark.parametrize("nodes", [(1, 0), (1, 1), (2, 1), (40, 3), (700, 300)])
@pytest.mark.parametrize("shares", [(1e-300, 1.0), (1e-300, 1e-300), (1e-20, 0.5), (1 - 1e-16, 1e-5), (1.0, 1.0)])
def test_no_nan_and_no_warning(T, nodes, shares):
    with np.errstate(all="raise", under="ignore"):
        gains = np.array(mixed_gains(T, nodes, shares))
        own, cross = mixed_coefficients(T, nodes, shares)
        numbers = [mixed_feedback(T, nodes, shares)]
        for r2 in (0.0, 1.0, -1.0):
            pairs = np.array([[0.0, r2], [r2, 0.0]]) * min(nodes[1], 1)
            numbers.append(mixed_mse([1.0, 1.0 * min(nodes[1], 1)], pairs, nodes, shares, T))
    assert np.isfinite(gains).all()
    assert (gains >= 0.0).all()
    assert not np.isnan(own).any()
    assert (own >= 0.0).all()
    assert not np.isnan(cross).any()
    assert all(number >= 0.0 for number in numbers)
    if shares == (1.0, 1.0):
        assert not own.any()
        assert not cross.any()
        assert numbers == [0.0] * 4


def test_correlation_by_class():
    x, label = np.random.default_rng(3).standard_normal((7, 4)), np.array([0, 2, 2, 3, 0, 2, 0])
    r1, r2 = mixed_correlation(x.astype(np.float32), label, 5)
    inner = x @ x.T
    for s, t in product(range(5), repeat=2):
        block = inner[np.ix_(label == s, label == t)]
        assert r2[s, t] == pytest.approx(block.sum() - (s == t) * np.trace(block), rel=1e-5, abs=1e-6)
        if s == t:
            assert r1[s] == pytest.approx(np.trace(block), rel=1e-6)
    assert r1.dtype == r2.dtype == np.dtype(np.float64)
    assert (r1[[1, 4]] == 0.0).all()
    assert r2[3, 3] == 0.0
    whole = mixed_correlation(x, label, 5)
    assert (whole[0].sum(), whole[1].sum()) == pytest.approx(theory.correlation(x))
    assert mixed_correlation([[1, 2], [3, 4]], [0, 0], 1)[1].tolist() == [[22.0]]


@pytest.mark.parametrize(
    ("vectors", "classes", "K", "says"),
    [
        ([[1.0], [2.0]], [0], 1, "one for each row"),
        ([[1.0], [2.0]], [0.0, 1.0], 2, "whole numbers"),
        ([[1.0], [2.0]], [0, 2], 2, r"0\.\.1"),
        ([[1.0], [2.0]], [0, -1], 2, r"0\.\.1"),
        ([[1.0], [2.0]], [0, 0], 0, "K must be"),
        ([[1.0], [math.nan]], [0, 0], 1, "NaN"),
        ([1.0, 2.0], [0, 0], 1, "shape"),
    ],
)
def test_wrong_classes_are_refused(vectors, classes, K, says):
    with pytest.raises(InvalidInput, match=says):
        mixed_correlation(vectors, classes, K)


@pytest.mark.parametrize(
    ("nodes", "shares", "says"),
    [
        ((1, 2), (0.5,), "one share for each class"),
        ((), (), "n must be at least 1"),
        ((0, 0), (0.5, 0.5), "n must be at least 1"),
        ((-1, 2), (0.5, 0.5), "number of nodes"),
        ((1.5, 2), (0.5, 0.5), "number of nodes"),
        ((1, 2), (0.5, 0.0), "share"),
        ((1, 0), (0.5, 1.1), "share"),
        ((1, 2), (0.5, math.nan), "share"),
    ],
)
def test_wrong_rounds_are_refused(nodes, shares, says):
    for call in (mixed_gains, mixed_coefficients, mixed_feedback):
        with pytest.raises(InvalidInput, match=says):
            call("max", nodes, shares)
    with pytest.raises(InvalidInput, match=says):
        mixed_mse([1.0, 1.0], np.zeros((2, 2)), nodes, shares, "max")


@pytest.mark.parametrize(
    ("r1", "r2", "says"),
    [
        ([1.0], np.zeros((2, 2)), "shapes"),
        ([1.0, 1.0], np.zeros(2), "shapes"),
        ([1.0, -1.0], np.zeros((2, 2)), "negative"),
        ([1.0, math.inf], np.zeros((2, 2)), "finite"),
        ([1.0, 1.0], np.full((2, 2), math.nan), "finite"),
    ],
)
def test_wrong_energies_are_refused(r1, r2, says):
    with pytest.raises(InvalidInput, match=says):
        mixed_mse(r1, r2, (1, 1), (0.5, 0.5), "max")
