"""The journal of a server: what it accepted, its state after each round, and the order that makes both safe.

A round ends in this order: the state is written aside and synced; one transaction appends the end of the round and what
it will write into rows; then the state gets its name, and the rows are written. Whenever the process dies, either the
transaction is there, and the rows can be written again from it, or it is not, and the round is still open with all it
had accepted. So a state that has its name but not its record shows that a part of the log was lost.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparsemean._types import Floats
from sparsemean.errors import DamagedJournal, JournalError
from sparsemean.journal.folder import (
    ASIDE,
    LOCK,
    STATE,
    STATES,
    check_files,
    inode,
    keep_damaged,
    state_bytes,
    sync_folder,
)
from sparsemean.journal.head import NAME as HEAD
from sparsemean.journal.head import Head, noted_head
from sparsemean.journal.log import ENDS, LOST, Kind, Log, Record, guarded, readable
from sparsemean.journal.mapped_rows import MappedShelf
from sparsemean.journal.survey import BINDING, VERSION, survey
from sparsemean.journal.synced import Synced
from sparsemean.journal.written_estimate import estimate_in, estimate_tree
from sparsemean.journal.written_tree import read_tree, written
from sparsemean.memory.rows import Shelf
from sparsemean.results import Estimate
from sparsemean.sampling import Dealt
from sparsemean.state_tree import Tree, branch

KEPT_ROUNDS = 2  # ended rounds whose payloads stay, for those who want to look
UNSYNCED = 1 << 28  # bytes of changes to rows after which the rows themselves are synced

log = logging.getLogger("sparsemean.journal")


@dataclass(frozen=True, slots=True)
class Recovered:
    """The state after the last round, what rounds wrote into rows that are not synced, and the open round."""

    state: Tree
    changes: Iterator[Tree]
    records: Iterator[Record]


class Journal:
    """A folder that one server at a time writes to; ``binding`` says what that server must agree on with it."""

    def __init__(self, folder: Path, binding: dict[str, Any], durable_accepts: bool) -> None:
        self._folder = folder
        self._durable_accepts = durable_accepts
        self._process = os.getpid()
        with ExitStack() as undo:
            with guarded("opened"):
                new = [path for path in (folder, *folder.parents) if not path.exists()]
                folder.mkdir(0o700, parents=True, exist_ok=True)
                for path in new:
                    sync_folder(path.parent)
                check_files(folder)
                self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                self._inode = inode(folder)
                # A finalizer, so that the lock also goes where nobody closes the server.
                self._unlocking = weakref.finalize(self, _release, self._lock, self._process)
                self._unlocking.atexit = False
            undo.callback(self._unlock)
            _lock(self._lock, folder)
            _opened.add(self)
            binding = json.loads(json.dumps(binding))
            lost = survey(folder, binding)
            if lost:
                keep_damaged(folder)
            self._log = Log(folder)
            undo.callback(self._log.close)
            self._version = self._bind(binding)
            self._synced = self._started = Synced.noted(self._log)
            self._head = self._opened_head(lost)
            self._open = undo.pop_all()
        self._shelf = MappedShelf(folder)
        self._syncing: threading.Thread | None = None

    def _bind(self, binding: dict[str, Any]) -> int:
        """Note what a new journal belongs to; returns the version it was written by."""
        found = self._log.facts().get(BINDING)
        if found is None:
            with self._log.change(durable=True):
                self._log.note(BINDING, json.dumps({"version": VERSION, **binding}))
            return VERSION
        version: int = json.loads(found)["version"]
        return version

    def _opened_head(self, lost: bool) -> Head:
        """Open the head, and log a warning for records that it knows and the log has lost."""
        last = self._last()
        try:
            noted = noted_head(self._folder)
            safe = last if noted is None else noted
            if noted is None and self._version > 1 and last >= 0:
                log.warning("%s is missing; made anew", self._folder / HEAD)
        except DamagedJournal as error:
            log.warning("%s", error)
            safe = last
        if lost or safe > last:
            log.warning("%s: %s", self._folder, LOST)
        return Head(self._folder, min(safe, last))

    def _last(self) -> int:
        return -1 if (last := self._log.last()) is None else last

    def _unlock(self) -> None:
        if os.getpid() == self._process:  # a forked process has closed its own already
            _opened.discard(self)
            self._unlocking()

    def check_process(self) -> None:
        """Refuse a process that was forked from the one that opened the journal."""
        if os.getpid() != self._process:
            raise JournalError(
                f"{self._folder} was opened by the process that this one was forked from, and belongs to that; "
                "make the server after the fork"
            )

    @property
    def shelf(self) -> Shelf:
        """Where the memory keeps its rows."""
        return self._shelf

    def recovered(self) -> Recovered:
        """What to rebuild the state from, with a new shelf for rows."""
        end = self._log.last(ENDS)
        self._join()
        self._check_folder()
        self._shelf.close()
        self._shelf = MappedShelf(self._folder)
        self._sequence = self._last()
        # Rows are about to be written again, so that those which were just synced no longer are.
        self._syncing, self._started = None, self._synced
        self._unsynced = self._log.changes_bytes(self._synced.sequence)
        with readable("the state of the journal"):
            state = None if end is None else branch(self._read_state(end), "rounds")
        if not self._log.doubtful:  # or the end of a round may still turn out to have been written, and need its state
            self._name_state(end)
            self._clean(end)
        changes = map(read_tree, self._log.changes(self._synced.sequence))
        return Recovered(state, changes, self._log.records(after=-1 if end is None else end))

    def last_estimate(self) -> Estimate | None:
        """The estimate of the round that ended last; None if it was skipped, or none has ended."""
        end = self._log.last(ENDS)
        with readable("the estimate in the journal"):
            return None if end is None else estimate_in(branch(self._read_state(end), "estimate"))

    def accept(self, round: int, payloads: Sequence[tuple[str, bytes, bytes]]) -> None:
        """Append accepted payloads, as (node, weight, payload): all of them, or none and an error."""
        with self._log.change(self._durable_accepts):
            for number, (node, weight, payload) in enumerate(payloads):
                self._log.add(Record(self._sequence + 1 + number, "accept", round, node, weight, payload))
        self._appended(len(payloads), self._durable_accepts)

    def _appended(self, records: int, durable: bool) -> None:
        self._sequence += records
        if durable:
            self._head.note(self._sequence)

    @property
    def sequence(self) -> int:
        """Number of the last record, −1 before the first."""
        return self._sequence

    def rewind(self, sequence: int) -> None:
        """Drop what was appended to the open round after this record; go on from ``recovered``."""
        self._head.note(min(sequence, self._sequence))
        with self._log.change(durable=True):
            self._log.drop_after(sequence)
        self._sequence = sequence

    def forget(self, round: int, node: str) -> None:
        """Append that a node was forgotten."""
        with self._log.change(self._durable_accepts):
            self._log.add(Record(self._sequence + 1, "forget", round, node))
        self._appended(1, self._durable_accepts)

    def deal(self, round: int, terms: Dealt) -> None:
        """Append which nodes have the slots of the round, or the ratio by which the epoch goes on in it."""
        names = json.dumps(terms).encode()
        with self._log.change(self._durable_accepts):
            self._log.add(Record(self._sequence + 1, "deal", round, payload=names))
        self._appended(1, self._durable_accepts)

    def refer(self, round: int, reference: Floats) -> None:
        """Append what payloads of the round may be relative to, in place of the last mean."""
        values = np.ascontiguousarray(reference, "<f4").tobytes()
        with self._log.change(self._durable_accepts):
            self._log.add(Record(self._sequence + 1, "refer", round, payload=values))
        self._appended(1, self._durable_accepts)

    def end(self, kind: Kind, round: int, state: Tree, estimate: Estimate | None, changes: Tree) -> None:
        """Append the end of a round with its estimate, after which ``changes`` may be written into rows."""
        sequence, pieces = self._sequence + 1, [] if changes is None else written(changes)
        self._check_folder()
        self._log.settle()
        self._write_state(sequence, {"rounds": state, "estimate": estimate_tree(estimate)})
        synced = self._synced if self._syncing is None or self._syncing.is_alive() else self._started
        with self._log.change(durable=True):
            self._log.add(Record(sequence, kind, round))
            self._log.add_changes(sequence, pieces)
            self._log.drop_records(before_round=round - KEPT_ROUNDS + 1)
            self._log.drop_changes(up_to=synced.sequence)
            synced.note(self._log)
            if self._version != VERSION:
                held = json.loads(self._log.facts()[BINDING])
                self._log.note(BINDING, json.dumps({**held, "version": VERSION}))
        self._appended(1, durable=True)
        self._synced, self._version = synced, VERSION
        if self._syncing is not None and not self._syncing.is_alive():
            self._syncing = None
        self._unsynced += sum(map(len, pieces))
        self._name_state(sequence)
        self._clean(sequence)

    def _name_state(self, end: int | None) -> None:
        """Rename the state after the last round from its temporary name; an error is repaired at the next opening."""
        if end is not None:
            with suppress(OSError):
                self._aside(end).replace(self._state(end))

    def _clean(self, end: int | None) -> None:
        """Remove states other than the last one; what cannot be removed now is removed later."""
        with suppress(OSError):
            for path in self._folder.iterdir():
                named = STATES.fullmatch(path.name)
                if named and int(named[1]) != end:
                    path.unlink()

    def settled(self) -> None:
        """Rows are written: start a sync of them in the background once enough has changed."""
        self._shelf.rest()
        if self._unsynced > UNSYNCED and self._syncing is None:
            self._started, self._unsynced = Synced(self._sequence, self._shelf.lengths()), 0
            self._syncing = threading.Thread(target=self._sync, name="sparsemean-journal-sync", daemon=True)
            self._syncing.start()

    def _sync(self) -> None:
        try:
            self._shelf.sync()
        except JournalError:
            log.exception("rows could not be synced; their changes stay in the log")
            self._started = self._synced

    def _state(self, sequence: int) -> Path:
        return self._folder / f"{sequence}{STATE}"

    def _aside(self, sequence: int) -> Path:
        return self._folder / f"{sequence}{ASIDE}"

    def _write_state(self, sequence: int, state: Tree) -> None:
        with guarded("written"):
            with self._aside(sequence).open("wb") as file:
                file.writelines(written(state))
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self._folder)

    def _read_state(self, sequence: int) -> Tree:
        blob = state_bytes(self._folder, sequence)
        if blob is None:
            raise DamagedJournal(f"the state after record {sequence} is missing; restore a copy of the journal")
        try:
            return read_tree(blob)
        except DamagedJournal as error:
            raise DamagedJournal(f"{self._state(sequence)}: {error}; restore a copy of the journal") from None

    def _check_folder(self) -> None:
        """Refuse if the path now names another folder than the one that is locked."""
        with guarded("found again"):
            if inode(self._folder) != self._inode:
                raise JournalError(f"{self._folder} is another folder than before; move it back, or make a new server")

    def _join(self) -> None:
        if self._syncing is not None:
            self._syncing.join()

    def close(self) -> None:
        """Close all files, so that another server may open the journal."""
        if os.getpid() == self._process:
            self._join()
            self._shelf.close()
            self._open.close()


_opened: weakref.WeakSet[Journal] = weakref.WeakSet()
_left_alone: list[object] = []


def _in_forked_process() -> None:
    """The lock, and the database, are the parent's: close the one, and never touch the other."""
    for journal in list(_opened):
        journal._unlocking()
        _left_alone.append(vars(journal).get("_log"))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_process)


def _lock(file: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:
        raise JournalError("journals need a POSIX system, such as Linux or macOS") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise JournalError(f"{folder} is in use by another server; close it first") from None


def _release(file: int, process: int) -> None:
    """Unlock and close; a forked process only closes its copy, since the lock is its parent's.

    Closing alone would not do: the lock stays for as long as any copy of the file is open, and a process that was
    forked a moment ago still has one.
    """
    if os.getpid() == process:
        with suppress(ImportError):  # and then nothing was locked
            import fcntl

            fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)
