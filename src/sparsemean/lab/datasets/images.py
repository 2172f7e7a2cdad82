"""The data of an image set: pictures as rows, with their classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Singles = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Images:
    """Labelled pictures, one per row, every pixel in [0, 1]."""

    name: str
    train_x: Singles
    """(pictures, pixels)"""
    train_y: Labels
    """Indices into ``classes``."""
    test_x: Singles
    test_y: Labels
    classes: tuple[str, ...]
    attribution: str = ""
    """Show this wherever the data, or a figure made from it, is published."""


def unit_rows(parts: Sequence[Bytes], most: int = 255) -> Singles:
    """All pictures of all parts as the rows of one array, divided by the largest possible value.

    >>> unit_rows([np.array([[0, 255]], np.uint8), np.array([[51, 102], [255, 0]], np.uint8)])
    array([[0. , 1. ],
           [0.2, 0.4],
           [1. , 0. ]], dtype=float32)
    """
    rows = np.empty((sum(map(len, parts)), prod(parts[0].shape[1:])), np.float32)
    start = 0
    for part in parts:  # straight into place: the large sets would not fit twice into a small machine
        np.divide(part.reshape(len(part), -1), most, out=rows[start : start + len(part)], dtype=np.float32)
        start += len(part)
    return rows
