"""A user's own vectors from files. ``docs/data.md`` describes the formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets import (
    array_file,
    csv_rows,
    parquet_rows,
    safetensors_file,
    several_files,
    tensors,
    torch_file,
)
from sparsemean.lab.datasets.content import Content, counted
from sparsemean.lab.datasets.find import Directory
from sparsemean.lab.datasets.missing import completed
from sparsemean.lab.datasets.reading import ANY_FILE, Reading
from sparsemean.lab.datasets.rows import Rows, arranged
from sparsemean.lab.datasets.several_files import NodeFile
from sparsemean.lab.datasets.stream import Stream
from sparsemean.lab.datasets.timeline import in_time_order


@dataclass(frozen=True)
class Format:
    """How files of one kind are read.

    Parameters
    ----------
    read
        The content of a file that holds all nodes.
    node_file
        The vectors of a file that holds one node.
    takes
        What of a ``Reading`` is for such files, beside what is for any.
    """

    read: Callable[[Path, Reading], Content]
    node_file: Callable[[Path, Reading], NodeFile]
    takes: tuple[str, ...]


def _table(rows: Callable[[Path, Reading, bool], Rows], *takes: str) -> Format:
    def node_file(path: Path, reading: Reading) -> NodeFile:
        found = rows(path, reading, True)
        return NodeFile(found.numbers, found.rounds, found.origin, found.notes)

    def read(path: Path, reading: Reading) -> Content:
        return arranged(in_time_order(rows(path, reading, False), reading), reading.steps)

    return Format(read, node_file, ("node", "round", "columns", *takes))


def _tensors(loaded: Callable[[Path], Any], read: Callable[[Path, Reading], Content] | None = None) -> Format:
    def whole(path: Path, reading: Reading) -> Content:
        return tensors.content_of(loaded(path), path, reading.array)

    def node_file(path: Path, reading: Reading) -> NodeFile:
        vectors, origin, notes = tensors.vector_of(loaded(path), path, reading.array)
        return NodeFile(vectors, None, origin, notes)

    return Format(read or whole, node_file, ("array",))


TEXT = _table(csv_rows.rows, "header", "decimal")
TORCH = _tensors(torch_file.loaded)

FORMATS: dict[str, Format] = {
    ".npy": replace(_tensors(array_file.stored, array_file.read), takes=()),
    ".npz": _tensors(array_file.members, array_file.read),
    ".csv": TEXT,
    ".tsv": TEXT,
    ".txt": TEXT,
    ".parquet": _table(parquet_rows.rows),
    ".pt": TORCH,
    ".pth": TORCH,
    ".safetensors": _tensors(safetensors_file.loaded),
}

REMEDIES = {
    ".gz": "unpack it first",
    ".zip": "unpack it first",
    ".xlsx": "save the sheet as CSV UTF-8",
    ".xls": "save the sheet as CSV UTF-8",
    ".ods": "save the sheet as CSV UTF-8",
    ".pkl": "pickles may run any code and are not read; save numbers, as with np.save or frame.to_parquet",
    ".pickle": "pickles may run any code and are not read; save numbers, as with np.save or frame.to_parquet",
    ".bin": "save a model's state_dict() as .safetensors or .pt",
}


def load(given: Directory | Sequence[Directory], reading: Reading | None = None) -> Stream:
    """The vectors as (rounds, nodes, coordinates) in float64, with the nodes' names.

    Parameters
    ----------
    given
        A file; or several, or a folder, of which each file is a node.
    reading
        What the file does not say.
    """
    told = reading or Reading()
    paths = [Path(given)] if isinstance(given, str | os.PathLike) else [Path(path) for path in given]
    folder = len(paths) == 1 and paths[0].is_dir()
    name = paths[0].name if len(paths) == 1 else f"{paths[0].name} and {len(paths) - 1} more"
    if folder:
        paths = several_files.within(paths[0], list(FORMATS))
    formats = [_format(path, told) for path in paths]
    if folder or len(paths) > 1:
        if told.node is not None:
            raise InvalidInput(f"{name}: each file is a node; leave --node (node=) out")
        content = several_files.read(paths, lambda path: formats[paths.index(path)].node_file(path, told), told.steps)
    else:
        content = formats[0].read(paths[0], told)
    content = completed(_cut(_transposed(content, told.transpose), told.steps), told.missing)
    if content.vectors.shape[1] == 1:
        content = replace(content, notes=[*content.notes, ONE_NODE])
    return Stream(name, content.vectors, content.nodes, note="; ".join(content.notes), origin=content.origin)


ONE_NODE = (
    "this is one node, whose vector is the mean: where columns are nodes say --transpose, where files are nodes name "
    "several"
)


def _format(path: Path, told: Reading) -> Format:
    ending = path.suffix.lower()
    known = FORMATS.get(ending)
    if known is None:
        remedy = f"; {REMEDIES[ending]}" if ending in REMEDIES else ""
        raise InvalidInput(f"{path}: the ending {path.suffix!r} is unknown; known are {', '.join(FORMATS)}{remedy}")
    if not path.is_file():
        raise InvalidInput(f"{path} is not there, or is no file")
    for name in told.given:
        if name not in (*ANY_FILE, *known.takes):
            able = [ending for ending, each in FORMATS.items() if name in each.takes]
            raise InvalidInput(f"{path}: --{name} ({name}=) is for {', '.join(able)} files; leave it out")
    return known


def _transposed(content: Content, wanted: bool) -> Content:
    """Nodes and coordinates exchanged."""
    if not wanted:
        return content
    return Content(
        content.path,
        content.vectors.transpose(0, 2, 1).copy(),
        content.columns,
        f"{content.origin}, transposed",
        lambda t, i, j: content.place(t, j, i),
        notes=content.notes,
        hint=content.hint,
    )


def _cut(content: Content, steps: int | None) -> Content:
    """Each node's numbers, one round after another, in rounds of so many."""
    if steps is None:
        return content
    rounds, nodes, dim = content.vectors.shape
    series = content.vectors.transpose(1, 0, 2).reshape(nodes, rounds * dim)
    whole, rest = divmod(rounds * dim, steps)
    if not whole:
        raise InvalidInput(
            f"{content.path}: a node has {rounds * dim} numbers, too few for a round of {steps} (--steps)"
        )
    vectors = series[:, : whole * steps].reshape(nodes, whole, steps).transpose(1, 0, 2)

    def place(t: int, i: int, j: int) -> str:
        earlier, coordinate = divmod(t * steps + j, dim)
        return content.place(earlier, i, coordinate)

    lost = f"the last {rest} of each node's numbers, too few for a round, were left out"
    notes = [*content.notes, lost] if rest else content.notes
    origin = f"{content.origin}, cut into rounds of {counted(steps, 'number')}"
    return replace(content, vectors=vectors.copy(), place=place, notes=notes, origin=origin)
