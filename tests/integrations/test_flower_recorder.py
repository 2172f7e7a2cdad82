"""The nodes' updates in a file, by a strategy that changes nothing else."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the Flower integration needs flwr: pip install 'sparsemean[flower]'")

from flwr.app import Message

import sparsemean as sm
from sparsemean.integrations.flower import Recorder, SparseMean
from sparsemean.lab import datasets

from .flower_in_process import NODES, InProcess, client_app, fed, model, trained
from .flower_in_process import server_identity as server_identity


def update(node: int) -> np.ndarray:
    """What the node makes of the first model, less that model."""
    parts = {name: array.numpy() for name, array in model().items()}
    return sm.Layers(parts).vector({name: trained(node, name, part) - part for name, part in parts.items()})


def test_updates_are_recorded_as_compare_reads_them_and_training_is_as_without(tmp_path):
    alone = fed().start(InProcess({node: client_app() for node in NODES}), model(), num_rounds=3)
    recorder = Recorder(fed(), tmp_path / "updates.npy", rounds=2)
    result = recorder.start(InProcess({node: client_app() for node in NODES}), model(), num_rounds=3)
    for name, array in alone.arrays.items():
        np.testing.assert_allclose(result.arrays[name].numpy(), array.numpy(), atol=1e-6)  # FedAvg adds in any order
    assert result.evaluate_metrics_clientapp == alone.evaluate_metrics_clientapp
    recorded = datasets.load(tmp_path / "updates.npy")
    assert isinstance(recorded, datasets.Stream)
    assert recorded.vectors.shape == (2, len(NODES), 1207)
    np.testing.assert_allclose(recorded.vectors[0], [update(node) for node in sorted(NODES)], atol=1e-6)


def test_what_comes_as_payloads_is_not_recorded(tmp_path):
    with pytest.raises(sm.InvalidInput, match="wrap your own strategy"):
        Recorder(SparseMean(fed(), sm.named("auto", k=0.05)), tmp_path / "updates.npy")


def test_a_round_without_one_of_the_nodes_is_left_out(tmp_path, caplog):
    def fails_in_its_second_round(message: Message, context, call_next):
        context.state["asked"] = context.state.get("asked") or message.content["arrays"]
        if context.state["asked"] != message.content["arrays"]:  # those of a later round
            raise RuntimeError("out of memory")
        return call_next(message, context)

    apps = {node: client_app(*([fails_in_its_second_round] if node == 12 else [])) for node in NODES}
    strategy = Recorder(fed(), tmp_path / "updates.npy")
    caplog.set_level("WARNING", logger="flwr.sparsemean")
    strategy.start(InProcess(apps), model(), num_rounds=3)
    assert np.load(tmp_path / "updates.npy").shape == (1, len(NODES), 1207)
    assert "round 2 is not recorded: other nodes answered than before" in caplog.text
