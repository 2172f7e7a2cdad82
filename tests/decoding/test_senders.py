"""What is kept of the senders of a balanced draw, against loops over nodes and pairs."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.decoding.moment_sample import MomentSample
from sparsemean.decoding.senders import ENTRIES, MOST_SLOTS, MOST_TILES, Senders
from sparsemean.decoding.totals import RoundTotals
from sparsemean.payload import Part
from sparsemean.payload.blocks import Blocks
from sparsemean.sampling import Key, balanced_sample_of
from sparsemean.theory.shared_senders import shared_sender_covariance, squared_differences

RNG = np.random.default_rng(3)


def kept(y: Doubles, sent: Doubles, sample: MomentSample, slots: int = 6) -> Senders:
    senders, (lo, hi) = Senders(sample), sample.range
    for values, where in zip(y, sent, strict=True):
        at = np.flatnonzero(where[lo:hi])
        senders.add(slots, at, values[lo:hi][at])
    return senders


def test_sums_are_those_of_all_triples_and_pairs() -> None:
    """At most three of six nodes send a coordinate; blocks have different weights."""
    sent = (np.argsort(RNG.random((6, 40)), axis=0) < RNG.integers(0, 4, 40)).astype(float)
    y, scale = sent * RNG.normal(size=(6, 40)), np.array([0.5, 2.0])
    found = kept(y, sent, MomentSample(Blocks((10, 30)))).sums(scale)
    m, outlying, triples, products, pairs = sent.sum(axis=0), 0.0, 0.0, 0.0, 0
    for j in range(40):
        came = y[sent[:, j] > 0, j]
        if came.size == 3:
            off = came - came.mean()
            outlying, triples = outlying + 6 * np.sum(off**3) ** 2 / np.sum(off**2), triples + np.sum(off**2) ** 2
        if j == 39:
            continue
        here, there = (combinations(np.flatnonzero(sent[:, at]).tolist(), 2) for at in (j, j + 1))
        others = list(there)
        for i, k in here:
            for o, q in (other for other in others if not {i, k} & set(other)):
                products += (y[i, j] - y[k, j]) ** 2 * (y[o, j + 1] - y[q, j + 1]) ** 2 / 4.0
                pairs += 1
    assert found[1:] == pytest.approx((outlying, triples, products, pairs), rel=1e-10)
    a = np.sum(1.0 / m[m > 0] - 1.0 / 6.0) / np.sum(m[m > 0] - 1.0)
    weighted = squared_differences(y * np.repeat(scale, (10, 30)), sent)
    assert found.covariance == pytest.approx(shared_sender_covariance(float(a), sent, weighted), rel=1e-10)


def test_ranges_add_up_to_the_whole() -> None:
    dim = 4096 * 20 + 100
    blocks = Blocks((5000, dim - 5000))
    sent = np.zeros((4, dim))
    np.put_along_axis(sent, RNG.integers(0, 4, (1, dim)), 1.0, axis=0)
    y, scale = sent * RNG.normal(size=(4, dim)), np.array([1.0, 3.0])
    whole, *parts = (
        np.array(kept(y, sent, MomentSample(blocks, lo, hi), slots=4).sums(scale))
        for lo, hi in ((0, dim), (0, 4096 * 7), (4096 * 7, dim))
    )
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-10)


def test_of_a_long_vector_and_of_many_slots_little_is_kept() -> None:
    long = Senders(MomentSample(Blocks((1 << 26,))))
    long.add(4, np.arange(0, 1 << 26, 512), np.ones(1 << 17))
    assert long.sent[0][0].size == ENTRIES // 4 // 512
    assert ENTRIES // 4 < MOST_TILES * 4096
    many = Senders(MomentSample(Blocks((100,))))
    many.add(MOST_SLOTS + 1, np.arange(5), np.ones(5))
    assert not many.sent


def test_batches_keep_what_single_payloads_would() -> None:
    """Values less what is expected of them, times the weight; a node without any is not there."""
    x, rows, weights = *RNG.normal(size=(2, 5, 60)), np.array([[1.0], [2.0], [0.0], [1.0], [0.5]])
    drawn = [Part(balanced_sample_of(Key(1, 0, None), 60, 24, slot, 5), np.empty(0)) for slot in range(5)]
    sent = [replace(part, values=v[part.coordinates], scale=2.5) for part, v in zip(drawn, x, strict=True)]
    batched, single = RoundTotals(Blocks((60,)), True), RoundTotals(Blocks((60,)), True)
    batched.add_samples(weights, sent, list(rows), slots=5)
    for weight, part, row in zip(weights, sent, rows, strict=True):
        single.add(weight, [replace(part, values=part.values - row[part.coordinates])], slots=5)
    assert len(batched.senders.sent) == len(single.senders.sent) == 4
    assert batched.sender_sums() == pytest.approx(single.sender_sums(), rel=1e-12)
    assert batched.sender_sums().covariance != 0.0


@pytest.mark.parametrize("memory", [None, sm.Hybrid(), sm.Window(2)], ids=str)
def test_intervals_are_stated_whatever_the_memory(memory: sm.Memory | None) -> None:
    x = RNG.normal(size=(5, 60)) + np.array([3.0, 3.0, 0.0, 0.0, 0.0])[:, None] * RNG.normal(size=60)
    run = sm.Run(sm.Scheme(sm.RandK(24, draw=sm.Balanced()), sm.Spatial("max"), memory, values="float64"), 60)
    estimates = sm.simulate(run, np.stack([x, 2.0 * x, 3.0 * x]))
    assert all(each.actual_error_interval is not None for each in estimates)
