"""Values on the wire: one kind of number for a whole run, little-endian.

========  ========  ==================  =====================================================
code      name      bytes a value       what the receiver gets
========  ========  ==================  =====================================================
1         float32   4                   the value in single precision
2         float64   8                   the value
3         float16   2                   rounded up or down at random, unbiased
4         bfloat16  2                   the same, with the range of float32
5         int8      1 + 1/128           the value plus noise of variance exactly s²/12
6         int4      1/2 + 1/128         the same, the step s being 17 times as long
7         1-bit     1/8 + 1/128         the same, 255 times as long
8         2-bit     1/4 + 1/128         the same, 85 times as long
========  ========  ==================  =====================================================
"""

from __future__ import annotations

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.wire.values import sixteen
from sparsemean.wire.values.bits import pack_signs, unpack_signs
from sparsemean.wire.values.dithered import Dithered
from sparsemean.wire.values.exact import Exact
from sparsemean.wire.values.kind import LARGEST, ValueKind, bounded
from sparsemean.wire.values.rounded import Rounded

__all__ = ["FLOAT32", "KINDS", "LARGEST", "ValueKind", "bounded", "pack_signs", "unpack_signs", "value_kind"]

FLOAT32 = Exact(1, "float32", np.dtype("<f4"))

KINDS: dict[str, ValueKind] = {
    kind.name: kind
    for kind in (
        FLOAT32,
        Exact(2, "float64", np.dtype("<f8")),
        Rounded(3, "float16", sixteen.FLOAT16),
        Rounded(4, "bfloat16", sixteen.BFLOAT16),
        Dithered(5, "int8", bits=8),
        Dithered(6, "int4", bits=4),
        Dithered(8, "2-bit", bits=2),
        Dithered(7, "1-bit", bits=1),
    )
}


def value_kind(name: str) -> ValueKind:
    """The kind of that name.

    >>> [value_kind(name).size(1000) for name in ("float32", "float16", "int8", "int4", "2-bit", "1-bit")]
    [4000, 2000, 1008, 508, 258, 133]
    """
    try:
        return KINDS[name]
    except (KeyError, TypeError):
        raise InvalidInput(f"values is one of {', '.join(KINDS)}; got {name!r}") from None
