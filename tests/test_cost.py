"""What a round costs, counted and not timed: O(nk + d) work, O(d) totals, and nothing kept that is not needed."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sparsemean as sm
from sparsemean._names import Missing
from sparsemean.decoding.totals import RoundTotals
from sparsemean.kernels import sample
from sparsemean.kernels.carry import carry_numpy, put_numpy
from sparsemean.memory import table
from sparsemean.memory.rows import Row
from sparsemean.payload import Part
from sparsemean.payload.blocks import Blocks
from sparsemean.server.local import LocalRounds

NODES, DIM, K = 20, 40_000, 10


class Counted(np.ndarray):
    """An array that counts its entries as they are read or written, one by one or all at once."""

    touched = 0

    def __getitem__(self, index: Any) -> Any:
        taken = self.view(np.ndarray)[index]
        Counted.touched += np.size(taken)
        return taken

    def __setitem__(self, index: Any, value: Any) -> None:
        whole = self.view(np.ndarray)
        Counted.touched += np.size(whole[index])
        whole[index] = value

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        Counted.touched += sum(array.size for array in inputs if isinstance(array, Counted))
        plain = [array.view(np.ndarray) if isinstance(array, Counted) else array for array in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def astype(self, *args: Any, **options: Any) -> npt.NDArray[Any]:
        Counted.touched += self.size
        return self.view(np.ndarray).astype(*args, **options)


@pytest.fixture
def _plain_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled loops read memory past the counter, so that their NumPy twins are counted in their place."""
    monkeypatch.setattr(table, "carry", carry_numpy)
    monkeypatch.setattr(table, "put_samples", put_numpy)


def rows(server: sm.Server) -> list[Row]:
    rounds = server._rounds
    assert isinstance(rounds, LocalRounds)
    memory = rounds.estimator.memory
    assert isinstance(memory, table.RowTable)
    return list(memory._rows.values())


def count_rows(server: sm.Server) -> None:
    """From now on every array of every row counts."""
    for row in rows(server):
        row.arrays = {name: array.view(Counted) for name, array in row.arrays.items()}
    Counted.touched = 0


class Network:
    """Nodes with constant vectors, and what a round of some of them touches."""

    def __init__(self, scheme: sm.Scheme, missing: Missing = "drop") -> None:
        run = sm.Run(scheme, DIM)
        self.server = sm.Server(run, missing=missing)
        self.clients = [sm.Client(run, str(i)) for i in range(NODES)]
        self.vectors = np.random.default_rng(0).normal(size=(NODES, DIM))

    def touched(self, here: range = range(NODES), heavy: int = 0) -> int:
        """RowTable entries touched in a round of these nodes, the first ``heavy`` of them with another weight."""
        Counted.touched = 0
        for i in here:
            client = self.clients[i]
            blob = client.encode(self.vectors[i], self.server.round)
            client.delivered(self.server.accept(client.node, blob, 2.0 if i < heavy else 1.0))
        self.server.close_round()
        return Counted.touched


MEMORIES = {
    "per node": (sm.RandK(K), sm.PerNode()),
    "stale": (sm.RandK(K), sm.PerNode(forget_after=2)),
    "window": (sm.RandK(K), sm.Window(3)),
    "offset": (sm.Difference(sm.RandK(K)), sm.Offset()),
}
each_memory = pytest.mark.parametrize(("encoder", "memory"), MEMORIES.values(), ids=MEMORIES)


@each_memory
@pytest.mark.usefixtures("_plain_loops")
def test_a_round_with_the_same_nodes_touches_what_was_sent_and_no_row(encoder: sm.Encoder, memory: sm.Memory) -> None:
    network = Network(sm.Scheme(encoder, memory=memory))
    network.touched()
    count_rows(network.server)
    for _ in range(4):
        assert 0 < network.touched() <= 60 * NODES * K < DIM


@each_memory
@pytest.mark.usefixtures("_plain_loops")
def test_only_nodes_that_left_or_changed_weight_cost_a_row(encoder: sm.Encoder, memory: sm.Memory) -> None:
    network = Network(sm.Scheme(encoder, memory=memory))
    network.touched()
    count_rows(network.server)
    few = 60 * NODES * K
    assert 0 <= network.touched(range(3, NODES)) - 3 * DIM <= few, "three left"
    assert network.touched(range(3, NODES)) <= few, "the same again"
    assert 0 <= network.touched() - 3 * DIM <= few, "three came back"
    assert 0 <= network.touched(heavy=2) - 2 * DIM <= few, "two weigh more"
    assert network.touched(heavy=2) <= few, "the same again"


@pytest.mark.parametrize(
    ("encoder", "memory"), [pair for pair in MEMORIES.values() if pair[1].facts.stands_in], ids=repr
)
@pytest.mark.usefixtures("_plain_loops")
def test_under_carry_those_who_are_absent_cost_nothing(encoder: sm.Encoder, memory: sm.Memory) -> None:
    network = Network(sm.Scheme(encoder, memory=memory), missing="carry")
    network.touched()
    count_rows(network.server)
    assert network.touched(range(5, NODES)) <= 60 * NODES * K


def test_the_counter_sees_a_walk_over_the_table() -> None:
    """Else the tests above could not fail."""
    network = Network(sm.Scheme(sm.RandK(K), memory=sm.PerNode()))
    network.touched()
    count_rows(network.server)
    np.mean([row.values() * 1.0 for row in rows(network.server)], axis=0)
    assert Counted.touched == NODES * DIM


@pytest.mark.parametrize(("moments", "most"), [(True, 28), (False, 12)])
def test_totals_do_not_grow_with_the_nodes(moments: bool, most: int) -> None:
    def held(nodes: int) -> int:
        totals = RoundTotals(Blocks((DIM,)), moments)
        for i in range(nodes):
            totals.add(np.ones(1), [Part(np.arange(i, DIM, nodes), np.ones(len(range(i, DIM, nodes))))])
        return sum(array.nbytes for array in vars(totals).values() if isinstance(array, np.ndarray))

    assert held(2) == held(200) <= most * DIM + 100


def kept_bytes(memory: sm.Memory | None, batch_bytes: int) -> int:
    """What the server holds before the round is closed, beyond what it held before the first payload."""
    run = sm.Run(sm.Scheme(sm.RandK(1_000), memory=memory), dim=2_000)
    server, vector = sm.Server(run, batch_bytes=batch_bytes), np.ones(2_000, np.float32)
    sm.simulate(run, np.ones((1, 5, 2_000)))  # what is compiled and cached at first use is not meant here
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for i in range(200):
            server.accept(str(i), sm.Client(run, str(i)).encode(vector, 0))
        sample._recent.cache_clear()  # small draws are kept for whoever draws them next, which is not meant here
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_payloads_are_let_go_once_they_are_folded_unless_a_memory_learns_from_them() -> None:
    """200 payloads of 1,000 values, 4,064 bytes each: values are views of them, coordinates are drawn when wanted."""
    all_of_them, totals = 200 * 4_064, 28 * 2_000
    assert kept_bytes(None, batch_bytes=20_000) < 0.2 * all_of_them + totals
    assert kept_bytes(sm.Shared(), batch_bytes=20_000) < 0.2 * all_of_them + totals
    assert kept_bytes(None, batch_bytes=1 << 24) > 0.9 * all_of_them
    assert kept_bytes(sm.PerNode(), batch_bytes=20_000) > 0.9 * all_of_them


@pytest.mark.parametrize("memory", [None, sm.PerNode(), sm.Shared()])
@pytest.mark.parametrize("batch_bytes", [0, 100, 300, 1 << 24])
@pytest.mark.filterwarnings("ignore::sparsemean.DivergenceWarning")
def test_the_size_of_a_batch_changes_no_bit(memory: sm.Memory | None, batch_bytes: int) -> None:
    vectors = np.random.default_rng(0).normal(size=(3, 7, 30))
    run = sm.Run(sm.Scheme(sm.RandK(6), sm.Spatial("avg"), memory), dim=30)
    server = sm.Server(run, batch_bytes=batch_bytes)
    for batch, usual in zip(vectors, sm.simulate(run, vectors), strict=True):
        for i, vector in enumerate(batch):
            server.accept(str(i), sm.Client(run, str(i)).encode(vector, server.round))
        estimate = server.close_round()
        assert np.array_equal(estimate.mean, usual.mean)
        assert (estimate.error, estimate.bytes) == (usual.error, usual.bytes)
