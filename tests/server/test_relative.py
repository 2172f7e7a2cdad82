"""Nodes that hear the broadcast: differences to the last mean travel, and vectors are what the server counts."""

from __future__ import annotations

import struct
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean.checks import check_scheme
from sparsemean.encoders import Encoder
from sparsemean.journal import faults
from sparsemean.journal.log import Log, Record
from sparsemean.payload import Part, Payload
from sparsemean.server.submissions import submission_of

DIM, N = 300, 6
NODES = [f"n{i}" for i in range(N)]


def run_of(encoder: Encoder | None = None, dim: int = DIM, **scheme: Any) -> sm.Run:
    return sm.Run(sm.Scheme(sm.Relative(encoder or sm.Identity()), **scheme), dim, seed=5)


def vectors(round: int, apart: float = 0.05) -> np.ndarray:
    """A common part that stays, and what nodes have of their own, anew in every round."""
    common = 3.0 * np.random.default_rng(99).normal(size=DIM)
    return common + apart * np.random.default_rng(round).normal(size=(N, DIM))


def play(server: sm.Server, x: np.ndarray, deaf: tuple[int, ...] = ()) -> sm.Estimate:
    plans, reference = server.plans(NODES), server.reference
    for i, node in enumerate(NODES):
        heard = None if i in deaf else reference
        server.accept(node, sm.Client(server.run, node).encode(x[i], server.round, plans[node], heard))
    return server.close_round()


def test_there_is_no_reference_before_the_first_mean_and_then_it_is_the_last_one_as_float32():
    server = sm.Server(run_of())
    assert server.reference is None
    first = play(server, vectors(0))
    second = play(server, vectors(1))
    reference = server.reference
    assert reference is not None
    assert reference.dtype == np.float32
    assert reference.tolist() == second.mean.astype(np.float32).tolist()
    assert first.mean.tolist() != second.mean.tolist()
    assert not reference.flags.writeable
    assert sm.Server(sm.Run(sm.named("rand-k", k=3), DIM)).reference is None


def test_the_mean_is_that_of_the_vectors_whoever_has_heard_the_reference():
    server = sm.Server(run_of())
    for round, deaf in enumerate([(), (), (1, 4), tuple(range(N))]):
        estimate = play(server, vectors(round), deaf)
        assert np.allclose(estimate.mean, vectors(round).mean(axis=0), atol=1e-6)


def test_few_bits_are_as_precise_as_nodes_are_close_to_the_mean():
    """int4 has noise in proportion to the values: 3 without a reference, 0.05 with one, in norm; and error says so."""
    server = sm.Server(run_of(values="int4"))
    played = [(play(server, vectors(round)), vectors(round).mean(axis=0)) for round in range(4)]
    errors = [float(np.sum((estimate.mean - mean) ** 2)) for estimate, mean in played]
    assert max(errors[2:]) < errors[0] / 500
    for error, (estimate, _) in zip(errors, played, strict=True):
        assert estimate.error == pytest.approx(error, rel=0.5)  # 300 coordinates: a chi-square of that many


@pytest.mark.parametrize("encoder", [sm.RandK(60), sm.RandK(60, draw=sm.Balanced()), sm.RandK(60, draw=sm.Epochs())])
def test_a_memory_sees_the_vectors_themselves(encoder):
    """With exact values a reference changes nothing: to rounding, the means are those of the encoder alone."""
    relative = sm.Server(sm.Run(sm.Scheme(sm.Relative(encoder), memory=sm.Hybrid(), values="float64"), DIM, seed=5))
    plain = sm.Server(sm.Run(sm.Scheme(encoder, memory=sm.Hybrid(), values="float64"), DIM, seed=5))
    for round in range(5):
        heard, without = play(relative, vectors(round)), play(plain, vectors(round))
        assert np.allclose(heard.mean, without.mean, rtol=0, atol=1e-12)


def test_another_mean_than_the_last_is_refused_and_nothing_changes():
    server = sm.Server(run_of())
    old = play(server, vectors(0)).mean
    new = play(server, vectors(1)).mean
    client, before = sm.Client(server.run, "n0"), server.digest()
    for wrong in (old, new.astype(np.float16), new + 1e-3, np.zeros(DIM)):
        with pytest.raises(sm.OutOfStep, match=r"not the reference here; encode with reference=server\.reference"):
            server.accept("n0", client.encode(vectors(2)[0], 2, reference=wrong))
        assert server.digest() == before
    server.accept("n0", client.encode(vectors(2)[0], 2, reference=new))


def test_a_reference_before_the_first_mean_is_refused():
    server = sm.Server(run_of())
    with pytest.raises(sm.OutOfStep):
        server.accept("n0", sm.Client(server.run, "n0").encode(vectors(0)[0], 0, reference=np.zeros(DIM)))


def test_a_payload_of_the_last_round_that_comes_again_gets_its_receipt():
    server = sm.Server(run_of())
    play(server, vectors(0))
    blob = sm.Client(server.run, "n0").encode(vectors(1)[0], 1, reference=server.reference)
    receipt = server.accept("n0", blob)
    assert server.accept("n0", blob) == receipt
    with pytest.raises(sm.ConflictingPayload):  # the same vector, without the reference
        server.accept("n0", sm.Client(server.run, "n0").encode(vectors(1)[0], 1))
    server.close_round()
    assert server.accept("n0", blob) == receipt
    server.skip_round()
    with pytest.raises(sm.WrongRound):
        server.accept("n0", blob)


def test_a_skipped_round_leaves_it_as_it_was():
    server = sm.Server(run_of())
    mean = play(server, vectors(0)).mean
    server.skip_round()
    assert server.reference is not None
    assert server.reference.tolist() == mean.astype(np.float32).tolist()
    assert np.allclose(play(server, vectors(2)).mean, vectors(2).mean(axis=0), atol=1e-6)


def test_a_server_that_was_killed_goes_on_with_the_same_reference(tmp_path: Path):
    run = run_of(sm.RandK(100, draw=sm.Balanced()), values="int8", memory=sm.Hybrid(), decoder=sm.Spatial("learned"))
    plain = sm.Server(run)
    for round in range(4):
        x = vectors(round)
        expected = play(plain, x).mean
        with sm.Server(run, journal=tmp_path) as server:
            plans, reference = server.plans(NODES), server.reference
            for i in range(3):
                blob = sm.Client(run, NODES[i]).encode(x[i], round, plans[NODES[i]], reference)
                server.accept(NODES[i], blob)
        with sm.Server(run, journal=tmp_path) as server:  # the open round is read once more, by the same reference
            for i in range(N):
                server.accept(NODES[i], sm.Client(run, NODES[i]).encode(x[i], round, plans[NODES[i]], server.reference))
            assert server.close_round().mean.tolist() == expected.tolist()
            assert server.digest() == plain.digest()


def test_where_the_mean_is_beyond_float32_there_is_none():
    run = sm.Run(sm.Scheme(sm.Relative(sm.RandK(1)), values="float64"), 1000, seed=1)
    server = sm.Server(run)
    server.accept("a", sm.Client(run, "a").encode(np.full(1000, 1e38), 0))
    assert server.close_round().mean.max() > 1e40
    assert server.reference is None
    server.accept("a", sm.Client(run, "a").encode(np.ones(1000), 1))


def test_a_value_beyond_float32_with_its_reference_is_refused():
    run = run_of(dim=2)
    server = sm.Server(run)
    server.accept("a", sm.Client(run, "a").encode([3e38, 1.0], 0))
    server.close_round()
    before, reference = server.digest(), server.reference
    assert reference is not None
    forged = Payload((Part(np.arange(2), np.array([3e38, 0.0], np.float32)),))
    blob = codec.pack(run, "b", 1, forged, basis=codec.reference_tag(reference))
    with pytest.raises(sm.NonFiniteValues, match="beyond float32"):
        server.accept("b", blob)
    assert server.digest() == before


def test_the_bytes_are_the_difference_and_its_reference_stands_in_the_basis():
    run = run_of(dim=3)
    blob = sm.Client(run, "a").encode([1.5, 2.0, -1.0], 7, reference=[1.0, 2.0, 4.0])
    assert np.frombuffer(blob[64:], "<f4").tolist() == [0.5, 0.0, -5.0]
    assert blob[56:60] == struct.pack("<I", zlib.crc32(struct.pack("<3f", 1.0, 2.0, 4.0)))
    plain = sm.Client(run, "a").encode([1.5, 2.0, -1.0], 7)
    assert np.frombuffer(plain[64:], "<f4").tolist() == [1.5, 2.0, -1.0]
    assert plain[56:60].hex() == "00000000"
    assert blob[:56] == plain[:56]


@pytest.mark.parametrize(
    "scheme",
    [
        sm.Scheme(sm.Relative(sm.Identity()), values="1-bit"),
        sm.Scheme(sm.Relative(sm.RandK(0.3)), sm.Spatial("learned"), sm.Hybrid(), values="int4"),
        sm.Scheme(sm.Relative(sm.RandK(0.4, draw=sm.Balanced())), memory=sm.Shared(), values="2-bit"),
        sm.Scheme(sm.OneOf((sm.Relative(sm.RandK(0.5)), sm.Relative(sm.RandK(0.2))))),
        sm.Scheme(sm.Relative(sm.TopK(0.2)), memory=sm.PerNode()),
    ],
    ids=["identity", "hybrid", "balanced", "one-of", "top-k"],
)
def test_it_passes_the_conformance_checks(scheme):
    check_scheme(scheme, dim=20, trials=150)
    run = sm.Run(scheme, 20)
    assert sm.Run.from_json(run.to_json()) == run


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: sm.Relative(sm.Wangni(0.1)),
        lambda: sm.Relative(sm.Relative(sm.RandK(0.1))),
        lambda: sm.Relative(sm.OneOf((sm.RandK(0.1), sm.RandK(0.2)))),
        lambda: sm.Relative(sm.Difference(sm.RandK(0.1))),
        lambda: sm.Difference(sm.Relative(sm.RandK(0.1))),
        lambda: sm.ErrorFeedback(sm.Relative(sm.TopK(0.1))),
    ],
)
def test_what_cannot_be_relative_is_refused(wrong):
    with pytest.raises(sm.IncompatibleScheme, match="Relative"):
        wrong()


@pytest.mark.parametrize("name", ["rand-k", "diana"])
def test_other_encoders_take_no_reference(name):
    client = sm.Client(sm.Run(sm.named(name, k=3), DIM), "a")
    with pytest.raises(sm.InvalidInput, match="encode without reference="):
        client.encode(np.ones(DIM), 0, reference=np.ones(DIM))


@pytest.mark.parametrize("wrong", [np.ones(DIM - 1), np.full(DIM, np.nan), "mean"])
def test_a_wrong_reference_is_named_as_that(wrong):
    with pytest.raises(sm.InvalidInput, match=r"^reference=: "):
        sm.Client(run_of(), "a").encode(np.ones(DIM), 0, reference=wrong)


def of_another_kind(round: int) -> np.ndarray:
    """What nodes hear in place of the mean: here a step towards it."""
    mean: np.ndarray = vectors(round).mean(axis=0)
    return 0.7 * mean


def test_the_reference_of_a_round_may_be_given_and_the_next_is_the_last_mean_again():
    server = sm.Server(run_of(values="int4"))
    server.refer_to(of_another_kind(0))
    given = server.reference
    assert given is not None
    assert given.tolist() == of_another_kind(0).astype(np.float32).tolist()
    with pytest.raises(sm.OutOfStep):
        server.accept("n0", sm.Client(server.run, "n0").encode(vectors(0)[0], 0, reference=np.zeros(DIM)))
    first = play(server, vectors(0))
    plain = play(sm.Server(run_of(values="int4")), vectors(0))  # which has no reference in the first round
    truth = vectors(0).mean(axis=0)
    assert np.sum((first.mean - truth) ** 2) < 0.3 * np.sum((plain.mean - truth) ** 2)  # 0.3² of the energy is left
    assert server.reference is not None
    assert server.reference.tolist() == first.mean.astype(np.float32).tolist()


@pytest.mark.parametrize("encoder", [sm.Identity(), sm.RandK(60, draw=sm.Balanced())], ids=["identity", "balanced"])
def test_it_is_settled_once_anything_of_the_round_is_told(encoder):
    server = sm.Server(run_of(encoder))
    server.refer_to(np.ones(DIM))
    server.refer_to(of_another_kind(0))  # nothing has been told
    play_one = sm.Client(server.run, "n0")
    plans = server.plans(NODES)
    if not server.run.planned:
        server.accept("n0", play_one.encode(vectors(0)[0], 0, reference=server.reference))
    before = server.digest()
    with pytest.raises(sm.InvalidInput, match=r"before these, or after close_round\(\)"):
        server.refer_to(np.ones(DIM))
    server.refer_to(of_another_kind(0))  # the same once more
    assert server.digest() == before
    server.accept("n0", play_one.encode(vectors(0)[0], 0, plans["n0"], server.reference))
    server.close_round()
    server.refer_to(np.ones(DIM))


def test_a_payload_that_was_read_by_a_reference_that_is_no_longer_there_is_refused(monkeypatch):
    """Else it would be counted, and its record could not be read again."""
    server = sm.Server(run_of())
    server.refer_to(np.ones(DIM))
    blob = sm.Client(server.run, "n0").encode(vectors(0)[0], 0, reference=server.reference)
    read = submission_of

    def meanwhile(*given: Any) -> Any:
        submission = read(*given)
        server.refer_to(np.zeros(DIM))
        return submission

    monkeypatch.setattr("sparsemean.server.server.submission_of", meanwhile)
    with pytest.raises(sm.OutOfStep):
        server.accept("n0", blob)


@pytest.mark.parametrize("wrong", [np.ones(DIM - 1), np.full(DIM, np.inf), np.full(DIM, 1e39)])
def test_what_cannot_be_a_reference_is_refused(wrong):
    server = sm.Server(run_of())
    before = server.digest()
    with pytest.raises(sm.InvalidInput):
        server.refer_to(wrong)
    assert server.digest() == before
    with pytest.raises(sm.InvalidInput):
        sm.Client(server.run, "a").encode(np.ones(DIM), 0, reference=wrong)
    with pytest.raises(sm.InvalidInput, match="sends no differences to a reference; use Relative"):
        sm.Server(sm.Run(sm.named("rand-k", k=3), DIM)).refer_to(np.ones(DIM))


def test_a_given_reference_is_in_the_journal_before_it_is_told(tmp_path: Path):
    """And a server that was killed at any moment goes on by it, to the bit."""
    run = run_of(sm.RandK(100, draw=sm.Balanced()), values="int8", memory=sm.Hybrid(), decoder=sm.Spatial("learned"))
    plain = sm.Server(run)
    for round in range(3):
        x = vectors(round)
        plain.refer_to(of_another_kind(round))
        reference = plain.reference
        plans = plain.plans(NODES)
        for moment in range(3):  # given; plans told; some payloads here
            with sm.Server(run, journal=tmp_path) as server:
                if moment == 0:
                    server.refer_to(of_another_kind(round))
                if moment == 1:
                    assert server.plans(NODES) == plans
                if moment == 2:
                    server.accept("n0", sm.Client(run, "n0").encode(x[0], round, plans["n0"], server.reference))
                assert np.array_equal(np.array(server.reference), np.array(reference))
        expected = play(plain, x).mean
        with sm.Server(run, journal=tmp_path) as server:
            assert play(server, x).mean.tolist() == expected.tolist()
            assert server.digest() == plain.digest()
    assert faults(tmp_path) == []


def test_a_reference_in_the_journal_that_does_not_fit_is_refused(tmp_path: Path):
    for at, blob in enumerate([b"\0" * 4 * (DIM + 1), b"\0" * 5, struct.pack("<f", np.inf) * DIM]):
        folder = tmp_path / str(at)
        with sm.Server(run_of(), journal=folder) as server:
            server.refer_to(np.ones(DIM))
        with closing(Log(folder)) as log, log.change(durable=True):
            log.drop_after(-1)
            log.add(Record(0, "refer", 0, payload=blob))
        with pytest.raises(sm.JournalError):
            sm.Server(run_of(), journal=folder)
        assert (faults(folder) != []) == (len(blob) % 4 > 0)
