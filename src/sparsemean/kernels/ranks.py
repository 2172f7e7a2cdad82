"""Dither shared out among the senders of a coordinate: common words, shifted by a sender's rank (docs/sampling.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sparsemean.kernels.hands import ranked
from sparsemean.kernels.sample import Sample, places
from sparsemean.kernels.stream import stream_word
from sparsemean.kernels.twin import twin

Halves: TypeAlias = npt.NDArray[np.uint32]

_TILES = 16  # drawn at a time, so that temporaries stay in the cache


def rank_words_numpy(sample: Sample, stream: Sequence[int], out: Halves) -> None:
    """Write w_P + ⌊r·2³²/s⌋, modulo 2³², for each value of a balanced sample, in the order of the wire.

    P is the place of the value in the whole vector, r the rank of the sample's slot among the s that take this place.
    The w are halves of the words of the stream, the low one first: the same for all slots.

    Parameters
    ----------
    sample
        Balanced, so that ranks are known.
    stream
        The two words of the stream.
    out
        One number for each of the k values.
    """
    full = sample.dim // sample.size
    at = places(sample, 0, sample.tiles)
    for first in range(0, sample.tiles, _TILES):
        whole = np.arange(first, min(first + _TILES, full))
        short = [full] if first <= full < min(first + _TILES, sample.tiles) else []
        for tiles, m in ((whole, sample.size), (np.array(short, np.int64), sample.dim - full * sample.size)):
            if not tiles.size:
                continue
            begin, end = at[tiles[0]], at[tiles[-1] + 1]
            if begin == end:
                continue
            place, rank, senders = ranked(sample, tiles, m)
            place += np.repeat(tiles * sample.size, np.diff(at[tiles[0] : tiles[-1] + 2]))
            words = stream_word(stream, (place >> 1).astype(np.uint64))
            halves = words >> ((place & 1) << 5).astype(np.uint64)
            out[begin:end] = (halves + ((rank << 32) // senders).astype(np.uint64)) & np.uint64(0xFFFFFFFF)


rank_words = twin(rank_words_numpy, "rank_words", values=lambda sample, stream, out: out.size)
