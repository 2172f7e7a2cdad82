"""What a node sends, before it is bytes."""

from sparsemean.payload.blocks import Blocks
from sparsemean.payload.noise import Levels, Octaves
from sparsemean.payload.payload import Layout, Part, Payload
from sparsemean.payload.wrapped import Resolved, Wrapped

__all__ = ["Blocks", "Layout", "Levels", "Octaves", "Part", "Payload", "Resolved", "Wrapped"]
