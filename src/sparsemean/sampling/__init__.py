"""Seeded samples: which coordinates a node sends, drawn alike by the node and the server."""

from sparsemean.sampling.clock import Clock, clock
from sparsemean.sampling.draws import Balanced, Draw, Drawn, Independent
from sparsemean.sampling.epochs import Epochs, epoch_samples, unscheduled
from sparsemean.sampling.keys import VERSION, Key, stream_of, words
from sparsemean.sampling.plan import MAX_SLOTS, Dealt, Plan, Slots, check_dealt, dealt_draws, plan_of
from sparsemean.sampling.samples import (
    MAX_DIM,
    balanced_sample_of,
    coordinates,
    coordinates_between,
    sample_between,
    sample_of,
    tile_counts,
    tile_size,
)
from sparsemean.sampling.slots import slot_order

__all__ = [
    "MAX_DIM",
    "MAX_SLOTS",
    "VERSION",
    "Balanced",
    "Clock",
    "Dealt",
    "Draw",
    "Drawn",
    "Epochs",
    "Independent",
    "Key",
    "Plan",
    "Slots",
    "balanced_sample_of",
    "check_dealt",
    "clock",
    "coordinates",
    "coordinates_between",
    "dealt_draws",
    "epoch_samples",
    "plan_of",
    "sample_between",
    "sample_of",
    "slot_order",
    "stream_of",
    "tile_counts",
    "tile_size",
    "unscheduled",
    "words",
]
