"""Which rows are synced: the log has dropped their changes, so their files must not be lost or cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sparsemean.journal.log import Log, guarded

NAME = "synced"


@dataclass(frozen=True, slots=True)
class Synced:
    """Up to which record rows are synced, and how long their files were then."""

    sequence: int = -1
    files: dict[str, int] = field(default_factory=dict)

    @classmethod
    def noted(cls, log: Log) -> Synced:
        """Read from the log; before the first sync, every change is still in the log."""
        return cls(**json.loads(log.facts().get(NAME, "{}")))

    def note(self, log: Log) -> None:
        """Write to the log, within the current transaction."""
        # The one that drops the changes up to ``sequence``: else the log could lack what rows are not sure to have.
        log.note(NAME, json.dumps({"sequence": self.sequence, "files": self.files}))

    def lost(self, folder: Path) -> Iterator[str]:
        """Files that are gone or shorter than they were, in words."""
        for name, length in self.files.items():
            path = folder / name
            with guarded("read"):
                held = path.stat().st_size if path.exists() else None
            if held is None:
                yield f"{path} is missing; restore a copy of the journal"
            elif held < length:  # longer is right: files grow between two syncs
                yield f"{path} is shorter than the {length:,} bytes it had; restore a copy of the journal"
