"""What integrations and members of your own build on: the pieces behind the public names."""

from __future__ import annotations

from sparsemean import sampling
from sparsemean.blocks import Blocks
from sparsemean.codec import open_frame, pack, read_payload
from sparsemean.decoders import Belief, Decoder
from sparsemean.encoders import Encoder, State, Stateful
from sparsemean.encoders import Facts as EncoderFacts
from sparsemean.errors import InvalidInput
from sparsemean.memory import Arrival, Memory, Recollection, Setting
from sparsemean.memory import Facts as MemoryFacts
from sparsemean.payload import Ints, Layout, Part, Payload
from sparsemean.run import Run
from sparsemean.sampling import Key, block_size
from sparsemean.totals import RoundTotals

__all__ = [
    "Arrival",
    "Belief",
    "Blocks",
    "Decoder",
    "Encoder",
    "EncoderFacts",
    "Key",
    "Layout",
    "Memory",
    "MemoryFacts",
    "Part",
    "Payload",
    "Recollection",
    "RoundTotals",
    "Setting",
    "State",
    "Stateful",
    "block_size",
    "coordinates",
    "open_frame",
    "pack",
    "read_payload",
]


def coordinates(
    run: Run, node: str, round: int, lo: int = 0, hi: int | None = None, choice: int = 0
) -> tuple[Ints, int]:
    """The coordinates a node draws in [lo, hi), and the place of the first among the values it sends.

    For encoders whose one part is drawn from the key; lo and hi are multiples of ``block_size(run.dim)`` or run.dim.
    ``choice`` is the payload's, where nodes choose their encoder.

    >>> from sparsemean import Run, named
    >>> drawn, first = coordinates(Run(named("rand-k", k=6), dim=10_000), "a", 0, 4096, 8192)
    >>> len(drawn), first
    (3, 2)
    """
    layout = run.layouts[choice][0]
    if len(run.layouts[choice]) > 1 or layout.where not in ("seeded", "shared"):
        raise InvalidInput(f"{run.scheme.encoder!r} does not draw its coordinates from the key")
    key = run.key(node, round)
    drawn_by = key.shared() if layout.where == "shared" else key
    return sampling.coordinates_between(drawn_by, run.dim, layout.count, lo, run.dim if hi is None else hi)
