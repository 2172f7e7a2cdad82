"""Auto: options that fill a byte budget."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.encoders import Auto

SIZES = [(89, 78), (89, 100), (784, 166), (1000, 464), (5000, 300), (65536, 26214), (7, 70), (1, 68)]


def counts(run: sm.Run) -> list[int]:
    return [option.layout[0].count for option in run.options]


@pytest.mark.parametrize(("dim", "room"), SIZES)
def test_every_option_fills_the_budget_and_keeps_it(dim, room):
    run = sm.Run(sm.named("auto", bytes=room), dim)
    assert run.payload_bytes <= room
    for option in run.options:
        k, scheme = option.layout[0].count, option.scheme
        assert option.payload_bytes <= room
        if k < dim:
            larger = sm.RandK(k + 1, draw=option.layout[0].draw)
            assert sm.Run(sm.Scheme(larger, memory=scheme.memory, values=scheme.values), dim).payload_bytes > room


def test_the_first_round_sends_all_coordinates_where_a_bit_each_fits():
    assert [counts(sm.Run(sm.named("auto", bytes=room), 8192))[0] for room in (64 + 1024 + 8, 2000)] == [8192, 8192]
    below = sm.Run(sm.named("auto", bytes=600), 8192)
    assert max(counts(below)) < 8192
    assert below.options[0].scheme.values == "eden-1"


def test_a_budget_for_whole_float32_vectors_gives_them():
    run = sm.Run(sm.named("auto", k=50), 50)
    assert (counts(run)[0], run.options[0].scheme.values) == (50, "float32")
    vectors = np.random.default_rng(0).normal(size=(3, 4, 50)).astype(np.float32)
    for estimate, truth in zip(sm.simulate(run, vectors), vectors.mean(axis=1), strict=True):
        np.testing.assert_allclose(estimate.mean, truth, atol=2e-6)


def test_k_is_a_number_of_float32_values():
    assert Auto(k=100).budget(1000) == Auto(k=0.1).budget(1000) == 464
    assert sm.Run.for_bytes("auto", 1000, 464).scheme == sm.named("auto", bytes=464)


def test_nodes_that_hear_the_broadcast_have_differences_among_their_options():
    stateless, broadcast = (sm.Run(sm.named("auto", bytes=300, node=node), 1000) for node in ("stateless", "broadcast"))
    assert not stateless.relative
    assert broadcast.relative
    assert len(broadcast.options) == 2 * len(stateless.options)
    assert sum(option.relative for option in broadcast.options) == len(stateless.options)


def test_it_is_written_down_and_read_again():
    run = sm.Run(sm.named("auto", bytes=300, node="broadcast"), 1000, seed=3)
    again = sm.Run.from_json(run.to_json())
    assert (again, again.digest) == (run, run.digest)
    assert sm.Run(sm.named("auto", bytes=301, node="broadcast"), 1000, seed=3).digest != run.digest


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "one budget"),
        ({"k": 3, "bytes": 100}, "one budget"),
        ({"bytes": 0}, "bytes"),
        ({"k": 0}, "at least 1"),
        ({"bytes": 100, "node": "sleepy"}, "stateless"),
    ],
)
def test_what_it_cannot_be_is_refused(given, words):
    with pytest.raises(sm.InvalidInput, match=words):
        Auto(**given)


def test_what_does_not_fit_is_refused_with_the_remedy():
    with pytest.raises(sm.InvalidInput, match="allow more"):
        sm.Run(sm.named("auto", bytes=64), 1000)
    with pytest.raises(sm.IncompatibleScheme, match="leave out values="):
        sm.named("auto", bytes=100, values="int8")
    with pytest.raises(sm.InvalidInput, match="by the option that a plan names"):
        Auto(bytes=100).encode(np.ones(3), sm.Run(sm.named("identity"), 3).key("a", 0), {})
