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
16 to     eden-b    b/8 + 1/1024        the value plus noise of the same variance throughout a tile; b = code/16, from
128                                     1 to 8
========  ========  ==================  =====================================================
"""

from __future__ import annotations

import re

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.wire.values import sixteen
from sparsemean.wire.values.bits import pack_signs, unpack_signs
from sparsemean.wire.values.dithered import Dithered
from sparsemean.wire.values.eden import Eden
from sparsemean.wire.values.exact import Exact
from sparsemean.wire.values.kind import LARGEST, ValueKind, bounded
from sparsemean.wire.values.rounded import Rounded

__all__ = [
    "EDEN",
    "EXAMPLES",
    "FLOAT32",
    "KINDS",
    "LARGEST",
    "NAMES",
    "ValueKind",
    "bounded",
    "pack_signs",
    "unpack_signs",
    "value_kind",
]

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


EDEN: dict[str, ValueKind] = {kind.name: kind for kind in map(Eden, range(16, 129))}

EXAMPLES = (*KINDS, "eden-1", "eden-4")
"""Every kind, and two of EDEN's rates."""

NAMES = f"{', '.join(KINDS)}, and eden-b for b from 1 to 8 in sixteenths, such as eden-3 or eden-2.0625"


def value_kind(name: str) -> ValueKind:
    """The kind of that name.

    >>> [value_kind(name).size(1000) for name in ("float32", "float16", "int8", "int4", "2-bit", "1-bit", "eden-1.5")]
    [4000, 2000, 1008, 508, 258, 133, 191]
    >>> value_kind("eden-1.3")
    Traceback (most recent call last):
    ...
    sparsemean.errors.InvalidInput: eden-b takes b from 1 to 8 in sixteenths, in the shortest decimals; 'eden-1.3' is
    none, use 'eden-1.3125'
    """
    try:
        return KINDS.get(name) or EDEN[name]
    except (KeyError, TypeError):
        pass
    bits = re.fullmatch(r"eden-([0-9]{1,3}(\.[0-9]{0,20})?)", name) if isinstance(name, str) else None
    if bits is None:
        raise InvalidInput(f"values is one of {NAMES}; got {name!r}")
    nearest = Eden(min(max(round(16 * float(bits[1])), 16), 128)).name
    raise InvalidInput(
        f"eden-b takes b from 1 to 8 in sixteenths, in the shortest decimals; {name!r} is none, use {nearest!r}"
    )
