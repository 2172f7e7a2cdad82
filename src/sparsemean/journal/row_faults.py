"""Rows at rest: whether each has the checksum that the state knows of it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from sparsemean.journal.mapped_rows import RowLayout
from sparsemean.memory.row_check import MASK, row_check
from sparsemean.state_tree import Array, Tree, array_in, branch, names_in


def row_faults(folder: Path, state: Tree, changes: Sequence[Tree]) -> Iterator[str]:
    """Rows that are damaged, of all memories within ``state``, in words.

    ``changes`` are what rounds wrote into rows since these were last synced, in order: whether it has reached the file
    or not, the state is the one after them.
    """
    if not isinstance(state, dict):
        return
    if "checks" in state:
        if state["rows"] is not None:
            yield from _table_faults(folder, state, changes)
        return
    for name, inner in state.items():
        of_inner = [each[name] for each in changes if isinstance(each, dict) and name in each]
        yield from row_faults(folder, inner, of_inner)


def _table_faults(folder: Path, state: Tree, changes: Sequence[Tree]) -> Iterator[str]:
    described, written = branch(state, "rows"), _written(changes)
    name, layout = str(branch(described, "file")), RowLayout.of_tree(described)
    nodes, places, checks = names_in(state, "nodes"), array_in(state, "places"), array_in(state, "checks")
    with (folder / name).open("rb") if (folder / name).exists() else io.BytesIO() as file:
        for node, place, check in zip(nodes, places.tolist(), checks.tolist(), strict=True):
            file.seek(layout.offset(place))
            arrays = layout.arrays(bytearray(file.read(layout.row_bytes).ljust(layout.row_bytes, b"\0")))
            for change in written.get(place, ()):
                _write(change, arrays)
            if row_check(arrays) != check & MASK:
                yield f"{name}: what is remembered of node {node!r} is damaged; restore a copy of the journal"


Written = tuple[Tree, slice | None]
"""A round's changes, and which of them; None for a new row, which is all 0."""


def _written(changes: Sequence[Tree]) -> dict[int, list[Written]]:
    """What was written to each place."""
    found: dict[int, list[Written]] = {}
    for each in changes:
        for place in array_in(each, "fresh").tolist():
            found.setdefault(place, []).append((each, None))
        end = 0
        for place, size in zip(array_in(each, "places").tolist(), array_in(each, "sizes").tolist(), strict=True):
            found.setdefault(place, []).append((each, slice(end, end + size)))
            end += size
    return found


def _write(change: Written, arrays: dict[str, Array]) -> None:
    tree, here = change
    for name, array in arrays.items():
        if here is None:
            array[...] = 0
        else:
            array[..., array_in(tree, "at")[here]] = array_in(branch(tree, "arrays"), name)[..., here]
