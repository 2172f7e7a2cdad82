"""Vectors from NumPy's own files, .npy and .npz, without unpickling anything."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap

from sparsemean._types import Array, Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.content import Content, place
from sparsemean.lab.datasets.reading import Reading

UNREADABLE = (OSError, EOFError, ValueError, MemoryError, zipfile.BadZipFile, zlib.error)


def read(path: Path, reading: Reading) -> Content:
    """(rounds, nodes, coordinates) from an array of two or three axes."""
    if not zipfile.is_zipfile(path):
        if reading.array is not None:
            raise InvalidInput(f"{path} holds one array; leave --array (array=) out")
        return of_array(stored(path), path)
    with _opened(path) as archive:
        name = chosen(archive.files, path, reading.array)
        return of_array(_member(archive, name, path), path, f"the array {name!r}")


def of_array(array: Array, path: Path, called: str = "an array") -> Content:
    """The content of an array of two or three axes."""
    numbers = real(array, str(path))
    if numbers.ndim not in (2, 3):
        raise InvalidInput(
            f"{path} has shape {array.shape}; reshape it to (nodes, coordinates) or (rounds, nodes, coordinates)"
        )
    if not numbers.size:
        raise InvalidInput(f"{path} holds no numbers: its shape is {array.shape}")
    shape = " × ".join(map(str, array.shape))
    vectors = numbers.reshape(-1, *numbers.shape[-2:])
    return Content(path, vectors, origin=f"{called}, {shape}", place=lambda *index: place(*index[-array.ndim :]))


def real(array: Array, what: str) -> Doubles:
    """The array in float64; refused where it does not hold real numbers."""
    kind = array.dtype.kind
    if kind not in "iuf":
        raise InvalidInput(f"{what} holds {array.dtype}, not real numbers; {_REMEDIES.get(kind, _CONVERT)}")
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused
        return array.astype(np.float64)


_CONVERT = "convert it with .astype(float)"
_REMEDIES = {
    "c": "make a vector of both parts: np.concatenate([x.real, x.imag], axis=-1)",
    "V": "make a plain array of it: numpy.lib.recfunctions.structured_to_unstructured(x)",
    "M": "take the dates out",
    "m": "convert it with x / np.timedelta64(1, 's')",
}


def stored(path: Path) -> Array:
    """The array in a ``.npy`` file."""
    try:
        # Mapped, not read: a header that declares more than the file holds is refused before memory is taken.
        return open_memmap(path, mode="r")
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def members(path: Path) -> dict[str, Array]:
    """All arrays in a ``.npz`` file."""
    with _opened(path) as archive:
        return {name: _member(archive, name, path) for name in archive.files}


def chosen(names: Sequence[str], path: Path, told: str | None) -> str:
    """The array that was told, the one called ``vectors``, or the only one."""
    if told is not None and told not in names:
        raise InvalidInput(f"{path} has no array {told!r}; it holds {', '.join(names)}")
    if told is not None or "vectors" in names or len(names) == 1:
        return told or ("vectors" if "vectors" in names else names[0])
    example = f", as in --array {names[0]} (array={names[0]!r})" if names else ""
    raise InvalidInput(f"{path} holds {len(names)} arrays ({', '.join(names)}); say which one{example}")


def _opened(path: Path) -> np.lib.npyio.NpzFile:
    try:
        archive = np.load(path, allow_pickle=False)
    except UNREADABLE as error:
        raise _unreadable(path, error) from error
    assert isinstance(archive, np.lib.npyio.NpzFile)
    return archive


def _member(archive: Mapping[str, Array], name: str, path: Path) -> Array:
    try:
        return archive[name]
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: BaseException) -> InvalidInput:
    if "allow_pickle" in str(error) or "Python objects" in str(error):
        return InvalidInput(
            f"{path} holds Python objects, which are never unpickled; save numbers: np.save(path, np.stack(vectors))"
        )
    return InvalidInput(f"{path} is no array of numbers as NumPy saves them ({error})")
