"""Read-only view of a journal for ``sparsemean inspect`` and ``verify``; its server may be running."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sparsemean.errors import DamagedJournal, InvalidInput, JournalError, SparseMeanError
from sparsemean.journal.folder import STATE, check_no_state, state_bytes
from sparsemean.journal.head import NAME as HEAD
from sparsemean.journal.head import noted_head
from sparsemean.journal.log import ENDS, LOST, NAME, Log, Record, readable
from sparsemean.journal.mapped_rows import SUFFIX
from sparsemean.journal.row_faults import row_faults
from sparsemean.journal.survey import BINDING, survey
from sparsemean.journal.synced import Synced
from sparsemean.journal.written_tree import MAGIC, read_tree
from sparsemean.state_tree import Tree, branch
from sparsemean.wire import frame
from sparsemean.wire.compact import ROUNDS, low_round

Result = TypeVar("Result")
CHANGES = "what a round writes into rows"
LOOKS = 20  # at a journal that its server goes on with


@dataclass(frozen=True, slots=True)
class Contents:
    """A journal at a glance: ``waiting`` are the nodes in the open round, ``known`` is how many are remembered.

    ``shard`` says which of how many it is, where the coordinates of a server are shared out.
    """

    run: dict[str, Any]
    missing: str
    clip: list[float | None] | None
    shard: tuple[int, int] | None
    open_round: int
    waiting: tuple[str, ...]
    waiting_bytes: int
    known: int
    kept_rounds: tuple[int, ...]
    state_bytes: int
    rows_bytes: int
    log_bytes: int


def contents(folder: Path | str) -> Contents:
    """What a journal holds."""
    path = Path(folder)
    with readable("the journal"), _moment(path) as (log, end, blob):
        held = {} if log.empty else log.facts()
        if BINDING not in held:
            raise JournalError(f"nothing is in {path} yet; its server died when it was about to begin")
        facts = json.loads(held[BINDING])
        state = None if end is None else branch(_state(end, blob), "rounds")
        open_round = state["round"] if isinstance(state, dict) else None
        since = list(log.records(-1 if end is None else end))
        accepted = [record for record in since if record.kind == "accept"]
        ended = [record.round for record in log.records() if record.kind in ENDS]
        known = state["known"] if isinstance(state, dict) else None
        return Contents(
            run=facts["run"],
            missing=facts["missing"],
            clip=facts["clip"],
            shard=(facts["shard"], facts["shards"]) if "shards" in facts else None,
            open_round=open_round if isinstance(open_round, int) else (since[0].round if since else 0),
            waiting=tuple(record.node for record in accepted),
            waiting_bytes=sum(len(record.payload) for record in accepted),
            known=len(known["nodes"]) if isinstance(known, dict) and isinstance(known["nodes"], list) else 0,
            kept_rounds=tuple(ended),
            state_bytes=_size(path, f"*{STATE}"),
            rows_bytes=_size(path, f"*{SUFFIX}"),
            log_bytes=_size(path, f"{NAME}*"),
        )


def faults(folder: Path | str) -> list[str]:
    """Everything that is wrong with a journal, in words; empty where each record, state, change and row can be read."""
    path, found = Path(folder), list[str]()
    for _ in range(LOOKS):
        before, found = _last(path), _faults(path)
        if not found or before is None or before == _last(path):
            break  # else its server has written meanwhile, so that what was seen may be of two moments
    return found


def _last(path: Path) -> int | None:
    with suppress(SparseMeanError), closing(Log(path, reading=True)) as log:
        return log.last()
    return None


def _faults(path: Path) -> list[str]:
    found = list[str]()
    head = _look(found, lambda: noted_head(path))  # before the log, which can only be ahead of it then
    _look(found, lambda: survey(path))
    _look(found, lambda: _faults_of(path, head, found))
    return found


def _faults_of(path: Path, head: int | None, found: list[str]) -> None:
    with _moment(path) as (log, end, blob):
        _look(found, lambda: found.extend(log.integrity()))
        facts = {} if log.empty else log.facts()
        if BINDING not in facts:
            return
        if log.lost_commits or (head is not None and head > (-1 if (last := log.last()) is None else last)):
            found.append(LOST)
        if json.loads(facts[BINDING])["version"] > 1 and not (path / HEAD).exists():
            found.append(f"{path / HEAD} is missing; it is made anew when the journal is opened")
        compact = "frame" in json.loads(facts[BINDING])["run"]
        _look(found, lambda: found.extend(_records_faults(log, compact)))
        synced = Synced.noted(log)
        changes = _look(found, lambda: [_read(each, CHANGES) for each in log.changes(synced.sequence)])
        if end is not None:
            state = _look(found, lambda: branch(_state(end, blob), "rounds"))
            if state is not None and changes is not None and not any(synced.lost(path)):
                _look(found, lambda: found.extend(row_faults(path, branch(state, "memory"), changes)))


def _look(found: list[str], at: Callable[[], Result]) -> Result | None:
    """Return what ``at`` returns; an error of ours is appended to ``found``, once, and None returned."""
    try:
        with readable("the journal"):
            return at()
    except InvalidInput:
        raise
    except SparseMeanError as error:
        if str(error) not in found:
            found.append(str(error))
        return None


def _records_faults(log: Log, compact: bool) -> Iterator[str]:
    before: Record | None = None
    for record in log.records():
        yield from _record_faults(record, before, compact)
        before = record


def _record_faults(record: Record, before: Record | None, compact: bool) -> Iterator[str]:
    if before is not None and record.sequence != before.sequence + 1:
        yield f"records between {before.sequence} and {record.sequence} are missing"
    if before is not None and record.round != before.round + (before.kind in ENDS):
        yield f"record {record.sequence} is of round {record.round}, after round {before.round}"
    if record.kind in ("deal", "refer"):
        try:
            _ = record.dealt if record.kind == "deal" else record.reference
        except ValueError as error:
            yield f"record {record.sequence}: {error}"
    if record.kind == "accept":
        if record.payload.startswith(MAGIC):  # what of a payload lies in a range of coordinates
            _read(record.payload, f"record {record.sequence}")
            return
        try:
            said = low_round(record.payload) if compact else frame.unpack(memoryview(record.payload))[0].round
            if said != (record.round % ROUNDS if compact else record.round):
                yield f"record {record.sequence} of round {record.round} holds a payload of round {said}"
        except ValueError as error:
            yield f"record {record.sequence}: {error}"


@contextmanager
def _moment(path: Path) -> Iterator[tuple[Log, int | None, bytes | None]]:
    """A consistent snapshot: the log, the last end record, and the bytes of the state after it."""
    if not (path / NAME).is_file():
        if path.is_dir():
            check_no_state(path)
        raise InvalidInput(f"{path} is no journal; give the folder that Server(run, journal=…) was given")
    end: int | None = None
    while True:
        with closing(Log(path, reading=True)) as log:
            before, end = end, log.last(ENDS)
            blob = None if end is None else state_bytes(path, end)
            if blob is not None or end in (None, before):  # or the server ended a round between the two looks
                yield log, end, blob
                return


def _state(end: int, blob: bytes | None) -> Tree:
    if blob is None:
        raise DamagedJournal(f"the state after record {end} is missing; restore a copy of the journal")
    return _read(blob, f"the state after record {end}")


def _read(blob: bytes, what: str) -> Tree:
    try:
        return read_tree(blob)
    except DamagedJournal as error:
        raise DamagedJournal(f"{what}: {error}; restore a copy of the journal") from None


def journals(folder: Path) -> list[Path]:
    """The folder itself, or the journals of a RayServer's shards within it."""
    return sorted(folder.glob("shard-*/")) or [folder]


def _size(path: Path, pattern: str) -> int:
    return sum(file.stat().st_size for file in path.glob(pattern))
