"""The head: the number of the last record that is safe on the disk, kept outside of the log.

SQLite takes a write-ahead log that was cut short for one that ends there, as after a crash. What was lost by that shows
in the head, which is ahead of the log then. It is a word of eight bytes in a mapped file, so that keeping it takes no
call of the system: the lower five are the number of records, the upper three a checksum of it.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np

from sparsemean.errors import DamagedJournal
from sparsemean.journal.log import guarded
from sparsemean.wire.checksum import crc32

NAME = "head"
WORD = np.dtype("<u8")
COUNT = 40  # bits


def noted_head(folder: Path) -> int | None:
    """Number of the last synced record, −1 before the first; None where there is no head."""
    with guarded("read"):
        try:
            held = (folder / NAME).read_bytes()
        except FileNotFoundError:
            return None
    records = int.from_bytes(held, "little") & ((1 << COUNT) - 1)
    if held != _word(records).to_bytes(WORD.itemsize, "little"):
        raise DamagedJournal(f"{folder / NAME} is damaged; it is made anew when the journal is opened")
    return records - 1


class Head:
    """The head of a journal that is open for writing."""

    def __init__(self, folder: Path, sequence: int) -> None:
        with guarded("opened"):
            file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.ftruncate(file, WORD.itemsize)
                self._word = np.frombuffer(mmap.mmap(file, WORD.itemsize), WORD)
            finally:
                os.close(file)
        self.note(sequence)

    def note(self, sequence: int) -> None:
        """Note that all records up to this one are synced: one 8-byte store, so a crash finds it done or not."""
        self._word[0] = _word(sequence + 1)


def _word(records: int) -> int:
    return (crc32(records.to_bytes(8, "little")) & 0xFFFFFF) << COUNT | records
