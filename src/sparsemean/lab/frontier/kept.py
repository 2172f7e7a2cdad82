"""Finished points of a sweep in a folder, so that an interrupted sweep can go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.lab.compare import GivenVectors
from sparsemean.lab.experiments.checkpoints import Checkpoints
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.frontier.frontier import Point
from sparsemean.lab.tables import write_whole

MADE_FOR = "frontier.json"


class KeptPoints:
    """A folder for the points of given vectors and a number of seeds; budgets, schemes and kinds may be added later.

    Parameters
    ----------
    folder
        Made where it is missing. One that was made for other vectors, weights or seeds, or that holds anything else,
        is refused.
    given
        The vectors.
    seeds
        How often each point is played.
    """

    def __init__(self, folder: Path, given: GivenVectors, seeds: int) -> None:
        self._data, self._seeds, self._rounds, self._nodes = _digest(given), seeds, len(given.rounds), given.task.nodes
        self._finished = Checkpoints(folder)
        made_for = {"vectors": self._data, "seeds": seeds}
        found = claimed(folder, made_for)
        if found.get("vectors") != made_for["vectors"]:
            raise InvalidInput(f"{folder} keeps points of other vectors, rounds or weights; name another folder")
        if found.get("seeds") != seeds:
            raise InvalidInput(f"{folder} keeps points of {found.get('seeds')} seeds; ask for as many, or name another")

    def write(self, point: Point) -> None:
        """Keep a finished point."""
        self._finished.write(self._setting(point.scheme, point.budget), [point.row()])

    def read(self, scheme: str, budget: int | None) -> Point | None:
        """The point; None where it is not finished, was damaged, or is of another version of the library."""
        rows = self._finished.read(self._setting(scheme, budget))
        try:
            return Point(**rows[0]) if rows else None  # type: ignore[arg-type]
        except TypeError:
            return None

    def _setting(self, scheme: str, budget: int | None) -> Setting:
        options = (("budget", budget or 0), ("seeds", self._seeds))
        return Setting("frontier", "stream", self._data, scheme, None, 0, self._rounds, "", self._nodes, options)


def claimed(folder: Path, made_for: Mapping[str, object]) -> dict[str, object]:
    """What the points in the folder were made for: this, where it is new or empty."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not any(folder.iterdir()):
            write_whole(folder / MADE_FOR, json.dumps(made_for))
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be a folder to keep points in: {error.strerror}") from None
    return _made_for(folder)


def _made_for(folder: Path) -> dict[str, object]:
    try:
        found = json.loads((folder / MADE_FOR).read_text(encoding="utf-8"))
        return dict(found)
    except (OSError, ValueError, TypeError):
        raise InvalidInput(f"{folder} holds something else than points of a frontier; name a new folder") from None


def _digest(given: GivenVectors) -> str:
    """A hash of the vectors and weights."""
    digest = hashlib.blake2b(repr(given.rounds.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(given.rounds, "<f8").data)
    if given.weights is not None:
        digest.update(np.ascontiguousarray(given.weights, "<f8").data)
    return digest.hexdigest()
