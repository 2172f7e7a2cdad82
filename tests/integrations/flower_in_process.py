"""Flower without its network: a grid in this process, a small model, and nodes that train it in one known step."""

# Flower's records hold unions of all they may hold, and a test knows which of them it put there.
# mypy: disable-error-code="union-attr, operator"
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the Flower integration needs flwr: pip install 'sparsemean[flower]'")

from flwr.app import Array, ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

from sparsemean.integrations.flower import sparsemean_mod

NODES = (11, 12, 13, 14)
Next = Callable[[Message, Context], Message]


@pytest.fixture(autouse=True)
def server_identity(monkeypatch):
    """Who sends messages in this process: Flower sets it when it starts a ServerApp."""
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


class InProcess(Grid):
    """Hands each message to a ClientApp in this process; None in place of one is a node that never answers.

    ``contexts`` are what each node keeps between messages: one that is taken away is that of a restarted node.
    """

    def __init__(self, apps: Mapping[int, ClientApp | None]) -> None:
        self.apps = dict(apps)
        self.contexts: dict[int, Context] = {}
        self.replies: list[list[Message]] = []

    def set_run(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    run = property(set_run)
    create_message = push_messages = pull_messages = set_run

    def get_node_ids(self) -> Iterable[int]:
        return list(self.apps)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        replies = []
        for message in messages:
            node = message.metadata.dst_node_id
            app = self.apps[node]
            if app is None:
                continue
            context = self.contexts.setdefault(node, Context(1, node, {}, RecordDict(), {}))
            try:
                replies.append(app(message, context))
            except Exception as error:  # as a SuperNode does
                replies.append(Message(Error(code=0, reason=f"{type(error)}:<'{error}'>"), reply_to=message))
        self.replies.append(replies)
        return replies


def model(rows: int = 40) -> ArrayRecord:
    rng = np.random.default_rng(0)
    return ArrayRecord(
        {
            "out.weight": Array(rng.normal(size=(rows, 30)).astype(np.float32)),
            "in.bias": Array(rng.normal(size=7).astype(np.float32)),
        }
    )


def trained(node: int, name: str, array: np.ndarray) -> np.ndarray:
    """What this node makes of an array: a step that depends on the node, the array and its values."""
    rng = np.random.default_rng([node, len(name)])
    return (0.9 * array + 0.1 * rng.normal(size=array.shape) + 0.2).astype(array.dtype)


def examples(node: int) -> int:
    return 10 * (node - 10)


Step = Callable[[int, str, np.ndarray], np.ndarray]


def client_app(*mods, step: Step = trained, metrics: dict[str, Any] | None = None) -> ClientApp:
    app = ClientApp(mods=list(mods))

    @app.train()
    def train(message: Message, context: Context) -> Message:
        node = context.node_id
        arrays = {name: step(node, name, array.numpy()) for name, array in message.content["arrays"].items()}
        found: dict[str, Any] = {"num-examples": examples(node), "loss": 1.0 * node} if metrics is None else metrics
        content = {"arrays": ArrayRecord({name: Array(np.asarray(array)) for name, array in arrays.items()})}
        return Message(RecordDict({**content, "metrics": MetricRecord(found)}), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        return Message(RecordDict({"metrics": MetricRecord({"num-examples": 1, "accuracy": 0.5})}), reply_to=message)

    return app


def honest(nodes: Iterable[int] = NODES, **settings) -> dict[int, ClientApp | None]:
    return {node: client_app(sparsemean_mod, **settings) for node in nodes}


def fed(kind: type[FedAvg] = FedAvg, **settings) -> FedAvg:
    return kind(min_train_nodes=1, min_evaluate_nodes=1, min_available_nodes=1, **settings)


def vector(arrays: ArrayRecord) -> np.ndarray:
    return np.concatenate([array.numpy().ravel() for array in arrays.values()])
