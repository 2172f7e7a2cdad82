"""The former name of ``sparsemean.extending``, for programs written before; also what has moved elsewhere since."""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING

from sparsemean import extending
from sparsemean._types import Ints
from sparsemean.extending import *  # noqa: F403
from sparsemean.run import Run

MOVED = {  # former name: where it is now, within sparsemean
    "DITHER": "wire.values.dither.LABEL",
    "GROUP": "wire.values.dithered.GROUP",
    "LARGEST_SCALE": "wire.values.dithered.LARGEST_SCALE",
    "LEAST_RATIO": "theory.estimated.LEAST_RATIO",
    "RANKED": "kernels.sample.RANKED",
    "STRIDE": "kernels.sample.STRIDE",
    "Journal": "journal.Journal",
    "Levels": "payload.Levels",
    "Nothing": "memory.Nothing",
    "Offer": "server.roster.Submission",
    "Recollection": "extending.MemoryState",
    "Record": "journal.Record",
    "Sample": "kernels.Sample",
    "Setting": "extending.MemorySpec",
    "Shelf": "memory.rows.Shelf",
    "Summary": "decoding.summary.Summary",
    "Taken": "server.roster.Acceptance",
    "Words": "_types.Words",
    "below": "kernels.sample.below",
    "block_size": "sampling.tile_size",
    "coordinates_between": "sampling.coordinates_between",
    "count_given_sent": "theory.binomial.count_given_sent",
    "fingerprint": "server.fingerprint.fingerprint",
    "journal_folder": "inputs.journal_folder",
    "kept": "decoding.moment_sample.moment_sample",
    "open_frame": "codec.open_frame",
    "pack": "codec.pack",
    "places": "kernels.sample.places",
    "places_of": "kernels.sample.places_of",
    "read_payload": "codec.read_payload",
    "read_tree": "journal.written_tree.read_tree",
    "sample_of": "sampling.sample_of",
    "shuffle_words": "kernels.sample.shuffle_words",
    "stream_index": "kernels.sample.stream_index",
    "stream_of": "sampling.stream_of",
    "stream_word": "kernels.sample.stream_word",
    "written": "journal.written_tree.written",
}
GONE = {  # former name: what to use instead
    "Decoded": "sparsemean.server.rounds.Prepared holds a round that is about to end",
    "Rounds": "use sparsemean.Server, or sparsemean.server.local.LocalRounds for a range of coordinates",
    "rebuilt": "sparsemean.server.local.LocalRounds.open(journal) recovers rounds from a journal",
}

__all__ = [*extending.__all__, *MOVED]

warnings.warn("sparsemean.core is now sparsemean.extending", DeprecationWarning, stacklevel=2)


def coordinates(  # type: ignore[no-redef]
    run: Run, node: str, round: int, lo: int = 0, hi: int | None = None, choice: int = 0
) -> tuple[Ints, int]:
    """The former name of ``Run.coordinates``; that of ``sparsemean.extending`` takes a key."""
    return run.coordinates(node, round, lo=lo, hi=hi, choice=choice)


if not TYPE_CHECKING:  # or every name would seem to be there

    def __getattr__(name: str) -> object:
        """What is not part of ``sparsemean.extending``, with a warning that says where it is now."""
        if name in GONE:
            raise AttributeError(f"sparsemean.core.{name} is gone; {GONE[name]}")
        if name not in MOVED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        warnings.warn(f"sparsemean.core.{name} is now sparsemean.{MOVED[name]}", DeprecationWarning, stacklevel=2)
        module, _, attribute = MOVED[name].rpartition(".")
        return getattr(importlib.import_module(f"sparsemean.{module}"), attribute)
