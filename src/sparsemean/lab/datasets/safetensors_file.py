"""Tensors from .safetensors files: a length, a JSON table of names, types, shapes and places, and the numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from sparsemean._types import Array
from sparsemean.errors import InvalidInput

TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


def loaded(path: Path) -> dict[str, Array]:
    """The tensors by name, in the order of the file's table."""
    try:
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        if len(content) < 8 or length > len(content) - 8:
            raise ValueError("it ends before its table does")
        table = json.loads(content[8 : 8 + length])
        table.pop("__metadata__", None)
        return {name: _tensor(entry, content[8 + length :], name) for name, entry in table.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read as safetensors ({error}); save it anew") from error


def _tensor(entry: Any, numbers: bytes, name: str) -> Array:
    if entry["dtype"] not in TYPES:
        raise ValueError(f"{name} is of type {entry['dtype']!r:.20}, and known are {', '.join(TYPES)}")
    kind, (begin, end) = np.dtype(TYPES[entry["dtype"]]), entry["data_offsets"]
    shape = [int(size) for size in entry["shape"]]
    if min(shape, default=0) < 0 or not 0 <= begin <= end <= len(numbers):
        raise ValueError(f"{name} has no place in the file")
    if math.prod(shape) * kind.itemsize != end - begin:
        raise ValueError(f"{name} of shape {shape} does not fill its {end - begin} bytes")
    array = np.frombuffer(numbers, kind, math.prod(shape), begin).reshape(shape)
    if entry["dtype"] == "BF16":  # the upper half of a float32
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array
