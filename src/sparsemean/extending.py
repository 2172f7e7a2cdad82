"""What encoders, decoders and memories of your own are made from; docs/extending.md shows one of each."""

from __future__ import annotations

from sparsemean._types import Doubles, Floats, Ints
from sparsemean.decoding import Belief, Decoder, RoundTotals
from sparsemean.encoders import Encoder, EncoderFacts, State, Stateful
from sparsemean.memory import Arrival, Memory, MemoryFacts, MemorySpec, MemoryState
from sparsemean.payload import Blocks, Layout, Part, Payload
from sparsemean.sampling import Key, coordinates, words
from sparsemean.state_tree import Tree, array_in, branch

__all__ = [
    "Arrival",
    "Belief",
    "Blocks",
    "Decoder",
    "Doubles",
    "Encoder",
    "EncoderFacts",
    "Floats",
    "Ints",
    "Key",
    "Layout",
    "Memory",
    "MemoryFacts",
    "MemorySpec",
    "MemoryState",
    "Part",
    "Payload",
    "RoundTotals",
    "State",
    "Stateful",
    "Tree",
    "array_in",
    "branch",
    "coordinates",
    "words",
]
