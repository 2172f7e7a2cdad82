"""The nodes: an ordinary ClientApp; the mod is all that sparsemean needs here."""

from __future__ import annotations

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from clothes import task
from sparsemean.integrations.flower import sparsemean_mod

app = ClientApp(mods=[sparsemean_mod])


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train the model that came on this node's pictures."""
    node, nodes = int(context.node_config["partition-id"]), int(context.node_config["num-partitions"])
    x, y = task.part(task.images(str(context.run_config["dataset"])), node, nodes)
    model = {name: array.numpy() for name, array in message.content["arrays"].items()}
    seed = 1000 * int(message.content["config"]["server-round"]) + node
    model, loss = task.train(model, x, y, float(context.run_config["rate"]), seed)
    arrays = ArrayRecord({name: Array(np.asarray(array)) for name, array in model.items()})
    metrics = MetricRecord({"num-examples": len(y), "loss": loss})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
