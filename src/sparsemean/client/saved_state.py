"""A client's state as bytes: a NumPy ``.npz`` archive, read back with every size checked before it is allocated."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

HEADER_BYTES = 256
"""More than the header of a ``.npy`` file takes for an array of few axes; NumPy writes 128 bytes or less."""

_HEADER = re.compile(
    rb"\{'descr': '([<>|=]?[biufc][0-9]{1,2})', 'fortran_order': (False|True), "
    rb"'shape': \((|[0-9]+,|[0-9]+(?:, [0-9]+)+)\), \} *\n"
)


def packed(arrays: Mapping[str, Array]) -> bytes:
    """The arrays as the bytes of an ``.npz`` archive, not compressed."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(arrays))
    return buffer.getvalue()


def unpacked(blob: bytes, like: Mapping[str, Array], most: Mapping[str, int]) -> dict[str, Array]:
    """The arrays of an archive that ``packed`` wrote; ValueError, or an error of zipfile, where it did not.

    No more is read or allocated than the arrays asked for take, whatever sizes the archive declares.

    Parameters
    ----------
    blob
        The archive.
    like
        Arrays by name: those in the archive have these names, dtypes and shapes, and there are no others.
    most
        One-dimensional arrays of bytes by name, with the largest length each may have.
    """
    found: dict[str, Array] = {}
    with zipfile.ZipFile(io.BytesIO(blob)) as archive:
        members = archive.infolist()
        if sorted(member.filename for member in members) != sorted(f"{name}.npy" for name in (*like, *most)):
            raise ValueError(f"its arrays are not {', '.join((*like, *most))}")
        for member in members:
            name = member.filename.removesuffix(".npy")
            limit = HEADER_BYTES + (most[name] if name in most else like[name].nbytes)
            # ``packed`` stores arrays as they are; what is compressed could grow without bound while it is read.
            if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
                raise ValueError(f"the array {name} is compressed")
            if member.file_size > limit:
                raise ValueError(f"the array {name} takes {member.file_size} bytes, more than the {limit} it may take")
            with archive.open(member) as file:
                content = file.read(limit + 1)  # up to its end, where zipfile compares the checksum
            found[name] = _array(content, name, like.get(name), most.get(name, 0))
    return found


def _array(content: bytes, name: str, like: Array | None, most: int) -> Array:
    """The array in the bytes of a ``.npy`` file (version 1.0 of the format, which NumPy writes for such arrays)."""
    begin = 10 + int.from_bytes(content[8:10], "little")
    header = _HEADER.fullmatch(content[10:begin])
    if content[:8] != b"\x93NUMPY\x01\x00" or header is None:
        raise ValueError(f"the array {name} has no header as NumPy writes it")
    dtype = np.dtype(header[1].decode())
    shape = tuple(int(axis) for axis in header[3].split(b",") if axis)
    wanted = np.dtype(np.uint8) if like is None else like.dtype
    fits = len(shape) == 1 and shape[0] <= most if like is None else shape == like.shape
    if dtype.newbyteorder("=") != wanted.newbyteorder("=") or not fits:
        raise ValueError(f"the array {name} is {dtype} of shape {shape}, which no state of this run has")
    if len(content) - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"the array {name} has {len(content) - begin} bytes of values for the shape {shape}")
    values = np.frombuffer(content, dtype, offset=begin).reshape(shape, order="F" if header[2] == b"True" else "C")
    return values.astype(wanted)  # a copy, which can be written to
