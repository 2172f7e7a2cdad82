"""The idx format of MNIST and its kin: a big-endian header of sizes, then the bytes of the array."""

from __future__ import annotations

from math import prod

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.images import Bytes

UNSIGNED_BYTES = 8


def array(content: bytes, name: str) -> Bytes:
    """The array of unsigned bytes in the content of an idx file.

    Header: two zero bytes, the type, the number of dimensions, then every size as four bytes.

    >>> array(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]), "labels")
    array([7, 8, 9], dtype=uint8)
    """
    if len(content) < 4 or content[:3] != bytes([0, 0, UNSIGNED_BYTES]):
        raise InvalidInput(
            f"{name} is no idx file of unsigned bytes: it begins with {content[:4].hex(' ') or 'nothing'}"
        )
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise InvalidInput(f"{name} ends within its header, after {len(content)} of {start} bytes")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", count=content[3], offset=4))
    if len(content) - start != prod(shape):
        raise InvalidInput(
            f"{name} should hold {prod(shape)} bytes for shape {shape}, but holds {len(content) - start}"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
