"""The common scale: learnt from the past alone, told in plans, and of no effect where it cannot be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean._names import ValueName
from sparsemean.sampling import Plan
from sparsemean.server.common_scale import next_scale

DIM, N = 300, 8
NODES = [f"n{i}" for i in range(N)]


def run_of(values: ValueName = "1-bit", k: int = DIM, nodes: list[str] | None = None, **draw: bool) -> sm.Run:
    return sm.Run(sm.Scheme(sm.RandK(k, draw=sm.Balanced(**draw)), values=values), DIM, seed=5, nodes=nodes)


def vectors(round: int, size: float = 1.0, apart: float = 0.05) -> np.ndarray:
    rng = np.random.default_rng(round)
    return size * (rng.normal(size=DIM) + apart * rng.normal(size=(N, DIM)))


def scales(server: sm.Server) -> set[float | None]:
    plans = server.plans(NODES)
    return {codec.unpack_plan(server.run, node, server.round, plan).scale for node, plan in plans.items()}


def play(server: sm.Server, x: np.ndarray, order: list[int] | None = None) -> sm.Estimate:
    plans = server.plans(NODES)
    for i in range(N) if order is None else order:
        server.accept(NODES[i], sm.Client(server.run, NODES[i]).encode(x[i], server.round, plans[NODES[i]]))
    return server.close_round()


@pytest.mark.parametrize("values", ["int8", "int4", "2-bit", "1-bit"])
def test_the_first_round_has_none_and_later_ones_have_one_for_all(values):
    server = sm.Server(run_of(values, common_scale=True))
    assert scales(server) == {None}
    for round in range(4):
        play(server, vectors(round))
        (scale,) = scales(server)
        assert scale is not None
        assert 1.5 < scale < 4.0, "about as large as the largest of 256 normal values, less for few bits"


@pytest.mark.parametrize(
    "run", [run_of("float16"), run_of("int8"), run_of("int4"), run_of("1-bit", common_scale=False)]
)
def test_there_is_none_where_it_is_switched_off_or_values_have_no_scale(run):
    server = sm.Server(run)
    for round in range(3):
        assert scales(server) == {None}
        play(server, vectors(round))
    assert run.payload_fixed


def test_a_decoder_that_shrinks_by_r2_has_none_since_shared_dither_falsifies_r2():
    run = sm.Run(sm.named("rand-k-balanced-hybrid-shrunk", k=0.99, values="1-bit"), DIM, seed=5)
    server = sm.Server(run)
    for round in range(5):
        estimate, mean = play(server, vectors(round)), vectors(round).mean(axis=0)
        assert scales(server) == {None}
        assert not estimate.error_is_bound
        assert estimate.error is not None
        assert estimate.error > 0.5 * np.sum((estimate.mean - mean) ** 2)


def test_one_and_two_bits_have_one_by_default():
    assert [run_of(values).common_scale for values in ("1-bit", "2-bit", "int4", "int8")] == [True, True, False, False]
    with pytest.raises(sm.InvalidInput, match="common_scale is True, False or None, got 2"):
        sm.Balanced(common_scale=2)  # type: ignore[arg-type]


def test_a_journal_whose_open_round_has_a_scale_that_the_draw_no_longer_asks_for_goes_on(tmp_path: Path):
    """Before, int8 had a common scale by default."""
    run, x = run_of("int8"), vectors(1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sm.Balanced, "common_bits", 8)
        with sm.Server(run, journal=tmp_path) as server:
            play(server, vectors(0))
            plans = server.plans(NODES)
            blobs = {node: sm.Client(run, node).encode(x[i], 1, plans[node]) for i, node in enumerate(NODES)}
            for node in NODES[:4]:
                server.accept(node, blobs[node])
            with sm.Server(run) as plain:
                play(plain, vectors(0))
                expected = play(plain, x).mean
    with sm.Server(run, journal=tmp_path) as server:
        assert server.plans(NODES) == plans
        for node in NODES:
            server.accept(node, blobs[node])
        assert server.close_round().mean.tolist() == expected.tolist()
        assert scales(server) == {None}


def test_switched_off_a_node_rounds_by_itself_in_every_round_and_switched_on_in_the_first():
    on, off = sm.Server(run_of()), sm.Server(run_of(common_scale=False))
    first, second = [play(server, vectors(0)).mean.tolist() for server in (on, off)]
    assert first == second
    assert play(on, vectors(1)).mean.tolist() != play(off, vectors(1)).mean.tolist()
    assert on.run.digest != off.run.digest


def test_it_depends_on_earlier_rounds_alone_and_not_on_the_order_of_arrival():
    one, other = sm.Server(run_of()), sm.Server(run_of())
    play(one, vectors(0))
    play(other, vectors(0), order=[3, 1, 7, 0, 2, 6, 5, 4])
    assert scales(one) == scales(other)
    before = scales(one)
    plans = one.plans(NODES)
    one.accept(NODES[0], sm.Client(one.run, NODES[0]).encode(1e3 * vectors(1)[0], 1, plans[NODES[0]]))
    assert scales(one) == before


def test_it_follows_values_that_grow_and_shrink():
    server = sm.Server(run_of("2-bit"))
    for round, size in enumerate([1.0, 1.0, 100.0, 100.0, 0.01, 0.01]):
        play(server, vectors(round, size))
        (scale,) = scales(server)
        assert scale is not None
        assert 2.0 * size < scale < 4.0 * size


def test_no_minority_decides():
    server = sm.Server(run_of())
    x = vectors(0)
    x[:3] *= 1e30
    play(server, x)
    (scale,) = scales(server)
    assert scale is not None
    assert scale < 4.0
    assert next_scale([1e300, 1.0, 1.0], None) == 1.0
    assert next_scale([1e300], None) == 2.0**126


def test_zeros_leave_none():
    server = sm.Server(run_of())
    play(server, np.zeros((N, DIM)))
    assert scales(server) == {None}


def test_a_skipped_round_leaves_it_as_it_was():
    server = sm.Server(run_of())
    play(server, vectors(0))
    before = scales(server)
    server.skip_round()
    assert scales(server) == before


def test_who_has_no_slot_has_no_scale():
    server = sm.Server(run_of())
    play(server, vectors(0))
    server.plans(NODES)
    plan = codec.unpack_plan(server.run, "late", 1, server.plan("late"))
    assert plan == Plan()
    server.accept("late", sm.Client(server.run, "late").encode(vectors(1)[0], 1, server.plan("late")))


def test_where_the_run_lists_its_nodes_a_payload_by_the_list_is_as_good_as_one_by_the_plan():
    run = run_of(nodes=NODES)
    server = sm.Server(run)
    play(server, vectors(0))
    plans, x = server.plans(NODES), vectors(1)
    for i, node in enumerate(NODES):
        blob = sm.Client(run, node).encode(x[i], 1, plans[node] if i % 2 else None)
        again = sm.Client(run, node).encode(x[i], 1, None if i % 2 else plans[node])
        receipt = server.accept(node, blob)
        assert server.accept(node, blob) == receipt
        with pytest.raises(sm.ConflictingPayload):
            server.accept(node, again)
    estimate = server.close_round()
    assert np.mean((estimate.mean - x.mean(axis=0)) ** 2) < 0.5
    assert server.accept(NODES[1], sm.Client(run, NODES[1]).encode(x[1], 1, plans[NODES[1]])).round == 1


def test_nodes_alike_gain_almost_the_square_and_are_unbiased():
    """Eight nodes, one bit: the error of 30 rounds is below a quarter; |z| of its mean over coordinates < 4.5."""
    squares, sums = {}, np.zeros(DIM)
    x = vectors(0)
    for common in (False, True):
        server = sm.Server(run_of(common_scale=common))
        play(server, x)
        off = [play(server, x).mean - x.mean(axis=0) for _ in range(30)]
        squares[common], sums = np.mean(np.square(off)), np.sum(off, axis=0)
    assert squares[True] < squares[False] / 4
    z = sums / np.sqrt(30 * squares[True])
    assert np.mean(z**2) == pytest.approx(1.0, abs=4.5 * np.sqrt(2 / DIM))


def test_a_server_that_was_killed_goes_on_with_the_same_scale(tmp_path: Path):
    run, plain = run_of("2-bit", k=200), sm.Server(run_of("2-bit", k=200))
    for round in range(4):
        with sm.Server(run, journal=tmp_path) as server:  # a new one for each round
            assert server.plans(NODES) == plain.plans(NODES)
            x, y = vectors(round), play(plain, vectors(round)).mean
            for i, node in enumerate(NODES[:4]):
                server.accept(node, sm.Client(run, node).encode(x[i], round, server.plan(node)))
        with sm.Server(run, journal=tmp_path) as server:  # and another one in the middle of it
            for i, node in enumerate(NODES[4:], 4):
                server.accept(node, sm.Client(run, node).encode(x[i], round, server.plan(node)))
            assert server.close_round().mean.tolist() == y.tolist()
            assert server.digest() == plain.digest()
