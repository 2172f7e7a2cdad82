"""Memories: what the server expects of a node before it hears from it, one a file."""

from sparsemean.memory.base import Arrival, Memory, MemoryFacts, MemorySpec, MemoryState, Past
from sparsemean.memory.hybrid import Hybrid
from sparsemean.memory.nothing import Nothing
from sparsemean.memory.offset import Offset
from sparsemean.memory.per_node import PerNode
from sparsemean.memory.shared import Shared
from sparsemean.memory.shared_stable import SharedStable
from sparsemean.memory.window import Window

__all__ = [
    "Arrival",
    "Hybrid",
    "Memory",
    "MemoryFacts",
    "MemorySpec",
    "MemoryState",
    "Nothing",
    "Offset",
    "Past",
    "PerNode",
    "Shared",
    "SharedStable",
    "Window",
]
