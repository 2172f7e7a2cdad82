"""The node's side: a mod that sends what training changed as one payload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MessageType

import sparsemean as sm
from sparsemean.integrations.flower.arrays import Parted
from sparsemean.integrations.flower.heard import heard, singles
from sparsemean.integrations.flower.privacy import check_no_clipping, check_order

# Not numpy's type, so that a strategy that knows nothing of payloads fails instead of averaging them.
STYPE = "sparsemean.v1"
PAYLOAD, WHOLE_PART = "sparsemean", "sparsemean-whole"
RUN, ROUND, PLAN, WHOLE = "sparsemean-run", "sparsemean-round", "sparsemean-plan", "sparsemean-whole"
REFERENCE = "sparsemean-reference"


class SparseMeanMod:
    """Encodes train replies of a ``SparseMean`` strategy; every other message passes untouched.

    Put it first in ``mods``: the first mod is the last to touch a reply, and LocalDpMod has to see the arrays.
    A message that asks for a payload and for the clipping of central differential privacy is refused, wherever the
    clipping mod stands. Where nodes are to hear the broadcast, it keeps the model in ``context.state``.

    Parameters
    ----------
    encoder : Encoder, optional
        What this node encodes with, for schemes that let nodes choose (``sm.OneOf``).
    members : sequence of types
        Encoder classes of your own that the strategy's scheme uses.
    """

    def __init__(self, encoder: sm.Encoder | None = None, members: Sequence[type] = ()) -> None:
        self.encoder = encoder
        self.members = tuple(members)

    def __call__(self, message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
        config = _request(message)
        if config is None:
            return call_next(message, context)
        check_order()  # these two before training, whose result could not be sent
        for record in message.content.config_records.values():
            check_no_clipping(record)
        received = dict(_only_arrays(message)[1])  # held before training, which may replace them
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        key, trained = _only_arrays(reply)
        parted = Parted(received, cast(list[str], config[WHOLE]))
        reference = heard(context, singles(parted), cast(int, config[REFERENCE])) if REFERENCE in config else None
        run = sm.Run.from_json(str(config[RUN]), self.members)
        client = sm.Client(run, str(message.metadata.dst_node_id), self.encoder)
        plan = cast(bytes, config.get(PLAN, b""))
        parts = {PAYLOAD: client.encode(parted.difference(trained), cast(int, config[ROUND]), plan, reference)}
        if parted.whole:
            parts[WHOLE_PART] = parted.pack_whole(trained)
        reply.content[key] = ArrayRecord(
            {name: Array("uint8", (len(data),), STYPE, data) for name, data in parts.items()}
        )
        return reply


sparsemean_mod = SparseMeanMod()


def _request(message: Message) -> ConfigRecord | None:
    """The config in which the strategy asks for a payload, if this is such a message."""
    if message.metadata.message_type.split(".")[0] != MessageType.TRAIN:
        return None
    return next((config for config in message.content.config_records.values() if RUN in config), None)


def _only_arrays(message: Message) -> tuple[str, ArrayRecord]:
    records = message.content.array_records
    if len(records) != 1:
        raise sm.InvalidInput(f"sparsemean_mod needs exactly one ArrayRecord in a train message, found {len(records)}")
    return next(iter(records.items()))
