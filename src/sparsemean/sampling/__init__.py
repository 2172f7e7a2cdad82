"""Seeded samples: which coordinates a node sends, drawn alike by the node and the server."""

from sparsemean.sampling.keys import VERSION, Key, stream_of, words
from sparsemean.sampling.samples import (
    MAX_DIM,
    coordinates,
    coordinates_between,
    sample_of,
    tile_counts,
    tile_size,
)

__all__ = [
    "MAX_DIM",
    "VERSION",
    "Key",
    "coordinates",
    "coordinates_between",
    "sample_of",
    "stream_of",
    "tile_counts",
    "tile_size",
    "words",
]
