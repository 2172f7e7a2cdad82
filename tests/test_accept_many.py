"""Many payloads at once: the same as one after the other, and a bad one stops nobody."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm

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
    for payloads in (iter(BLOBS.items()), tmp_path):
        server = sm.Server(RUN)
        answers = server.accept_many(payloads, weights)
        assert list(answers) == list(BLOBS)
        assert all(isinstance(answer, sm.Receipt) for answer in answers.values())
        assert server.close_round().mean.tobytes() == one_by_one(weights).mean.tobytes()


def test_a_bad_payload_stands_with_its_error_and_the_others_count() -> None:
    server = sm.Server(RUN)
    answers = server.accept_many([("node-0", BLOBS["node-0"]), ("node-1", b"rubbish"), ("node-2", BLOBS["node-3"])])
    assert isinstance(answers["node-0"], sm.Receipt)
    assert isinstance(answers["node-1"], sm.MalformedPayload)
    assert isinstance(answers["node-2"], sm.ForeignPayload)
    assert server.close_round().nodes == ("node-0",)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sm.InvalidInput, match="no folder"):
        sm.Server(RUN).accept_many(tmp_path / "missing")
