"""SQLite's write-ahead log as a file: whether something was committed behind a place that is damaged.

SQLite takes a frame that does not fit its checksum for the end of the log, as it is after a crash, and whatever was
committed behind it for never written. Section 4 of SQLite's file format has the layout and the checksum.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

HEADER = struct.Struct(">8I")  # magic, version, page size, number, two salts, two sums
FRAME = struct.Struct(">6I")  # page, size of the database if this ends a commit, two salts, two sums
MAGIC = 0x377F0682  # the lowest bit says that sums are over big-endian words
MASK = 0xFFFFFFFF


def lost_commits(path: Path) -> int:
    """How many commits stand behind a damaged frame; 0 where there is no log."""
    data = _read(path)
    if len(data) < HEADER.size:
        return 0
    magic, _, page, _, *salts, first, second = HEADER.unpack_from(data)
    order = ">u4" if magic & 1 else "<u4"
    sums = _sums(np.frombuffer(data, order, 6), (0, 0))
    if magic & ~1 != MAGIC or sums != (first, second):  # SQLite takes all of it for nothing
        return int(len(data) > HEADER.size)
    # Sums go on from frame to frame, so that behind a damaged one none can be checked: there, salts have to do. A frame
    # that is cut short ends no commit.
    whole, lost = True, 0
    for at in range(HEADER.size, len(data) - FRAME.size - page + 1, FRAME.size + page):
        _, ends, *of_frame, first, second = FRAME.unpack_from(data, at)
        if whole:
            body = np.frombuffer(data, order, page // 4, at + FRAME.size)
            sums = _sums(np.concatenate([np.frombuffer(data, order, 2, at), body]), sums)
            whole = of_frame == salts and sums == (first, second)
        # Behind the last frame may stand those of an earlier log, whose salts both differ; a flipped bit changes one.
        ours = any(one == other for one, other in zip(of_frame, salts, strict=True))
        lost += not whole and ours and ends > 0
    return lost


def _read(path: Path) -> bytes:
    """All of it at one moment: a server that begins its log anew writes another header."""
    while path.is_file():
        data = path.read_bytes()
        with path.open("rb") as file:
            if file.read(HEADER.size) == data[: HEADER.size]:
                return data
    return b""


def _sums(words: npt.NDArray[np.integer], before: tuple[int, int]) -> tuple[int, int]:
    """Of pairs of words x, y: s ← s + x + t, then t ← t + y + s, from (s, t) before, modulo 2³².

    >>> _sums(np.array([1, 2, 3, 4]), (0, 0))  # (1, 3), then (7, 14)
    (7, 14)
    """
    # The recurrence is linear: two dot products, in uint32 since that wraps, instead of a loop over a page's words.
    (ss, st), (ts, tt), of_s, of_t = _factors(words.size)
    s, t = before
    x = words.astype(np.uint32)
    s, t = ss * s + st * t + int(np.dot(of_s, x)), ts * s + tt * t + int(np.dot(of_t, x))
    return s & MASK, t & MASK


@lru_cache(maxsize=8)
def _factors(size: int) -> tuple[tuple[int, int], tuple[int, int], Words, Words]:
    """What s and t after so many words are multiples of: of s and t before, and of each word."""
    of_s, of_t = np.empty(size, np.uint32), np.empty(size, np.uint32)
    (a, b), (c, d) = (1, 0), (0, 1)  # of a pair later on: s' = a·s + b·t, t' = c·s + d·t
    for at in range(size - 2, -1, -2):  # x moves (s, t) by (1, 1), y by (0, 1)
        of_s[at : at + 2] = (a + b) & MASK, b
        of_t[at : at + 2] = (c + d) & MASK, d
        a, b, c, d = (a + b) & MASK, (a + 2 * b) & MASK, (c + d) & MASK, (c + 2 * d) & MASK
    return (a, b), (c, d), of_s, of_t
