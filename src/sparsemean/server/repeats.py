"""Repeats: coordinates that a node sends in two rounds running, where both begin an epoch.

Had the epoch of the first of them gone on, they would be of S and all others of U. So they tell what an epoch would
gain while every round begins one, and no round has to be spent on trying.
"""

from __future__ import annotations

import numpy as np

from sparsemean._types import Doubles, Ints
from sparsemean.kernels import Sample
from sparsemean.memory import Arrival, MemoryState
from sparsemean.payload.blocks import Blocks
from sparsemean.run import Run
from sparsemean.server.terms import Terms

VALUES = 1 << 16
LEAST_NODES = 4
"""At most so many values of a round are looked at, but of at least so many nodes."""


def sent_first(run: Run, node: str, terms: Terms) -> Sample | None:
    """What this node sent in the round in which the epoch of these terms began; None of nodes that are not looked at.

    Where there are many, every round looks at others.
    """
    plan, choice = terms.plan(node), terms.choice(node) if len(run.encoders) > 1 else 0
    if plan.slot is None or plan.epoch is None or choice is None:
        return None
    layout = run.layouts[choice][0]
    looked_at = max(LEAST_NODES, VALUES // layout.count)
    if (plan.slot + plan.epoch * looked_at) % plan.slots >= looked_at:
        return None
    where = layout.drawn(run.key(node, plan.epoch, plan), run.dim)[0].where
    return where if isinstance(where, Sample) else None


@np.errstate(over="ignore", invalid="ignore")  # as in totals: squares of absurd values may overflow
def repeats(arrival: Arrival, memory: MemoryState, blocks: Blocks, before: Ints) -> Doubles:
    """What a payload adds to ``Summary.repeats``, per block; ``before`` are the coordinates sent in the last round.

    Squares w²(x − b)² and number of the values that are sent again; and of all values.
    """
    payload = arrival.payload
    if payload is None or len(payload.parts) != 1:
        return np.zeros((4, len(blocks.sizes)))
    at, values = payload.parts[0].coordinates, payload.parts[0].values
    weight = np.broadcast_to(blocks.at(arrival.weight, at), at.shape)
    squares = (weight * (values.astype(np.float64) - memory.expected(arrival.node, at))) ** 2
    again, counts = np.isin(at, before, assume_unique=True), np.sign(weight)
    return np.stack([blocks.sums_at(at, each) for each in (squares * again, counts * again, squares, counts)])
