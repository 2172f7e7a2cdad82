"""What a node hears of the last mean update: how the model changed since it came last. Both sides work it out alike."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from flwr.app import Array, ArrayRecord, Context

from sparsemean.codec import reference_tag
from sparsemean.integrations.flower.arrays import Parted

Singles = npt.NDArray[np.float32]
KEPT = "sparsemean-model"


def singles(parted: Parted) -> Singles:
    """The part of a model that becomes one vector, as float32; a copy."""
    with np.errstate(over="ignore"):
        return parted.start.astype(np.float32)


def change(model: Singles, before: Singles) -> Singles:
    """The reference of a round: what the server changed the model by, in float32 on both sides."""
    with np.errstate(over="ignore", invalid="ignore"):
        return model - before


def heard(context: Context, model: Singles, tag: int) -> Singles | None:
    """The change since the model that this node received last, if it is the one that ``tag`` stands for.

    It is not where the node is new, was restarted, or was not asked in the round before. The model is kept for the next
    time, in place of the last one.
    """
    last = context.state.array_records.get(KEPT)
    context.state[KEPT] = ArrayRecord({KEPT: Array(model)})
    before = None if last is None else last[KEPT].numpy()
    if before is None or before.shape != model.shape:
        return None
    reference = change(model, before)
    return reference if reference_tag(reference) == tag else None
