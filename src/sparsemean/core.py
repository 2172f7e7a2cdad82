"""What integrations and members of your own build on: the pieces behind the public names."""

from __future__ import annotations

from sparsemean import sampling
from sparsemean._types import Doubles, Ints, Words
from sparsemean.codec import open_frame, pack, read_payload
from sparsemean.decoding.decoders import Belief, Decoder
from sparsemean.decoding.moment_sample import moment_sample
from sparsemean.decoding.summary import Summary
from sparsemean.decoding.totals import RoundTotals
from sparsemean.encoders import Encoder, EncoderFacts, State, Stateful
from sparsemean.errors import InvalidInput
from sparsemean.inputs import journal_folder
from sparsemean.journal import Journal, Record
from sparsemean.journal.written_tree import read_tree, written
from sparsemean.kernels.sample import (
    RANKED,
    STRIDE,
    Sample,
    below,
    places,
    places_of,
    shuffle_words,
    stream_index,
    stream_word,
)
from sparsemean.memory import Arrival, Memory, MemoryFacts, MemorySpec, MemoryState, Nothing
from sparsemean.memory.rows import Shelf
from sparsemean.payload import Layout, Part, Payload
from sparsemean.payload.blocks import Blocks
from sparsemean.payload.noise import Levels
from sparsemean.run import Run
from sparsemean.sampling import Key, coordinates_between, sample_of, stream_of, tile_size
from sparsemean.server.fingerprint import fingerprint
from sparsemean.server.recovery import rebuilt
from sparsemean.server.rounds import Acceptance, Decoded, Rounds, Submission
from sparsemean.state_tree import Tree, array_in, branch
from sparsemean.theory.binomial import count_given_sent
from sparsemean.theory.estimated import LEAST_RATIO
from sparsemean.wire.values.dither import LABEL as DITHER
from sparsemean.wire.values.dithered import GROUP, LARGEST_SCALE

__all__ = [
    "DITHER",
    "GROUP",
    "LARGEST_SCALE",
    "LEAST_RATIO",
    "RANKED",
    "STRIDE",
    "Acceptance",
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
    "MemorySpec",
    "MemoryState",
    "Nothing",
    "Part",
    "Payload",
    "Record",
    "RoundTotals",
    "Rounds",
    "Sample",
    "Shelf",
    "State",
    "Stateful",
    "Submission",
    "Summary",
    "Tree",
    "Words",
    "array_in",
    "below",
    "branch",
    "coordinates",
    "coordinates_between",
    "count_given_sent",
    "fingerprint",
    "journal_folder",
    "moment_sample",
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
    "tile_size",
    "written",
]


def coordinates(
    run: Run, node: str, round: int, lo: int = 0, hi: int | None = None, choice: int = 0
) -> tuple[Ints, int]:
    """The coordinates a node draws in [lo, hi), and the place of the first among the values it sends.

    For encoders whose one part is drawn from the key; lo and hi are multiples of ``tile_size(run.dim)`` or run.dim.
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
