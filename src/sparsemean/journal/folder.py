"""The files of a journal: which names are ours, and what a folder must not hold."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from sparsemean.errors import DamagedJournal, InvalidInput
from sparsemean.journal import head
from sparsemean.journal.log import NAME as LOG
from sparsemean.journal.log import guarded
from sparsemean.journal.mapped_rows import SUFFIX as ROWS

STATE, ASIDE, LOCK = ".state", ".aside", "lock"
STATES = re.compile(r"(\d+)(\.state|\.aside)")
NO_MATTER = re.compile(r"\..*|lost\+found")  # what systems put into folders
NO_LOG = "{} has lost its log; restore a copy of the journal"


def check_files(folder: Path) -> None:
    """Refuse a folder that is used for something else, or whose log is gone."""
    names = {path.name for path in folder.iterdir() if not NO_MATTER.fullmatch(path.name)}
    if LOG not in names:
        check_no_state(folder)
        others = sorted(names - {LOCK, f"{LOG}-wal", f"{LOG}-shm"})
        if others:
            raise InvalidInput(f"{folder} holds {others[0]!r} and no journal; give a folder for the journal alone")


def check_no_state(folder: Path) -> None:
    """Refuse a folder that has a head, states or rows, which come after the log."""
    names = [path.name for path in folder.iterdir()]
    if any(name == head.NAME or STATES.fullmatch(name) or name.endswith(ROWS) for name in names):
        raise DamagedJournal(NO_LOG.format(folder))


def state_bytes(folder: Path, sequence: int) -> bytes | None:
    """Bytes of the state after the round that this record ended; a crash may have left it under its temporary name."""
    with guarded("read"):
        for suffix in (STATE, ASIDE):
            with suppress(FileNotFoundError):
                return (folder / f"{sequence}{suffix}").read_bytes()
    return None


def keep_damaged(folder: Path) -> None:
    """Keep a copy of a damaged write-ahead log, before SQLite takes what it cannot read for nothing."""
    with guarded("kept"):
        copies = len(list(folder.glob("damaged-*.wal")))
        shutil.copyfile(folder / f"{LOG}-wal", folder / f"damaged-{copies}.wal")


def inode(folder: Path) -> tuple[int, int]:
    """Device and inode of a folder, which stay the same when it is renamed."""
    found = folder.stat()
    return found.st_dev, found.st_ino


def sync_folder(folder: Path) -> None:
    """fsync a folder, so that the names of new files in it survive a power cut."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
