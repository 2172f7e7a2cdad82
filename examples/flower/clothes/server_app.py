"""The server: FedAvg, alone or inside SparseMean, and the figures of each round."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg, Result, Strategy

import sparsemean as sm
from clothes import task
from sparsemean.integrations.flower import SparseMean
from sparsemean.lab.datasets import Images

app = ServerApp()


class Dense(FedAvg):
    """FedAvg that counts the bytes of the replies, as SparseMean does."""

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        replies = list(replies)
        contents = [reply.content for reply in replies if reply.has_content()]
        arrays, metrics = super().aggregate_train(server_round, replies)
        if metrics is not None:
            metrics["bytes-up"] = sum(record.count_bytes() for content in contents for record in content.values())
        return arrays, metrics


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    data = task.images(str(config["dataset"]))
    checkpoint = Path(str(config["checkpoint"])) if config["checkpoint"] else None

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        """Accuracy on the test pictures; Flower calls this after each round, so the model is kept here too."""
        model = {name: array.numpy() for name, array in arrays.items()}
        if checkpoint:
            fresh = checkpoint.with_name(checkpoint.name + ".new.npz")
            np.savez(fresh, **model)
            fresh.replace(checkpoint)  # all or nothing
        return MetricRecord({"accuracy": task.accuracy(model, data.test_x, data.test_y)})

    model = task.new_model(data)
    if checkpoint and checkpoint.exists():
        with np.load(checkpoint) as saved:
            model = dict(saved)
    arrays = ArrayRecord({name: Array(array) for name, array in model.items()})
    result = strategy(config).start(grid, arrays, num_rounds=int(config["rounds"]), evaluate_fn=evaluate)
    if config["results"]:
        Path(str(config["results"])).write_text(json.dumps(rows(result, data)))


def strategy(config: dict) -> Strategy:
    """FedAvg alone, or inside SparseMean."""
    if config["scheme"] == "dense":
        return Dense(fraction_evaluate=0.0)
    values = {"values": str(config["values"])} if config["values"] else {}
    scheme = sm.named(str(config["scheme"]), k=config["k"], **values)
    return SparseMean(FedAvg(fraction_evaluate=0.0), scheme, seed=7, journal=config["journal"] or None)


def rows(result: Result, data: Images) -> dict:
    """The figures of each round, in plain lists."""
    trained = result.train_metrics_clientapp
    return {
        "dataset": data.name,
        "attribution": data.attribution,
        "accuracy": [metrics["accuracy"] for metrics in result.evaluate_metrics_serverapp.values()],
        "bytes": [metrics.get("sparsemean-bytes-up", metrics.get("bytes-up")) for metrics in trained.values()],
        "metrics": [dict(metrics) for metrics in trained.values()],
    }
