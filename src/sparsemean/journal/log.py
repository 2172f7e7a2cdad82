"""The log: what happened, in order, in an SQLite database; a record is whole or not there at all."""

from __future__ import annotations

import functools
import json
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from sparsemean._types import Floats
from sparsemean.errors import DamagedJournal, JournalError, SparseMeanError
from sparsemean.journal.wal import lost_commits
from sparsemean.sampling import Dealt, check_dealt
from sparsemean.wire.checksum import crc32

Kind = Literal["accept", "forget", "deal", "refer", "close", "skip"]
ENDS: tuple[Kind, ...] = ("close", "skip")
PIECE = 1 << 26  # SQLite takes blobs up to a billion bytes; longer ones than this are cut
NAME = "log.sqlite"
FAILURES = "failures"
LOST = (
    f"{NAME}-wal is damaged, or was cut by a power cut before it was synced: what was committed behind that is lost; "
    "nodes may send again, or restore a copy of the journal"
)
KINDS = get_args(Kind)
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE records (
    sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, round INTEGER NOT NULL, node TEXT NOT NULL,
    weight BLOB NOT NULL, length INTEGER NOT NULL, checksum INTEGER NOT NULL
);
CREATE UNIQUE INDEX once ON records (round, node) WHERE kind = 'accept';
CREATE TABLE payloads (sequence INTEGER, piece INTEGER, bytes BLOB NOT NULL, PRIMARY KEY (sequence, piece));
CREATE TABLE changes (sequence INTEGER, piece INTEGER, bytes BLOB NOT NULL, PRIMARY KEY (sequence, piece));
"""


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that happened.

    Attributes
    ----------
    sequence : int
        Its number, one more than that of the record before.
    kind : {"accept", "forget", "deal", "refer", "close", "skip"}
        A payload was accepted; a node was forgotten; slots were given to nodes; a reference was given; the round ended.
    round : int
    node : str
        Whose payload, or who was forgotten.
    weight, payload : bytes
        Of an accepted payload; where slots were given, ``payload`` is the list of the nodes, or of lists of them, as
        JSON, and where an epoch goes on, its ratio; of a reference its values as float32, little-endian.
    """

    sequence: int
    kind: Kind
    round: int
    node: str = ""
    weight: bytes = b""
    payload: bytes = b""

    @property
    def dealt(self) -> Dealt:
        """The nodes that slots were given to, or the ratio by which an epoch goes on."""
        dealt: Dealt = json.loads(self.payload)
        check_dealt(dealt)
        return dealt

    @property
    def reference(self) -> Floats:
        """What payloads of the round may be relative to."""
        return np.frombuffer(self.payload, "<f4").astype(np.float32)

    @property
    def checksum(self) -> int:
        """CRC-32 of all of it."""
        node = self.node.encode()
        start = struct.pack("<qqII", self.sequence, self.round, len(node), len(self.weight))
        return crc32(self.payload, crc32(b"".join((start, self.kind.encode(), node, self.weight))))


class Log:
    """The database of a journal, for one writer; ``reading=True`` never writes and needs no writer to be away."""

    def __init__(self, folder: Path, reading: bool = False) -> None:
        path = folder / NAME
        with readable(NAME), guarded("opened"):
            self._lost = lost_commits(folder / f"{NAME}-wal")  # before SQLite cuts it off there
            where = f"{path.absolute().as_uri()}?mode={'ro' if reading else 'rwc'}"
            self._database = sqlite3.connect(where, uri=True, isolation_level=None, check_same_thread=False)
            self.doubtful = False
            try:
                self._begin(reading)
            except BaseException:
                self._database.close()
                raise

    def _begin(self, reading: bool) -> None:
        if reading:
            self._database.execute("BEGIN")  # all that is read is of one moment
            self._check_schema()
            return
        self._check_schema()
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute(f"PRAGMA journal_size_limit = {PIECE}")
        if self.empty:
            with self._transaction():
                for statement in SCHEMA.split(";"):
                    self._database.execute(statement)
        self._database.execute("BEGIN IMMEDIATE")
        self._database.execute("PRAGMA user_version = 1")  # refused where the file could be opened for reading only
        self._database.execute("ROLLBACK")

    def _check_schema(self) -> None:
        """Refuse a database whose tables are not ours, or no longer; ``empty`` says that there are none yet."""
        found = _tables(self._database)
        if found and found != _our_tables():
            raise DamagedJournal(f"the tables of {NAME} are not those of a journal; restore a copy of it")
        self.empty = not found

    @property
    def lost_commits(self) -> int:
        """How many commits were behind a damaged place of the write-ahead log; 0 where writing failed and left such."""
        return 0 if FAILURES in self.facts() else self._lost

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    @contextmanager
    def change(self, durable: bool) -> Iterator[None]:
        """One transaction; ``durable``: it is synced, and survives a power cut."""
        self.settle()
        with guarded("written"):
            try:
                self._database.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                with self._transaction():
                    yield
            except BaseException:
                self.doubtful = True
                with suppress(JournalError):
                    self.settle()
                raise

    def settle(self) -> None:
        """Write over what a change that failed has left in the write-ahead log.

        If it is whole there, and only the sync failed, it would pass for one that succeeded after a crash. ``doubtful``
        says that this is still to be done.
        """
        if self.doubtful:
            with guarded("written"):
                self._database.execute("PRAGMA synchronous = FULL")
                with self._transaction():
                    self.note(FAILURES, str(int(self.facts().get(FAILURES, 0)) + 1))
            self.doubtful = False

    def facts(self) -> dict[str, str]:
        """What is noted about the journal itself."""
        with readable("what is noted in the journal"):
            found = {}
            for name, value, checksum in self._database.execute("SELECT name, value, checksum FROM facts").fetchall():
                if checksum != crc32(f"{name} {value}".encode()):
                    raise DamagedJournal(f"{name!r} in the journal is damaged; restore a copy of it")
                found[name] = value
            return found

    def note(self, name: str, value: str) -> None:
        """Note a fact, in place of an earlier one of this name."""
        checksum = crc32(f"{name} {value}".encode())
        self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (name, value, checksum))

    def add(self, record: Record) -> None:
        """Append a record."""
        row = (record.sequence, record.kind, record.round, record.node, record.weight)
        length = len(record.payload)
        self._database.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, length, record.checksum))
        self._add_pieces("payloads", record.sequence, [record.payload])

    def add_changes(self, sequence: int, pieces: Sequence[bytes | memoryview]) -> None:
        """Append what a round is going to write into rows."""
        self._add_pieces("changes", sequence, pieces)

    def _add_pieces(self, table: str, sequence: int, pieces: Iterable[bytes | memoryview]) -> None:
        cut = (memoryview(each)[at : at + PIECE] for each in pieces for at in range(0, len(each), PIECE))
        self._database.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?)", ((sequence, number, piece) for number, piece in enumerate(cut))
        )

    def records(self, after: int | None = None) -> Iterator[Record]:
        """Records in order, each checked: all that are kept or, if none of them is missing, those after this one."""
        with readable("the records of the journal"):
            found = "SELECT sequence, kind, round, node, weight, length, checksum FROM records WHERE sequence > ?"
            due = None if after is None else after + 1
            begin = -1 if after is None else after
            for *fields, length, checksum in self._database.execute(f"{found} ORDER BY sequence", (begin,)):
                sequence, kind, round, node, weight = fields
                if kind not in KINDS or not (type(sequence) is type(round) is int and isinstance(weight, bytes)):
                    raise _damaged_record(sequence)
                record = Record(sequence, kind, round, node, weight, self._pieces("payloads", sequence))
                if length != len(record.payload) or checksum != record.checksum:
                    raise _damaged_record(sequence)
                if due is not None:
                    if sequence != due:
                        raise DamagedJournal(f"record {due} of the journal is missing; restore a copy of it")
                    due += 1
                yield record

    def changes(self, after: int) -> Iterator[bytes]:
        """What the rounds ended by later records wrote into rows, in order."""
        with readable("what rounds write into rows"):
            found = "SELECT DISTINCT sequence FROM changes WHERE sequence > ? ORDER BY sequence"
            for (sequence,) in self._database.execute(found, (after,)).fetchall():
                yield self._pieces("changes", sequence)

    def _pieces(self, table: str, sequence: int) -> bytes:
        found = f"SELECT bytes FROM {table} WHERE sequence = ? ORDER BY piece"
        pieces = [piece for (piece,) in self._database.execute(found, (sequence,))]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def last(self, kinds: Sequence[Kind] = KINDS) -> int | None:
        """Sequence of the last record of these kinds."""
        with readable("the records of the journal"):
            marks = ", ".join("?" * len(kinds))
            ((sequence,),) = self._database.execute(
                f"SELECT max(sequence) FROM records WHERE kind IN ({marks})", tuple(kinds)
            ).fetchall()
            return None if sequence is None else int(sequence)

    def changes_bytes(self, after: int) -> int:
        """How many bytes ``changes`` gives."""
        with guarded("read"):
            found = "SELECT coalesce(sum(length(bytes)), 0) FROM changes WHERE sequence > ?"
            ((size,),) = self._database.execute(found, (after,)).fetchall()
            return int(size)

    def drop_records(self, before_round: int) -> None:
        """Delete records of earlier rounds."""
        old = "SELECT sequence FROM records WHERE round < ?"
        self._database.execute(f"DELETE FROM payloads WHERE sequence IN ({old})", (before_round,))
        self._database.execute("DELETE FROM records WHERE round < ?", (before_round,))

    def drop_after(self, sequence: int) -> None:
        """Delete records of the open round after this one."""
        late = "sequence > max(?, (SELECT coalesce(max(sequence), -1) FROM records WHERE kind IN ('close', 'skip')))"
        self._database.execute(f"DELETE FROM payloads WHERE {late}", (sequence,))
        self._database.execute(f"DELETE FROM records WHERE {late}", (sequence,))

    def drop_changes(self, up_to: int) -> None:
        """Delete changes of rows that are synced."""
        self._database.execute("DELETE FROM changes WHERE sequence <= ?", (up_to,))

    def integrity(self) -> list[str]:
        """Findings of SQLite's integrity check."""
        with readable(NAME):
            found = [line for (line,) in self._database.execute("PRAGMA integrity_check").fetchall()]
            return [] if found == ["ok"] else [f"{NAME}: {line}" for line in found]


def _damaged_record(sequence: object) -> DamagedJournal:
    return DamagedJournal(f"record {sequence} of the journal is damaged; restore a copy of it")


def _tables(database: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return database.execute("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master ORDER BY rowid").fetchall()


@functools.cache
def _our_tables() -> list[tuple[Any, ...]]:
    """What SQLite itself has to say of our tables and indices."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(SCHEMA)
        return _tables(database)


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Bytes at rest may be anything: whatever goes wrong while they are read becomes an error of ours."""
    try:
        with guarded("read"):
            yield
    except SparseMeanError:
        raise
    except Exception as error:
        raise DamagedJournal(f"{what} cannot be read ({error!r}); restore a copy of the journal") from error


@contextmanager
def guarded(done: str) -> Iterator[None]:
    """Raise errors of files and of SQLite as JournalError or DamagedJournal."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise JournalError(f"the journal was closed, and could not be {done}; make a new server") from error
    except sqlite3.DatabaseError as error:
        # The last eight bits are the kind of error. SQLite calls it damage, too, when the disk fails to read.
        kind = DamagedJournal if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE else JournalError
        remedy = "restore a copy of it" if kind is DamagedJournal else "nothing was changed"
        raise kind(f"the journal could not be {done}: {error}; {remedy}") from error
    except OSError as error:
        raise JournalError(f"the journal could not be {done}: {error}; nothing was changed") from error
