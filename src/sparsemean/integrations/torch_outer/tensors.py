"""Bytes and arrays as tensors, which ``torch.load(weights_only=True)`` reads, and back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sparsemean._types import Floats
from sparsemean.errors import InvalidInput

WRONG = "this is not a state written by OuterMean.state_dict"


def tensor_of(blob: bytes) -> Tensor:
    """The bytes as a tensor."""
    return torch.frombuffer(bytearray(blob), dtype=torch.uint8)


def bytes_in(tensor: Any) -> bytes:
    """The bytes of a tensor that ``tensor_of`` made."""
    if not isinstance(tensor, Tensor) or tensor.dtype != torch.uint8 or tensor.ndim != 1:
        raise InvalidInput(f"{WRONG}: bytes are missing")
    return tensor.cpu().numpy().tobytes()


def optional_tensor(array: Floats | None) -> Tensor | None:
    """A copy of the array, if there is one."""
    return None if array is None else torch.from_numpy(array.copy())


def array_in(tensor: Any, size: int) -> Floats | None:
    """A copy of an array of so many float32, if there is one."""
    if tensor is None:
        return None
    if not isinstance(tensor, Tensor) or tensor.dtype != torch.float32 or tensor.shape != (size,):
        raise InvalidInput(f"{WRONG}: a vector of {size} float32 is missing")
    array: Floats = tensor.cpu().numpy().copy()
    return array
