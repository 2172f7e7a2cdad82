"""What is looked at for Auto: the same whoever comes first, and on average what all values tell."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.kernels.sample import Sample, drawn, drawn_at
from sparsemean.memory import Arrival, Hybrid, MemorySpec
from sparsemean.memory.rows import InMemory
from sparsemean.payload import Part, Payload
from sparsemean.payload.blocks import Blocks
from sparsemean.payload.noise import Levels
from sparsemean.server.observed import SUMS, Look, observed
from sparsemean.server.option_control import Why

Z = 5.0


def told(order: list[int], rounds: int = 3, nodes: int = 80, dim: int = 4096) -> list[Why]:
    """What a server says of each round, to which payloads come in this order; nodes are of many sizes."""
    run = sm.Run(sm.named("auto", bytes=64 + 512 + 4, node="broadcast"), dim)
    server, rng = sm.Server(run, batch_bytes=1 << 20), np.random.default_rng(0)
    vectors = rng.normal(size=(nodes, dim)) * np.linspace(0.1, 3.0, nodes)[:, None]
    found = []
    for t in range(rounds):
        plans = server.plans([str(i) for i in range(nodes)])
        blobs = [sm.Client(run, str(i)).encode(vectors[i], t, plans[str(i)], server.reference) for i in range(nodes)]
        for i in order:
            server.accept(str(i), blobs[i])
        server.close_round()
        why = server.why()
        assert why is not None
        found.append(why)
    return found


def test_what_is_chosen_and_why_does_not_depend_on_who_came_first():
    in_order = list(range(80))
    one, other = told(in_order), told(np.random.default_rng(1).permutation(in_order).tolist())
    for mine, theirs in zip(one, other, strict=True):
        assert (mine.encoder, mine.values, mine.nodes) == (theirs.encoder, theirs.values, theirs.nodes)
        for name in ("expected", "energy", "residual", "correlation", "drift"):
            assert getattr(mine, name) == pytest.approx(getattr(theirs, name), rel=1e-6, nan_ok=True)
        assert dict(mine.others) == pytest.approx(dict(theirs.others), rel=1e-6)


def test_sums_of_what_is_looked_at_are_on_average_those_of_all_values():
    rng, dim = np.random.default_rng(0), 6000
    blocks = Blocks((2500, 3500))
    spec = MemorySpec(blocks, sm.RandK(dim), np.dtype(np.float32), InMemory(), dim)
    memory = Hybrid().start(spec)
    for node in "ab":
        where = rng.permutation(dim)[: dim // 2]
        before = Part(where, rng.normal(size=where.size).astype(np.float32))
        memory.take([Arrival(node, np.ones(2), Payload((before,)))])
    memory.learn(0, np.zeros(dim))
    memory.settle()
    places = rng.permutation(dim)
    of_u, of_s = np.sort(places[:3500]), np.sort(places[3500:5500])
    parts = (
        Part(of_u, rng.standard_exponential(3500), scale=1.5, noise=Levels(rng.random(4), 1024, 3500)),
        Part(of_s, rng.normal(size=2000), scale=4.0, noise=0.25),
    )
    arrival, reference = Arrival("a", np.array([2.0, 0.5]), Payload(parts)), rng.normal(size=dim)
    every = observed(arrival, memory, blocks, Look(0, 0, 1, reference))
    assert every[-1].sum() == 5500
    some = np.array([observed(arrival, memory, blocks, Look(0, t, 1 << 12, reference)) for t in range(400)])
    assert set(some[:, -1].sum(axis=1)) == {1025}
    is_sum = np.array(["peak" not in name for name in SUMS[:-1]])
    deviation = some[:, :-1].std(axis=0)[is_sum] / np.sqrt(len(some))
    assert deviation.min() > 0
    z = (some[:, :-1].mean(axis=0) - every[:-1])[is_sum] / deviation
    assert np.abs(z).max() < Z


@pytest.mark.parametrize("k", [5000, 20_000, 70_001])
def test_some_coordinates_of_a_sample_are_those_of_all(k):
    run = sm.Run(sm.Scheme(sm.RandK(k)), 70_001)
    sample = run.layouts[0][0].drawn(run.key("a", 0), run.dim)[0].where
    assert isinstance(sample, Sample)
    numbers = np.sort(np.random.default_rng(0).integers(0, k, 300))
    np.testing.assert_array_equal(drawn_at(sample, numbers), drawn(sample)[numbers])
