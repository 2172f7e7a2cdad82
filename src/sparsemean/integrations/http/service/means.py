"""Past means, for nodes that add them up and missed some: frames in files beside the journal, or in memory."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from pathlib import Path

from sparsemean.errors import InvalidInput
from sparsemean.integrations.http.files import replace_file

MOST_BYTES = 1 << 28
_NAME = re.compile(r"round-([0-9]{9,19})\.frame")

log = logging.getLogger("sparsemean.http")


class Means:
    """The frames of the last means, the oldest of which go when there is no room.

    Parameters
    ----------
    folder : Path, optional
        Where they outlive this process; without, they are in memory.
    most_bytes : int, default 2**28
        Of all frames together; the last one stays in any case.
    """

    def __init__(self, folder: Path | None = None, most_bytes: int = MOST_BYTES) -> None:
        self._folder, self._most = folder, most_bytes
        self._frames: dict[int, bytes] = {}
        self._sizes: dict[int, int] = {}
        if folder is not None:
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                found = {_NAME.fullmatch(path.name): path for path in folder.iterdir()}
                self._sizes = dict(sorted((int(name[1]), path.stat().st_size) for name, path in found.items() if name))
            except OSError as error:
                raise InvalidInput(f"past means cannot be kept in {folder}: {error}; move it away") from None

    @property
    def first(self) -> int | None:
        """The oldest round whose mean is here; None where there is none."""
        return next(iter(self._sizes), None)

    def add(self, round: int, frame: bytes) -> None:
        """Keep the mean of a round that is later than all here; one that is here stays as it was told."""
        if round in self._sizes:
            return
        if self._folder is None:
            self._frames[round] = frame
        elif not self._write(self._path(round), frame):
            return
        self._sizes[round] = len(frame)
        while len(self._sizes) > 1 and sum(self._sizes.values()) > self._most:
            self._drop(next(iter(self._sizes)))

    def frame(self, round: int) -> bytes | None:
        """The mean of a round; None where it is not here."""
        if self._folder is None:
            return self._frames.get(round)
        try:
            return self._path(round).read_bytes() if round in self._sizes else None
        except FileNotFoundError:  # dropped meanwhile
            return None

    def _path(self, round: int) -> Path:
        assert self._folder is not None
        return self._folder / f"round-{round:09d}.frame"

    def _write(self, path: Path, frame: bytes) -> bool:
        try:
            replace_file(path, frame)
        except OSError as error:
            log.error("%s is not kept, for nodes that miss that mean: %s", path.name, error)
            return False
        return True

    def _drop(self, round: int) -> None:
        del self._sizes[round]
        self._frames.pop(round, None)
        if self._folder is not None:
            with suppress(OSError):
                self._path(round).unlink()
