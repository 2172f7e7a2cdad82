"""State trees: state as nested dicts and lists of plain values and arrays, which a journal can write."""

from __future__ import annotations

import numpy as np

from sparsemean._types import Array as Array  # two modules of the journal import it from here

Tree = None | bool | int | float | str | Array | list["Tree"] | dict[str, "Tree"]


def array_in(tree: Tree, name: str) -> Array:
    """The array under this name."""
    found = branch(tree, name)
    if not isinstance(found, np.ndarray):
        raise ValueError(f"{name} is no array")
    return found


def names_in(tree: Tree, name: str) -> list[str]:
    """The list of names under this name."""
    found = branch(tree, name)
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise ValueError(f"{name} is no list of names")
    return [str(item) for item in found]


def branch(tree: Tree, name: str) -> Tree:
    """What stands under this name."""
    if not isinstance(tree, dict) or name not in tree:
        raise ValueError(f"{name} is missing")
    return tree[name]
