"""Values on the wire: one kind of number for a whole run, little-endian.

========  =========  ==================  =====================================================
code      name       bytes a value       what the receiver gets
========  =========  ==================  =====================================================
1         float32    4                   the value in single precision
2         float64    8                   the value
3         float16    2                   rounded up or down at random, unbiased
4         bfloat16   2                   the same, with the range of float32
5         int8       1 + 1/128           the value plus noise of variance exactly s²/12
6         int4       1/2 + 1/128         the same, the step s being 17 times as long
7         1-bit      1/8 + 1/128         the same, 255 times as long
8         2-bit      1/4 + 1/128         the same, 85 times as long
9         terngrad   1/5 + 1/128         −A, 0 or A, A being the largest of 512 values
10        natural    9/8                 a power of two
11        int16      2 + 1/128           as int8, the step s being 257 times as short
16 to     eden-b     b/8 + 1/1024        the value plus noise of the same variance throughout a tile; b = code/16, from
128                                      1 to 8
130 to    qsgd-b     b/8 + 1/128         multiples of A/(2^(b−1) − 1), A being the norm of 512 values; b = code − 128,
136                                      from 2 to 8
145 to    rotated-b  b/8 + 1/1024        as of eden-b, with 2^b equally spaced levels; b = code − 144, from 1 to 8
152
162 to    modulo-b   b/8 + 1/512         as of eden-b, b = code − 160, from 2 to 8; with a memory at the server, less
168                                      noise where it is near to what is expected
========  =========  ==================  =====================================================

terngrad, natural, qsgd-b and rotated-b are other papers' quantisers, to compare with: unbiased, but of Gaussian vectors
none has as little noise at as many bits as eden-b.
"""

from __future__ import annotations

import re
from typing import cast

import numpy as np

from sparsemean._names import ValueName
from sparsemean.errors import InvalidInput
from sparsemean.wire.values import sixteen
from sparsemean.wire.values.bits import pack_signs, unpack_signs
from sparsemean.wire.values.dithered import Dithered
from sparsemean.wire.values.eden import Eden
from sparsemean.wire.values.exact import Exact
from sparsemean.wire.values.kind import LARGEST, ValueKind, bounded
from sparsemean.wire.values.modulo import FIRST_CODE, Modulo
from sparsemean.wire.values.natural import Natural
from sparsemean.wire.values.rounded import Rounded
from sparsemean.wire.values.stochastic import Stochastic

__all__ = [
    "EDEN",
    "EXAMPLES",
    "FLOAT32",
    "KINDS",
    "LARGEST",
    "LONG",
    "MODULO",
    "NAMES",
    "PEERS",
    "ValueKind",
    "bounded",
    "pack_signs",
    "unpack_signs",
    "value_kind",
    "value_name",
]

FLOAT32 = Exact(1, "float32", np.dtype("<f4"))


def _by_name(*kinds: ValueKind) -> dict[ValueName, ValueKind]:
    return {cast(ValueName, kind.name): kind for kind in kinds}


KINDS = _by_name(
    FLOAT32,
    Exact(2, "float64", np.dtype("<f8")),
    Rounded(3, "float16", sixteen.FLOAT16),
    Rounded(4, "bfloat16", sixteen.BFLOAT16),
    Dithered(5, "int8", bits=8),
    Dithered(6, "int4", bits=4),
    Dithered(8, "2-bit", bits=2),
    Dithered(7, "1-bit", bits=1),
)
LONG: dict[ValueName, ValueKind] = {"int16": Dithered(11, "int16", bits=16)}
"""Between int8 and float32: noise of 2⁻³⁴ of the largest square of 256 values, whatever their size."""

MODULO = _by_name(*(Modulo(FIRST_CODE + b) for b in range(2, 9)))

EDEN = _by_name(*map(Eden, range(16, 129)))

PEERS = _by_name(
    Stochastic(9, "terngrad", levels=3, trits=True),
    Natural(10, "natural"),
    *(Stochastic(128 + b, f"qsgd-{b}", levels=2**b - 1, norm=True) for b in range(2, 9)),
    *(Stochastic(144 + b, f"rotated-{b}", levels=2**b, rotates=True) for b in range(1, 9)),
)
"""Quantisers of other papers, to compare with."""

_ALL: dict[str, ValueKind] = {
    name: kind for kinds in (KINDS, LONG, MODULO, EDEN, PEERS) for name, kind in kinds.items()
}

EXAMPLES: tuple[ValueName, ...] = (*KINDS, "eden-1", "eden-4")
"""Every kind but those to compare with, and two of EDEN's rates."""

NAMES = (
    f"{', '.join([*KINDS, *LONG])}, eden-b for b from 1 to 8 in sixteenths, such as eden-3 or eden-2.0625, "
    "modulo-b for b from 2 to 8; to compare "
    "with, terngrad, natural, qsgd-b for b from 2 to 8, and rotated-b for b from 1 to 8"
)


def value_name(text: str) -> ValueName:
    """The text, if it is the name of a kind of values: for names from outside the program, and eden-b in sixteenths."""
    return cast(ValueName, value_kind(text).name)


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
        return _ALL[name]
    except (KeyError, TypeError):
        pass
    bits = re.fullmatch(r"eden-([0-9]{1,3}(\.[0-9]{0,20})?)", name) if isinstance(name, str) else None
    if bits is None:
        raise InvalidInput(f"values is one of {NAMES}; got {name!r}")
    nearest = Eden(min(max(round(16 * float(bits[1])), 16), 128)).name
    raise InvalidInput(
        f"eden-b takes b from 1 to 8 in sixteenths, in the shortest decimals; {name!r} is none, use {nearest!r}"
    )
