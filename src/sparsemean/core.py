"""What integrations and members of your own build on: the pieces behind the public names."""

from __future__ import annotations

from sparsemean import sampling
from sparsemean.blocks import Blocks
from sparsemean.codec import open_frame, pack, read_payload
from sparsemean.decoders import Belief, Decoder
from sparsemean.encoders import Encoder, State, Stateful
from sparsemean.encoders import Facts as EncoderFacts
from sparsemean.errors import InvalidInput
from sparsemean.fingerprint import fingerprint
from sparsemean.inputs import journal_folder
from sparsemean.journal import Journal, Record
from sparsemean.journal.written_tree import read_tree, written
from sparsemean.kept import kept
from sparsemean.kernels.sample import (
    RANKED,
    STRIDE,
    Sample,
    Words,
    below,
    places,
    places_of,
    shuffle_words,
    stream_index,
    stream_word,
)
from sparsemean.levels import Levels
from sparsemean.memory import Arrival, Memory, Nothing, Recollection, Setting
from sparsemean.memory import Facts as MemoryFacts
from sparsemean.memory.rows import Shelf
from sparsemean.payload import Doubles, Ints, Layout, Part, Payload
from sparsemean.recovery import rebuilt
from sparsemean.rounds import Decoded, Offer, Rounds, Taken
from sparsemean.run import Run
from sparsemean.sampling import Key, block_size, coordinates_between, sample_of, stream_of
from sparsemean.summary import Summary
from sparsemean.theory.binomial import count_given_sent
from sparsemean.theory.estimated import LEAST_RATIO
from sparsemean.totals import RoundTotals
from sparsemean.tree import Tree, array_in, branch
from sparsemean.wire.values.dither import LABEL as DITHER
from sparsemean.wire.values.dithered import GROUP, LARGEST_SCALE

__all__ = [
    "DITHER",
    "GROUP",
    "LARGEST_SCALE",
    "LEAST_RATIO",
    "RANKED",
    "STRIDE",
    "Arrival",
    "Belief",
    "Blocks",
    "Decoded",
    "Decoder",
    "Doubles",
    "Encoder",
    "EncoderFacts",
    "Journal",
    "Key",
    "Layout",
    "Levels",
    "Memory",
    "MemoryFacts",
    "Nothing",
    "Offer",
    "Part",
    "Payload",
    "Recollection",
    "Record",
    "RoundTotals",
    "Rounds",
    "Sample",
    "Setting",
    "Shelf",
    "State",
    "Stateful",
    "Summary",
    "Taken",
    "Tree",
    "Words",
    "array_in",
    "below",
    "block_size",
    "branch",
    "coordinates",
    "coordinates_between",
    "count_given_sent",
    "fingerprint",
    "journal_folder",
    "kept",
    "open_frame",
    "pack",
    "places",
    "places_of",
    "read_payload",
    "read_tree",
    "rebuilt",
    "sample_of",
    "shuffle_words",
    "stream_index",
    "stream_of",
    "stream_word",
    "written",
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
