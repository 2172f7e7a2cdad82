"""The schemes that figures compare."""

from __future__ import annotations

from sparsemean.schemes import names
from sparsemean.wire.values import KINDS

BASELINES = ("rand-k", "wangni", "induced")
SPARSE = (
    "rand-k",
    "rand-k-spatial-max",
    "rand-k-spatial-avg",
    "rand-k-temporal",
    "rand-k-temporal-shared",
    "wangni",
    "induced",
)
"""All of the paper's."""

VARIANTS = (
    "rand-k",
    "rand-k-temporal",
    "rand-k-temporal-window",
    "rand-k-temporal-stale",
    "top-k",
    "top-k-spatial",
    "top-k-temporal",
)
"""What the paper says can be done, and does not draw."""

SIZE_DEPENDS = ("wangni", "induced")
"""Their payloads depend on the vector, and at the same k are not as long as rand-k's."""

BEYOND = tuple(
    name for name in ("rand-k-temporal-shared-stable", "rand-k-spatial-adaptive", "rand-k-hybrid") if name in names()
)
"""Not the paper's; they join the figures that they belong to as soon as the library has them."""

FEWER_BITS = tuple(f"{name} int8" for name in ("rand-k", "rand-k-spatial-avg", "rand-k-temporal") if "int8" in KINDS)
"""More coordinates for the same bytes, where the wire knows the format."""
