"""The journal of a server: what it accepted, its state after each round, and the order that makes both safe.

A round ends in this order: the state is written aside, synced and renamed; one transaction appends the end of the round
and what it will write into rows; only then are the rows written. Whenever the process dies, either the transaction is
there, and the rows can be written again from it, or it is not, and the round is still open with all it had accepted.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsemean.errors import DamagedJournal, ForeignJournal, JournalError
from sparsemean.journal.log import ENDS, LOST, Kind, Log, Record, guarded
from sparsemean.journal.mapped_rows import SUFFIX, MappedShelf
from sparsemean.journal.synced import Synced
from sparsemean.journal.written_estimate import estimate_in, estimate_tree
from sparsemean.journal.written_tree import read_tree, written
from sparsemean.memory.rows import Shelf
from sparsemean.results import Estimate
from sparsemean.tree import Tree, branch

VERSION = 1
KEPT_ROUNDS = 2  # ended rounds whose payloads stay, for those who want to look
UNSYNCED = 1 << 28  # bytes of changes to rows after which the rows themselves are synced
STATE, ASIDE, LOCK = ".state", ".aside", "lock"
BINDING = "binding"
NO_LOG = "{} has lost its log; restore a copy of the journal"

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
        with ExitStack() as undo:
            with guarded("opened"):
                new = [path for path in (folder, *folder.parents) if not path.exists()]
                folder.mkdir(0o700, parents=True, exist_ok=True)
                for path in new:
                    _sync_folder(path.parent)
                self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            undo.callback(os.close, self._lock)
            _lock(self._lock, folder)
            self._log = Log(folder)
            undo.callback(self._log.close)
            self._bind(json.loads(json.dumps(binding)))
            if self._log.lost_commits:
                log.warning("%s: %s", folder, LOST)
            self._synced = self._started = Synced.noted(self._log)
            for loss in self._synced.lost(folder):
                raise DamagedJournal(loss)
            self._open = undo.pop_all()
        self._shelf = MappedShelf(folder)
        self._syncing: threading.Thread | None = None

    def _bind(self, binding: dict[str, Any]) -> None:
        found = self._log.facts().get(BINDING)
        if found is None:
            if any(path.suffix in (STATE, SUFFIX) for path in self._folder.iterdir()):
                raise DamagedJournal(NO_LOG.format(self._folder))
            with self._log.change(durable=True):
                self._log.note(BINDING, json.dumps({"version": VERSION, **binding}))
            return
        held = json.loads(found)
        if held.pop("version", None) != VERSION:
            raise ForeignJournal(f"{self._folder} was written by another release; open it with that one")
        for name, theirs, ours in _differences(held, binding):
            raise ForeignJournal(
                f"{self._folder} is the journal of a server with {name} = {json.dumps(theirs)}, "
                f"not {json.dumps(ours)}; give each server a folder of its own"
            )

    @property
    def shelf(self) -> Shelf:
        """Where rows of memory stand."""
        return self._shelf

    def recovered(self) -> Recovered:
        """What to go on from, with a new shelf."""
        end = self._log.last(ENDS)
        self._join()
        self._shelf.close()
        self._shelf = MappedShelf(self._folder)
        self._sequence = -1 if (last := self._log.last()) is None else last
        # Rows are about to be written again, so that those which were just synced no longer are.
        self._syncing, self._started = None, self._synced
        self._unsynced = self._log.changes_bytes(self._synced.sequence)
        if not self._log.doubtful:  # or the end of a round may still turn out to have been written, and need its state
            self._clean(end)
        changes = map(read_tree, self._log.changes(self._synced.sequence))
        if end is None:
            return Recovered(None, changes, self._log.records())
        return Recovered(branch(self._read_state(end), "rounds"), changes, self._log.records(after=end))

    def last_estimate(self) -> Estimate | None:
        """The estimate of the round that ended last; None if it was skipped, or none has ended."""
        end = self._log.last(ENDS)
        return None if end is None else estimate_in(branch(self._read_state(end), "estimate"))

    def accept(self, round: int, offers: Sequence[tuple[str, bytes, bytes]]) -> None:
        """Append accepted payloads, as (node, weight, payload): all of them, or none and an error."""
        with self._log.change(self._durable_accepts):
            for number, (node, weight, payload) in enumerate(offers):
                self._log.add(Record(self._sequence + 1 + number, "accept", round, node, weight, payload))
        self._sequence += len(offers)

    @property
    def sequence(self) -> int:
        """Number of the last record, −1 before the first."""
        return self._sequence

    def rewind(self, sequence: int) -> None:
        """Drop what was appended to the open round after this record; go on from ``recovered``."""
        with self._log.change(durable=True):
            self._log.drop_after(sequence)
        self._sequence = sequence

    def forget(self, round: int, node: str) -> None:
        """Append that a node was forgotten."""
        with self._log.change(self._durable_accepts):
            self._log.add(Record(self._sequence + 1, "forget", round, node))
        self._sequence += 1

    def end(self, kind: Kind, round: int, state: Tree, estimate: Estimate | None, changes: Tree) -> None:
        """Append the end of a round with its estimate, after which ``changes`` may be written into rows."""
        sequence, pieces = self._sequence + 1, [] if changes is None else written(changes)
        self._log.settle()
        self._write_state(sequence, {"rounds": state, "estimate": estimate_tree(estimate)})
        synced = self._synced if self._syncing is None or self._syncing.is_alive() else self._started
        with self._log.change(durable=True):
            self._log.add(Record(sequence, kind, round))
            self._log.add_changes(sequence, pieces)
            self._log.drop_records(before_round=round - KEPT_ROUNDS + 1)
            self._log.drop_changes(up_to=synced.sequence)
            synced.note(self._log)
        self._sequence, self._synced = sequence, synced
        if self._syncing is not None and not self._syncing.is_alive():
            self._syncing = None
        self._unsynced += sum(map(len, pieces))
        self._clean(sequence)

    def _clean(self, end: int | None) -> None:
        """Remove states of rounds that did not end, and of earlier ones; what cannot be removed now can be later."""
        with suppress(OSError):
            for path in self._folder.iterdir():
                if path.suffix == ASIDE or (path.suffix == STATE and path.stem != str(end)):
                    path.unlink()

    def settled(self) -> None:
        """The rows are written; now and then they are synced, meanwhile."""
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

    def _write_state(self, sequence: int, state: Tree) -> None:
        aside = self._folder / f"{sequence}{ASIDE}"
        with guarded("written"):
            with aside.open("wb") as file:
                file.writelines(written(state))
                file.flush()
                os.fsync(file.fileno())
            aside.replace(self._state(sequence))
            _sync_folder(self._folder)

    def _read_state(self, sequence: int) -> Tree:
        with guarded("read"):
            try:
                return read_tree(self._state(sequence).read_bytes())
            except FileNotFoundError:
                raise DamagedJournal(f"the state after record {sequence} is missing; restore a copy of it") from None

    def _join(self) -> None:
        if self._syncing is not None:
            self._syncing.join()

    def close(self) -> None:
        """Let another server have it."""
        self._join()
        self._shelf.close()
        self._open.close()


def _differences(held: dict[str, Any], wanted: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name by name, as deep as both have the same names.

    >>> list(_differences({"run": {"dim": 5, "seed": 7}}, {"run": {"dim": 5, "seed": 8}}))
    [('seed', 7, 8)]
    """
    for name, ours in wanted.items():
        theirs = held.get(name)
        if isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() == ours.keys():
            yield from _differences(theirs, ours)
        elif theirs != ours:
            yield name, theirs, ours


def _lock(file: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:
        raise JournalError("journals need a POSIX system, such as Linux or macOS") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise JournalError(f"{folder} is in use by another server; close it first") from None


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
