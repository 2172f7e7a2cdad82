"""Classes of nodes of which some draw balanced: every outcome of tiny rounds, one class as before, and the corners."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest

from sparsemean import theory
from sparsemean.errors import InvalidInput
from sparsemean.theory import mixed_coefficients, mixed_correlation, mixed_feedback, mixed_gains, mixed_mse

from .truth import MEMBERS, Outcomes, balanced, error, factors, given, independent, product_mean, together, vector

F = Fraction
ROUNDS = [
    ((2, 2), (F(1, 2), F(1, 3)), (2, None)),
    ((2, 2), (F(1, 2), F(1, 3)), (None, 3)),
    ((3, 1), (F(2, 5), F(9, 10)), (4, None)),
    ((1, 3), (F(1, 4), F(1, 2)), (1, None)),
    ((2, 3), (F(1, 3), F(1, 2)), (2, 4)),
    ((2, 2), (F(1, 4), F(3, 4)), (4, 2)),
    ((3, 2), (F(1), F(1, 2)), (3, 2)),
    ((2, 0, 2), (F(1, 2), F(1, 3), F(5, 6)), (3, 5, None)),
    ((2, 1, 2), (F(1, 3), F(1, 2), F(3, 5)), (3, None, 3)),
]


def outcomes_of(nodes, shares, slots) -> Outcomes:
    drawn = zip(nodes, shares, slots, strict=True)
    return together([independent(n, p) if N is None else balanced(N, p, tuple(range(n))) for n, p, N in drawn])


@pytest.mark.parametrize("T", MEMBERS, ids=str)
@pytest.mark.parametrize(("nodes", "shares", "slots"), ROUNDS, ids=str)
def test_unbiased_with_the_error_of_the_formula(nodes, shares, slots, T):
    outcomes, n, label = outcomes_of(nodes, shares, slots), sum(nodes), np.repeat(range(len(nodes)), nodes)
    p, member, factor = [float(share) for share in shares], given(T), factors(outcomes, n, T)
    gains = mixed_gains(member, nodes, p, slots=slots)
    for sent, found in factor.items():
        wanted = [xi * gains[s][sum(sent)] / p[s] for xi, s in zip(sent, label, strict=True)]
        assert wanted == pytest.approx([float(f) for f in found], rel=1e-12)
    own, cross = mixed_coefficients(member, nodes, p, slots=slots)
    assert (cross == cross.T).all()
    for i, s in enumerate(label):
        for l, t in enumerate(label):  # noqa: E741
            second = float(product_mean(outcomes, factor, i, l) - 1)
            assert (own[s] if i == l else cross[s, t]) == pytest.approx(second, rel=1e-12, abs=2e-15)
    for x in (vector(n), [F(1)] * n):
        r1, r2 = mixed_correlation([[float(v)] for v in x], label, len(nodes))
        exact = float(error(outcomes, factor, x))
        sizes = 1e-14 * float(np.abs(own) @ r1) / n**2
        assert mixed_mse(r1, r2, nodes, p, member, slots=slots) == pytest.approx(exact, rel=1e-12, abs=sizes)
    assert mixed_feedback(member, nodes, p, slots=slots) == pytest.approx(exact, rel=1e-12, abs=sizes)


@pytest.mark.parametrize("T", ["one", "max", "avg", -1, -0.8, 5.0])
@pytest.mark.parametrize(
    ("n", "N", "p"), [(1, 1, 0.3), (2, 5, 0.1), (9, 9, 0.4), (9, 12, 0.4), (80, 100, 0.03), (3, 3, 0.9)]
)
def test_one_class_is_the_common_share(n, N, p, T):
    for nodes, shares, slots in (((n,), (p,), (N,)), ((0, n), (0.3, p), (None, N)), ((n, 0), (p, 0.7), (N, 4))):
        here = nodes.index(n)
        assert mixed_gains(T, nodes, shares, slots=slots)[here] == pytest.approx(
            theory.gains(T, n, p, slots=N), rel=1e-13
        )
        a1, a2 = theory.error_coefficients(T, n, p, slots=N)
        own, cross = mixed_coefficients(T, nodes, shares, slots=slots)
        assert own[here] == pytest.approx(a1, rel=1e-10)
        assert cross[here, here] == pytest.approx(a2, rel=1e-10, abs=1e-15)


def test_no_slots_and_none_for_every_class_are_the_same():
    nodes, shares = (3, 2), (0.2, 0.7)
    for call in (mixed_gains, mixed_coefficients):
        plain, with_slots = call("avg", nodes, shares), call("avg", nodes, shares, slots=[None, None])
        assert all((a == b).all() for a, b in zip(plain, with_slots, strict=True))


def test_constant_T_leaves_only_the_pairs_of_balanced_classes():
    own, cross = mixed_coefficients("one", (4, 3), (0.5, 0.2), slots=(4, None))
    assert own.tolist() == [1.0, 4.0]
    assert cross.tolist() == [[pytest.approx(-1.0 / 3.0, rel=1e-15), 0.0], [0.0, 0.0]]


def test_ratio_minus_one_is_the_limit():
    nodes, shares, slots = (2, 2), (0.75, 0.6), (2, None)
    everyone = 0.5 * 0.36  # two of two are planned half of the time
    first, last = mixed_gains(-1, nodes, shares, slots=slots)
    assert first == pytest.approx([0.0] * 4 + [0.75 / everyone], rel=1e-14)
    assert last == pytest.approx([0.0] * 4 + [0.6 / everyone], rel=1e-14)
    own, cross = mixed_coefficients(-1, nodes, shares, slots=slots)
    assert own == pytest.approx([1.0 / everyone - 1.0] * 2, rel=1e-13)
    assert cross == pytest.approx(np.full((2, 2), 1.0 / everyone - 1.0), rel=1e-13)
    assert mixed_mse([1.0, 1.0], [[0.0, -1.0], [-1.0, 0.0]], nodes, shares, -1, slots=slots) == 0.0


def test_ratio_minus_one_is_the_plain_formula_where_all_never_send():
    nodes, shares, slots = (3, 2), (0.5, 0.6), (3, None)
    near = mixed_coefficients(-1 + 1e-13, nodes, shares, slots=slots)
    for found, wanted in zip(mixed_coefficients(-1, nodes, shares, slots=slots), near, strict=True):
        assert found == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("T", ["max", -1, lambda m, n: np.exp(-np.minimum(m, 600.0))], ids=["max", "-1", "steep"])
def test_a_million_nodes_quickly(T):
    start = time.process_time()
    own, cross = mixed_coefficients(T, (300_000, 350_000, 300_000), (0.1, 0.5, 0.3), slots=(400_000, 350_000, None))
    assert not np.isnan(own).any()
    assert not np.isnan(cross).any()
    assert time.process_time() - start < 10.0


@pytest.mark.parametrize(
    ("slots", "says"),
    [((2,), "one, or None, for each class"), ((1, None), "slots must be at least"), ((2, 2.5), "slots")],
)
def test_wrong_slots_are_refused(slots, says):
    for call in (mixed_gains, mixed_coefficients, mixed_feedback):
        with pytest.raises(InvalidInput, match=says):
            call("max", (2, 2), (0.5, 0.5), slots=slots)
