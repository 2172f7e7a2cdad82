"""Several files, or a folder of them: each is a node, named as the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.content import Content, counted
from sparsemean.lab.datasets.rows import Rows, arranged


@dataclass(frozen=True, eq=False)
class NodeFile:
    """The vectors of one node.

    Parameters
    ----------
    vectors
        Shape (rounds, coordinates).
    rounds
        Which rounds these are; None for the first ones.
    origin, notes
        As of ``Content``.
    """

    vectors: Doubles
    rounds: Sequence[int | datetime] | None
    origin: str
    notes: Sequence[str] = ()


def within(folder: Path, endings: Sequence[str]) -> list[Path]:
    """The files in the folder that can be read, ``client2`` before ``client10``."""
    found = [path for path in folder.iterdir() if path.suffix.lower() in endings and path.is_file()]
    kinds = sorted({path.suffix.lower() for path in found})
    if len(kinds) != 1:
        held = f"files of several kinds ({', '.join(kinds)})" if kinds else f"no file that ends in {', '.join(endings)}"
        raise InvalidInput(f"{folder} holds {held}; in a folder each file is a node, and all end in the same")
    return sorted(found, key=_natural)


def read(paths: Sequence[Path], node_file: Callable[[Path], NodeFile], steps: int | None = None) -> Content:
    """The vectors of all nodes, each from its file; ``steps`` as of ``arranged``."""
    files = [node_file(path) for path in paths]
    for path, file in zip(paths, files, strict=True):
        if file.vectors.shape[1] != files[0].vectors.shape[1]:
            raise InvalidInput(
                f"{path} has {counted(file.vectors.shape[1], 'coordinate')}, {paths[0]} has "
                f"{files[0].vectors.shape[1]}; nodes have vectors of the same length"
            )
    owner = [i for i, file in enumerate(files) for _ in range(len(file.vectors))]
    line = [row for file in files for row in range(len(file.vectors))]
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = list(map(str, paths))
    rounds = [round for file in files for round in (file.rounds or range(len(file.vectors)))]
    return arranged(
        Rows(
            path=paths[0].parent,
            numbers=np.concatenate([file.vectors for file in files]),
            nodes=[names[i] for i in owner],
            rounds=rounds,
            place=lambda row: f"{paths[owner[row]].name}, row {line[row]} (counted from 0)",
            columns=[f"coordinate {j}" for j in range(files[0].vectors.shape[1])],
            origin=f"{counted(len(files), 'file')}, each with {files[0].origin}",
            notes=list(dict.fromkeys(note for file in files for note in file.notes)),
        ),
        steps,
    )


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", path.name)]
