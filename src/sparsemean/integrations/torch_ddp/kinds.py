"""The value kinds on tensors, by name."""

from __future__ import annotations

import torch

from sparsemean.integrations.torch_ddp.eden import TensorEden
from sparsemean.integrations.torch_ddp.values import TensorDithered, TensorExact, TensorRounded, TensorValues
from sparsemean.wire.values import value_kind
from sparsemean.wire.values.eden import Eden

KINDS: dict[str, TensorValues] = {
    "float32": TensorExact(torch.float32),
    "float64": TensorExact(torch.float64),
    "float16": TensorRounded(torch.float16),
    "bfloat16": TensorRounded(torch.bfloat16),
    "int8": TensorDithered(8),
    "int4": TensorDithered(4),
    "2-bit": TensorDithered(2),
    "1-bit": TensorDithered(1),
}


def tensor_values(name: str) -> TensorValues:
    """The kind of that name.

    >>> tensor_values("eden-1.5").size(1000)
    191
    """
    kind = value_kind(name)
    return TensorEden(kind) if isinstance(kind, Eden) else KINDS[name]
