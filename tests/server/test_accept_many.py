"""Many payloads at once: the same as one after the other, and a bad one stops nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.server.server import WORTH_A_THREAD

RUN = sm.Run(sm.named("rand-k-spatial-avg", k=0.3), 50)
VECTORS = {f"node-{i}": np.random.default_rng(i).normal(size=50) for i in range(6)}
BLOBS = {node: sm.Client(RUN, node).encode(vector, 0) for node, vector in VECTORS.items()}


def one_by_one(weights: dict[str, float]) -> sm.Estimate:
    server = sm.Server(RUN)
    for node, blob in BLOBS.items():
        server.accept(node, blob, weights.get(node, 1.0))
    return server.close_round()


@pytest.mark.parametrize("weights", [{}, {"node-2": 3.0, "node-4": 0.0}])
def test_an_iterator_and_a_folder_give_what_single_payloads_give(weights: dict[str, float], tmp_path: Path) -> None:
    for node, blob in BLOBS.items():
        (tmp_path / f"{node}.spmn").write_bytes(blob)
    (tmp_path / "notes.txt").write_text("not a payload")
    (tmp_path / "folder.spmn").mkdir()
    for payloads in (iter(BLOBS.items()), BLOBS, tmp_path, str(tmp_path)):
        server = sm.Server(RUN)
        answers = server.accept_many(payloads, weights)
        assert [node for node, _ in answers] == list(BLOBS)
        assert all(isinstance(answer, sm.Receipt) for _, answer in answers)
        assert server.close_round().mean.tobytes() == one_by_one(weights).mean.tobytes()


def test_a_bad_payload_stands_with_its_error_and_the_others_count() -> None:
    server = sm.Server(RUN)
    nothing: Any = None
    other = sm.Client(RUN, "node-0").encode(VECTORS["node-1"], 0)
    sent = [("node-1", b"rubbish"), ("node-0", BLOBS["node-0"]), ("node-2", BLOBS["node-3"])]
    answers = server.accept_many(
        [*sent, ("node-0", other), ("node-4", nothing), ("", b""), ("node-5", BLOBS["node-5"])]
    )
    kinds = [sm.MalformedPayload, sm.Receipt, sm.ForeignPayload, sm.ConflictingPayload]
    assert [type(answer) for _, answer in answers] == [*kinds, sm.InvalidInput, sm.InvalidInput, sm.Receipt]
    assert server.close_round().nodes == ("node-0", "node-5")


def test_what_is_no_batch_of_payloads_is_refused(tmp_path: Path) -> None:
    server: Any = sm.Server(RUN)
    for payloads in (tmp_path / "missing", "missing"):
        with pytest.raises(sm.InvalidInput, match="no folder"):
            server.accept_many(payloads)
    with pytest.raises(sm.InvalidInput, match="pairs of node and bytes"):
        server.accept_many([BLOBS["node-0"]])
    with pytest.raises(sm.InvalidInput, match="dict of node and weight"):
        server.accept_many(BLOBS, weights=[1.0, 2.0])


def test_large_payloads_are_opened_side_by_side_and_answered_in_order() -> None:
    run = sm.Run(sm.named("rand-k-spatial-avg", k=0.5), 200_000)
    assert run.payload_bytes > WORTH_A_THREAD
    blobs = {str(i): sm.Client(run, str(i)).encode(np.full(run.dim, float(i)), 0) for i in range(7)}
    damaged = {**blobs, "3": blobs["3"][:-1] + b"?", "5": b""}
    one_by_one, together = sm.Server(run), sm.Server(run)
    for node in ("0", "1", "2", "4", "6"):
        one_by_one.accept(node, blobs[node])
    answers = together.accept_many(damaged)
    assert [node for node, _ in answers] == list(blobs)
    assert [node for node, answer in answers if isinstance(answer, sm.MalformedPayload)] == ["3", "5"]
    assert together.close_round().mean.tobytes() == one_by_one.close_round().mean.tobytes()


def test_what_came_before_an_iterator_failed_is_counted() -> None:
    run = sm.Run(sm.named("rand-k-spatial-avg", k=0.5), 200_000)
    blobs = {str(i): sm.Client(run, str(i)).encode(np.full(run.dim, float(i)), 0) for i in range(3)}

    def cut_off() -> Iterator[tuple[str, bytes]]:
        yield from blobs.items()
        raise ConnectionError("the network is gone")

    server = sm.Server(run)
    with pytest.raises(ConnectionError):
        server.accept_many(cut_off())
    assert server.close_round().nodes == ("0", "1", "2")


def test_a_round_that_could_not_be_closed_is_as_it_was() -> None:
    """A table that is too short for the second block is found out before the sums of the first are touched."""
    run = sm.Run(sm.Scheme(sm.RandK(k=0.5), sm.Spatial(table=(1.0, 2.0))), 8, blocks=(4, 4))
    server = sm.Server(run, batch_bytes=0)  # what comes is summed at once
    for i in range(3):
        server.accept(str(i), sm.Client(run, str(i)).encode(np.arange(8.0) + i, 0), [float(i < 2), 1.0])
    before = server.digest()
    with pytest.raises(sm.InvalidInput, match="table"):
        server.close_round()
    assert server.digest() == before
