"""Decoders: the sum over the weight, and the same reweighted by how many nodes sent a coordinate."""

from __future__ import annotations

import math
from copy import deepcopy

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.totals import RoundTotals
from sparsemean.payload import Part
from sparsemean.payload.blocks import Blocks

SHARE = 0.4
DIM = 10


def round_of(nodes: int, blocks: tuple[int, ...] = (DIM,), weights: Doubles | None = None) -> RoundTotals:
    rng = np.random.default_rng(nodes)
    totals = RoundTotals(Blocks(blocks), moments=False)
    weights = np.ones((nodes, len(blocks))) if weights is None else weights
    for weight in weights:
        chosen = rng.permutation(DIM)[:4]
        totals.add(weight, [Part(chosen, rng.normal(size=4), scale=1 / SHARE)])
    return totals


def innovation(decoder: sm.Decoder, totals: RoundTotals, share: float | None) -> Doubles:
    shares = () if share is None else (share,)
    """Of a copy: it may stand where the sums were."""
    return decoder.innovation(deepcopy(totals), shares, (Belief(),) * len(totals.blocks.sizes))


def beta_over_t(T, m: int, n: int) -> float:
    b = [math.comb(n - 1, i - 1) * SHARE ** (i - 1) * (1 - SHARE) ** (n - i) for i in range(1, n + 1)]
    return float(1 / T(m, n) / (SHARE * sum(b[i - 1] / T(i, n) for i in range(1, n + 1))))


FAMILIES = {
    "one": (sm.Spatial("one"), lambda m, n: 1.0),
    "max": (sm.Spatial("max"), lambda m, n: m),
    "avg": (sm.Spatial("avg"), lambda m, n: 1 + n / 2 * (m - 1) / max(n - 1, 1)),
    "ratio": (sm.Spatial(2.5), lambda m, n: 1 + 2.5 * (m - 1) / max(n - 1, 1)),
    "negative": (sm.Spatial(-0.7), lambda m, n: 1 - 0.7 * (m - 1) / max(n - 1, 1)),
    "function": (sm.Spatial(lambda m, n: np.sqrt(m) + n), lambda m, n: math.sqrt(m) + n),
    "table": (sm.Spatial(table=(5, 4, 3, 2, 1, 6, 7)), lambda m, n: [5, 4, 3, 2, 1, 6, 7][m - 1]),
}


@pytest.mark.parametrize("nodes", [1, 2, 3, 7])
@pytest.mark.parametrize("family", FAMILIES)
def test_spatial_scales_each_coordinate_by_beta_bar_over_t(family: str, nodes: int) -> None:
    decoder, T = FAMILIES[family]
    totals = round_of(nodes)
    received = totals.sums * SHARE
    twin = [s / nodes * beta_over_t(T, m, nodes) if m else 0.0 for s, m in zip(received, totals.counts, strict=True)]
    np.testing.assert_allclose(innovation(decoder, totals, SHARE), twin, rtol=1e-12, atol=1e-14)


def test_mean_divides_by_the_weight_of_the_block() -> None:
    weights = np.array([[1.0, 0.0], [3.0, 0.0]])
    totals = round_of(2, (4, 6), weights)
    mean = innovation(sm.Mean(), totals, SHARE)
    np.testing.assert_allclose(mean[:4], totals.sums[:4] / 4.0)
    assert np.array_equal(mean[4:], np.zeros(6)), "no weight, no mean"
    assert np.array_equal(innovation(sm.Spatial("max"), totals, SHARE)[4:], np.zeros(6))


def test_each_block_has_its_own_number_of_nodes() -> None:
    weights = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    totals = round_of(3, (4, 6), weights)
    found = innovation(sm.Spatial("max"), totals, SHARE)
    for inside, n in ((slice(0, 4), 3), (slice(4, 10), 2)):
        counts, sums = totals.counts[inside], totals.sums[inside] * SHARE
        twin = [s / n * beta_over_t(lambda m, n: m, m, n) if m else 0.0 for s, m in zip(sums, counts, strict=True)]
        np.testing.assert_allclose(found[inside], twin, rtol=1e-12)


def test_the_limit_of_opposed_vectors_uses_what_everybody_sent() -> None:
    totals = RoundTotals(Blocks((3,)), moments=False)
    totals.add(np.ones(1), [Part(np.array([0, 1]), np.array([1.0, 2.0]), 1.5)])
    totals.add(np.ones(1), [Part(np.array([0, 2]), np.array([5.0, 7.0]), 1.5)])
    share = 2 / 3
    np.testing.assert_allclose(innovation(sm.Spatial(-1), totals, share), [(1 + 5) / (2 * share**2), 0.0, 0.0])


def test_without_a_share_what_all_sent_is_averaged_and_the_rest_filled() -> None:
    """T(n)/T(m): for top-k and Max a coordinate gets the average of those who sent it."""
    totals = RoundTotals(Blocks((3,)), moments=False)
    totals.add(np.ones(1), [Part(np.array([0, 1]), np.array([1.0, 2.0]))])
    totals.add(np.ones(1), [Part(np.array([0]), np.array([5.0]))])
    assert innovation(sm.Spatial("max"), totals, None).tolist() == [3.0, 2.0, 0.0]
    assert innovation(sm.Spatial("avg"), totals, None).tolist() == [3.0, 2.0, 0.0]
    assert innovation(sm.Spatial("one"), totals, None).tolist() == [3.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"weighting": "avg", "table": [1.0]},
        {"weighting": "best"},
        {"weighting": -1.5},
        {"weighting": float("nan")},
        {"table": []},
        {"table": [1.0, 0.0]},
        {"table": [1.0, -2.0]},
        {"table": [float("inf")]},
        {"table": "123"},
        {"table": ["1", "2"]},
        {"table": [[1.0, 2.0]]},
        {"table": [True, True]},
        {"table": 3},
        {"table": [10**400]},
        {"weighting": ()},
        {"weighting": [1.0, 0.0]},
        {"weighting": [1.0, "2"]},
        {"weighting": np.ones((2, 2))},
        {"weighting": np.array([1.0, np.nan])},
        {"weighting": {1: 2.0}},
        {"weighting": {1.0, 2.0}},
        {"weighting": b"avg"},
        {"weighting": 1j},
        {"weighting": 10**400},
        {"weighting": object()},
    ],
)
def test_a_weighting_that_cannot_be_is_refused_when_it_is_made(arguments) -> None:
    with pytest.raises(sm.InvalidInput):
        sm.Spatial(**arguments)


def test_a_function_that_rounds_could_not_look_up_is_refused_when_it_is_made() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, m: Doubles, n: int) -> Doubles:
            return m

    with pytest.raises(sm.InvalidInput, match="hash"):
        sm.Spatial(Unhashable())


@pytest.mark.parametrize("returned", [np.ones(2), np.ones((3, 3)), "x", None, [1.0, [2.0]]])
def test_a_function_that_returns_no_numbers_says_so(returned) -> None:
    with pytest.raises(sm.InvalidInput, match="T"):
        innovation(sm.Spatial(lambda m, n: returned), round_of(3), SHARE)


def test_a_table_that_is_too_short_says_so() -> None:
    with pytest.raises(sm.InvalidInput, match="3 nodes"):
        innovation(sm.Spatial(table=(1.0, 2.0)), round_of(3), SHARE)


def test_decoders_are_values() -> None:
    assert sm.Spatial(table=(1, 2)) == sm.Spatial(table=(1.0, 2.0))
    assert len({sm.Spatial("avg"), sm.Spatial("avg"), sm.Mean(), sm.Mean()}) == 2
    assert (sm.Mean().T(Belief(), 5), sm.Mean().reweights, sm.Spatial("max").reweights) == ("one", False, True)
