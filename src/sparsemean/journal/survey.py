"""Read-only check of a journal before it is opened: whose it is, and whether something was lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sparsemean.errors import DamagedJournal, ForeignJournal
from sparsemean.journal.folder import STATE, STATES, check_no_state
from sparsemean.journal.log import ENDS, Log, readable
from sparsemean.journal.log import NAME as LOG
from sparsemean.journal.synced import Synced

VERSION = 2
READ = (1, 2)  # versions that can be opened; the first round that ends makes them this version
BINDING = "binding"


def survey(folder: Path, binding: dict[str, Any] | None = None) -> bool:
    """Refuse a journal that is another server's, or that lost what cannot be made again.

    Returns whether the write-ahead log lost something. Without a ``binding`` the journal may be anybody's.
    """
    if not (folder / LOG).is_file():
        return False
    # With a rollback journal beside it, its first server died before it had switched to a write-ahead log.
    if not (folder / LOG).stat().st_size or (folder / f"{LOG}-journal").exists():
        check_no_state(folder)
        return False
    with closing(Log(folder, reading=True)) as held:
        facts = {} if held.empty else held.facts()
        if BINDING not in facts:
            check_no_state(folder)
            return False
        with readable("what the journal belongs to"):
            bound = json.loads(facts[BINDING])
            version = bound.pop("version", None)
        if version not in READ:
            raise ForeignJournal(f"{folder} was written by another release; open it with that one")
        for name, theirs, ours in _differences(bound, bound if binding is None else binding):
            raise ForeignJournal(
                f"{folder} is the journal of a server with {name} = {json.dumps(theirs)}, "
                f"not {json.dumps(ours)}; give each server a folder of its own"
            )
        for loss in Synced.noted(held).lost(folder):
            raise DamagedJournal(loss)
        _check_states(folder, held, version)
        return held.lost_commits > 0


def _check_states(folder: Path, held: Log, version: int) -> None:
    """A state has its name once its record is safe: where the record is not there, a part of the log was lost."""
    last, end = (-1 if found is None else found for found in (held.last(), held.last(ENDS)))
    known = {end, last + 1} if version == 1 else {end}  # before version 2 a state had its name before its record
    for path in folder.iterdir():
        named = STATES.fullmatch(path.name)
        if named and named[2] == STATE and int(named[1]) > end and int(named[1]) not in known:
            raise DamagedJournal(f"record {named[1]}, which ended a round, is lost; restore a copy of the journal")


def _differences(held: dict[str, Any], wanted: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name by name, as deep as both have the same names.

    >>> list(_differences({"run": {"dim": 5, "seed": 7}}, {"run": {"dim": 5, "seed": 8}}))
    [('seed', 7, 8)]
    """
    for name in {**wanted, **held}:
        theirs, ours = held.get(name), wanted.get(name)
        if isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() == ours.keys():
            yield from _differences(theirs, ours)
        elif theirs != ours:
            yield name, theirs, ours
