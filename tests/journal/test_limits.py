"""What a server remembers has a limit: who is forgotten, who is turned away, and what strangers can fill."""

from __future__ import annotations

import gc
import logging
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import SchemeName
from sparsemean.journal import contents
from sparsemean.memory import MemoryState
from sparsemean.memory.table import RowTable
from sparsemean.server.local import LocalRounds
from sparsemean.server.server import BOOKKEEPING, WEIGHTS

DIM = 500
VECTOR = np.linspace(1.0, 2.0, DIM)
MEMORY_LESS = ("identity", "rand-k", "rand-k-spatial-adaptive", "top-k", "wangni", "error-feedback-top-k")


def run_named(name: SchemeName = "rand-k-temporal", **options: Any) -> sm.Run:
    return sm.Run(sm.named(name, k=50, **options), DIM)


def room_for(run: sm.Run, nodes: int) -> int:
    """The least ``memory_bytes`` with room for so many nodes."""
    low, high = 1, 1 << 40
    while low < high:
        middle = (low + high) // 2
        try:
            enough = sm.Server(run, memory_bytes=middle)._most_nodes >= nodes
        except sm.InvalidInput:
            enough = False
        low, high = (low, middle) if enough else (middle + 1, high)
    return low


def come(server: sm.Server, *nodes: str) -> None:
    for node in nodes:
        server.accept(node, sm.Client(server.run, node).encode(VECTOR, server.round))


def known(server: sm.Server) -> list[str]:
    return list(server._rounds.roster.known)


def memory_of(server: sm.Server) -> MemoryState:
    rounds = server._rounds
    assert isinstance(rounds, LocalRounds)
    return rounds.estimator.memory


def remembers(server: sm.Server, node: str) -> bool:
    return bool(np.any(server.expected(node)))


@pytest.fixture(params=["in memory", "journal"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    return {} if request.param == "in memory" else {"journal": tmp_path}


def server_for(nodes: int, options: dict[str, Any], name: SchemeName = "rand-k-temporal", **more: Any) -> sm.Server:
    run = run_named(name)
    extra = run.payload_bytes * nodes if options and not run.scheme.memory.facts.per_node else 0
    return sm.Server(run, memory_bytes=room_for(run, nodes) + extra, **options, **more)


def test_those_heard_longest_ago_are_forgotten_first(options):
    reports: list[sm.RoundReport] = []
    with server_for(4, options, on_round=[reports.append]) as server:
        for nodes in ("ab", "cd", "a", "ef"):
            come(server, *nodes)
            server.close_round()
        assert known(server) == ["d", "a", "e", "f"]  # b and c are gone; c came just before d
        assert [remembers(server, node) for node in "abcdef"] == [True, False, False, True, True, True]
        assert [report.forgotten for report in reports] == [0, 0, 0, 2]


def test_a_round_takes_as_many_as_there_is_room_for_and_none_of_them_is_forgotten(options):
    with server_for(3, options) as server:
        come(server, "x", "y")
        server.close_round()
        come(server, "a", "b", "c")
        before = server.digest()
        with pytest.raises(sm.RoundFull, match="round 1 has 3 nodes, all there is room for; raise memory_bytes"):
            come(server, "d")
        assert server.digest() == before
        come(server, "a")  # again, which needs no room
        assert server.close_round().nodes == ("a", "b", "c")
        assert known(server) == ["a", "b", "c"]
        come(server, "d")  # in the next round there is room
        server.skip_round()
        assert known(server) == ["b", "c", "d"]


def test_a_forgotten_node_comes_back_as_a_new_one(options):
    with server_for(2, options) as server:
        for nodes in ("ab", "cd", "a"):
            come(server, *nodes)
            mean = server.close_round().mean
        sent = np.flatnonzero(mean)
        assert sent.size == 50
        np.testing.assert_allclose(mean[sent], 10 * VECTOR[sent], rtol=1e-6)  # scaled as if it had never been here


@pytest.mark.parametrize("name", ["diana", "lag"])
def test_a_forgotten_node_that_keeps_state_is_told_to_begin_afresh(name, options):
    run = run_named(name)
    with sm.Server(run, memory_bytes=room_for(run, 1), **options) as server:
        client = sm.Client(run, "a")
        client.delivered(server.accept("a", client.encode(VECTOR, 0)))
        server.close_round()
        come(server, "b")
        server.close_round()
        with pytest.raises(sm.OutOfStep, match=r"reset\(\) its client"):
            server.accept("a", client.encode(2 * VECTOR, 2))
        client.reset()
        server.accept("a", client.encode(2 * VECTOR, 2))
        assert server.close_round().nodes == ("a",)


@pytest.mark.parametrize("name", MEMORY_LESS)
def test_schemes_without_a_memory_have_limits_too(name, options):
    with server_for(5, options, name) as server:
        for round in range(8):
            come(server, *(f"{round}-{i}" for i in range(5)))
            with pytest.raises(sm.RoundFull):
                come(server, "one more")
            server.close_round()
            assert len(known(server)) == 5


def test_every_scheme_counts_what_it_keeps_of_a_node():
    for name in sm.names():
        ratio: dict[str, Any] = {"ratio": 2.0} if name == "rand-k-spatial-opt" else {}
        run = run_named(name, **ratio)
        least = sm.Server(run)._rounds.node_bytes[0] + BOOKKEEPING + 8 * WEIGHTS
        per_node = run.scheme.memory.facts.per_node
        assert room_for(run, 1) == least + (run.payload_bytes if per_node else 0)
        assert (sm.Server(run)._rounds.node_bytes[0] >= DIM) == per_node


def test_what_was_received_of_the_forgotten_is_forgotten_and_that_of_the_others_counted(options):
    server = server_for(3, options, "rand-k-temporal-stale")
    for names in ("abc", "cd", "ef"):
        come(server, *names)
        server.close_round()
    memory = memory_of(server)
    assert isinstance(memory, RowTable)
    held = [(node, at) for _, of_nodes in memory._received for node, at in of_nodes.items()]
    assert {node for node, _ in held} == set(known(server)) == set("def")
    rows = {node: sum(array.nbytes for array in memory._rows[node].arrays.values()) for node in "def"}
    for node in "def":
        assert rows[node] + sum(at.nbytes for name, at in held if name == node) <= memory.node_bytes
    server.close()


def test_what_was_sent_again_need_not_be_remembered_twice(monkeypatch):
    """However late it is forgotten, the list has at most twice as many coordinates as there are, and no bit changes."""

    def play() -> tuple[list[bytes], int]:
        run = sm.Run(sm.Scheme(sm.RandK(10), memory=sm.PerNode(forget_after=30)), 20)
        server, rng, means, most = sm.Server(run), np.random.default_rng(4), [], 0
        for round in range(80):
            for node in rng.permutation(["a", "b", "c", "d"])[: rng.integers(1, 5)].tolist():
                server.accept(node, sm.Client(run, node).encode(rng.normal(size=20), round))
            means.append(server.close_round().mean.tobytes())
            memory = memory_of(server)
            assert isinstance(memory, RowTable)
            held = [at for _, of_nodes in memory._received for at in of_nodes.values()]
            assert sum(at.size for at in held) == sum(memory._received_sizes.values())
            most = max(most, *memory._received_sizes.values())
            assert 8 * most <= memory._received_bytes or not bounded
        return means, most

    bounded = True
    means, most = play()
    assert most <= 50
    bounded = False
    monkeypatch.setattr(RowTable, "_drop_what_came_again", lambda self, node: None)
    with_all, most = play()
    assert most > 100
    assert with_all == means


def test_less_than_one_node_is_no_room():
    run = run_named()
    with pytest.raises(sm.InvalidInput, match=r"one node takes \d+ bytes here, more than memory_bytes = 100"):
        sm.Server(run, memory_bytes=100)
    for wrong in (0, -1, 1.5, "16GB"):
        with pytest.raises(sm.InvalidInput):
            sm.Server(run, memory_bytes=wrong)  # type: ignore[arg-type]


def test_names_have_a_limit():
    server = sm.Server(run_named())
    for name in ("n" * 257, "ü" * 129):
        with pytest.raises(sm.InvalidInput, match="up to 256 bytes"):
            server.accept(name, b"")
        with pytest.raises(sm.InvalidInput, match="up to 256 bytes"):
            sm.Client(server.run, name)
    come(server, "n" * 256)


@pytest.mark.parametrize("name", ["rand-k-temporal-stale", "rand-k-hybrid"])
def test_strangers_fill_neither_memory_nor_disk(name, tmp_path, caplog):
    """Ten new names a round, for ever: once caches are full nothing grows, in the process or in the folder."""
    caplog.set_level(logging.CRITICAL, "sparsemean")  # or pytest keeps what is logged
    sizes, files, held = [], [], []
    with server_for(20, {"journal": tmp_path}, name, durability="round") as server:
        tracemalloc.start()
        try:
            for round in range(95):
                names = [f"{'stranger' * 30}-{round:03}-{i}" for i in range(10)]
                server.accept_many({name: sm.Client(server.run, name).encode(VECTOR, round) for name in names})
                assert len(server.close_round().nodes) == 10
                if round in (34, 49, 64, 79, 94):
                    gc.collect()
                    held.append(tracemalloc.get_traced_memory()[0])
                    sizes.append({path.name: path.stat().st_size for path in tmp_path.glob("*.rows")})
                    files.append(len(list(tmp_path.iterdir())))
        finally:
            tracemalloc.stop()
        assert len(known(server)) == 20
    # 150 names that nobody forgets would take 45,000 each time. Usual are −5,000 and 15,000 in turns, 20,000 and 38,000
    # with the hybrid memory; more came now and then on a busy machine.
    assert min(after - before for before, after in pairwise(held)) < 32_000
    assert all(size == sizes[0] for size in sizes)
    assert len(set(files)) == 1
    assert len(contents(tmp_path).kept_rounds) == 2
    assert contents(tmp_path).log_bytes < 6_000_000  # SQLite writes its log back when it has 4 MB


def test_a_refused_stranger_leaves_nothing_in_the_journal(tmp_path):
    with server_for(2, {"journal": tmp_path}) as server:
        come(server, "a", "b")
        before, bytes_before = server.digest(), sum(path.stat().st_size for path in tmp_path.iterdir())
        for i in range(200):
            with pytest.raises(sm.RoundFull):
                come(server, f"stranger-{i}")
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) == bytes_before
        assert server.digest() == before


def test_what_was_forgotten_is_forgotten_after_a_restart_too(tmp_path):
    with server_for(3, {"journal": tmp_path}) as server:
        for nodes in ("abc", "d"):
            come(server, *nodes)
            server.close_round()
        digest, memory_bytes = server.digest(), room_for(server.run, 3)
        assert known(server) == ["b", "c", "d"]
    with sm.Server(run_named(), journal=tmp_path, memory_bytes=memory_bytes) as server:
        assert server.digest() == digest
        assert not remembers(server, "a")
    with sm.Server(run_named(), journal=tmp_path, memory_bytes=room_for(run_named(), 1)) as server:  # less room now
        assert server.digest() == digest
        come(server, "b")
        server.close_round()
        assert known(server) == ["b"]


def test_rows_of_the_forgotten_make_room_on_the_disk_for_others(tmp_path):
    with server_for(4, {"journal": tmp_path}) as server:
        for round in range(30):
            come(server, f"a{round}", f"b{round}", f"c{round}")
            server.close_round()
    (rows,) = tmp_path.glob("*.rows")
    assert rows.stat().st_size <= 1 << 17  # four rows of 2,000 bytes, in steps of 64 KiB
