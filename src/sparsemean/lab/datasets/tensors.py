"""Vectors from named tensors: a model's parameters and buffers, one after another, are the vector of a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from sparsemean._types import Array, Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.array_file import of_array, real
from sparsemean.lab.datasets.content import Content, counted, listed

State: TypeAlias = Mapping[str, Array]
"""Arrays by name, such as a model's state dict."""


def content_of(loaded: Any, path: Path, told: str | None) -> Content:
    """The content of an array, of a state, or of a list or dict of states or vectors, one for each node.

    Parameters
    ----------
    loaded
        Lists and dicts of arrays and of what else a file may hold.
    path
        The file, for messages.
    told
        The entry of a dict that is meant, where there are several.
    """
    part, notes = part_of(loaded, path, told)
    if isinstance(part, np.ndarray):
        return of_array(part, path)
    if isinstance(part, Mapping) and not _is_state(part):
        return _of_nodes(list(part.values()), tuple(map(str, part)), path, notes)
    if isinstance(part, Mapping):
        return _of_nodes([part], (), path, notes)
    return _of_nodes(part, (), path, notes)


def vector_of(loaded: Any, path: Path, told: str | None) -> tuple[Doubles, str, list[str]]:
    """(rounds, coordinates) of one node, from an array of one or two axes or a state; where it is from; and notes."""
    part, notes = part_of(loaded, path, told)
    if isinstance(part, Mapping) and _is_state(part):
        vector, origin, more = flat(part, path)
        return vector[None], origin, notes + more
    if isinstance(part, np.ndarray) and part.ndim in (1, 2):
        return real(np.atleast_2d(part), str(path)), "arrays", notes
    held = f"an array of shape {part.shape}" if isinstance(part, np.ndarray) else f"{len(part)} nodes"
    raise InvalidInput(f"{path} holds {held}; where each file is a node, it holds its vector, or one in each round")


def part_of(loaded: Any, path: Path, told: str | None) -> tuple[Any, list[str]]:
    """What holds vectors: all of it, the entry that was told, or the only one that does; and a note of the latter."""
    if told is not None:
        if not isinstance(loaded, Mapping) or told not in loaded:
            raise InvalidInput(f"{path} has no entry {told!r}; {_entries(loaded)}")
        loaded = loaded[told]
    if _holds(loaded):
        return loaded, []
    within = [name for name, entry in loaded.items() if _holds(entry)] if isinstance(loaded, Mapping) else []
    if len(within) == 1:
        return loaded[within[0]], [f"of several entries, {within[0]!r} was read (--array names another)"]
    remedy = f"say which entry, as in --array {within[0]}: {', '.join(within)}" if within else _entries(loaded)
    raise InvalidInput(f"{path} holds no tensor, state dict, or list of these alone; {remedy}")


def flat(state: State, path: Path) -> tuple[Doubles, str, list[str]]:
    """The numbers of a state one after another; which they are; and a note of what is left out."""
    floats = {name: array for name, array in state.items() if array.dtype.kind == "f"}
    others = [name for name in state if name not in floats]
    if not floats:
        raise InvalidInput(f"{path}: no tensor holds floating-point numbers, but {listed(others)}")
    vector = np.concatenate([real(array, f"{path}: {name}").ravel() for name, array in floats.items()])
    note = [f"{listed(others)} left out, as no floating-point numbers"] if others else []
    return vector, f"{counted(len(floats), 'tensor')} {listed(list(floats))}", note


def _of_nodes(given: Sequence[Any], names: tuple[str, ...], path: Path, notes: list[str]) -> Content:
    called = names or tuple(f"{i} (counted from 0)" for i in range(len(given)))
    shapes = [_shapes(each) for each in given]
    for name, shape in zip(called, shapes, strict=True):
        if shape != shapes[0]:
            raise InvalidInput(f"{path}: the tensors of node {name} differ in name or shape from those of {called[0]}")
    if isinstance(given[0], np.ndarray):
        return Content(path, np.stack([real(a, str(path)).ravel() for a in given])[None], names, "arrays", notes=notes)
    read = [flat(state, path) for state in given]
    _, origin, more = read[0]
    return Content(path, np.stack([vector for vector, _, _ in read])[None], names, origin, notes=[*notes, *more])


def _shapes(given: Any) -> Any:
    return given.shape if isinstance(given, np.ndarray) else {name: array.shape for name, array in given.items()}


def _is_state(loaded: Any) -> bool:
    return isinstance(loaded, Mapping) and len(loaded) > 0 and all(isinstance(a, np.ndarray) for a in loaded.values())


def _holds(loaded: Any) -> bool:
    if isinstance(loaded, np.ndarray) or _is_state(loaded):
        return True
    members = list(loaded.values()) if isinstance(loaded, Mapping) else loaded
    if not isinstance(members, list | tuple) or not members:
        return False
    return all(map(_is_state, members)) or all(isinstance(each, np.ndarray) for each in members)


def _entries(loaded: Any) -> str:
    held = listed([repr(name) for name in loaded]) if isinstance(loaded, Mapping) else type(loaded).__name__
    return f"it holds {held}; save a model's state_dict(), or a list of them"
