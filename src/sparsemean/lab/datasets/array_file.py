"""Vectors from NumPy's own files, .npy and .npz, without unpickling anything."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.rows import refuse_non_finite, unnamed

AXES = ("round", "node", "coordinate")


def read(path: Path) -> tuple[Doubles, tuple[str, ...]]:
    """(rounds, nodes, coordinates) from an array of two or three axes; and names for the nodes."""
    array = stored(path)
    if array.dtype.kind not in "iuf":
        raise InvalidInput(f"{path} holds {array.dtype}, not real numbers; convert it with .astype(float)")
    if array.ndim not in (2, 3):
        raise InvalidInput(
            f"{path} has shape {array.shape}; reshape it to (nodes, coordinates) or (rounds, nodes, coordinates)"
        )
    if not array.size:
        raise InvalidInput(f"{path} holds no numbers: its shape is {array.shape}")
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused
        numbers = array.astype(np.float64)
    refuse_non_finite(numbers, path, place)
    vectors = numbers.reshape(-1, *numbers.shape[-2:])
    return vectors, unnamed(vectors.shape[1])


def place(*index: int) -> str:
    """A number's place in the array, for people.

    >>> place(3, 0)
    'node 3, coordinate 0 (counted from 0)'
    """
    named = zip(AXES[-len(index) :], index, strict=True)
    return ", ".join(f"{axis} {i}" for axis, i in named) + " (counted from 0)"


def stored(path: Path) -> npt.NDArray[Any]:
    """The array in a ``.npy`` file, or the chosen one of a ``.npz`` file."""
    try:
        if not zipfile.is_zipfile(path):
            # Mapped, not read: a header that declares more than the file holds is refused before memory is taken.
            return open_memmap(path, mode="r")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            array: npt.NDArray[Any] = archive[chosen(archive.files, path)]
            return array
    except InvalidInput:
        raise
    except (OSError, EOFError, ValueError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise InvalidInput(f"{path} is no array of numbers as NumPy saves them ({error})") from error


def chosen(names: Sequence[str], path: Path) -> str:
    """The array called ``vectors``, or the only one."""
    if "vectors" in names or len(names) == 1:
        return "vectors" if "vectors" in names else names[0]
    raise InvalidInput(
        f"{path} holds {len(names)} arrays ({', '.join(names)}); call the wanted one 'vectors', or save it alone"
    )
