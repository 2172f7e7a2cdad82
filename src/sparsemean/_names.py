"""Names that settings go by, as types, so that a type checker finds a typo; what they mean stands where they are used.

A type has to be written out. ``tests/test_names.py`` holds these against the schemes and kinds of values there are.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Missing: TypeAlias = Literal["drop", "carry"]
"""What absent nodes count for, in ``Server``."""

Durability: TypeAlias = Literal["accept", "round"]
"""What a receipt promises, in ``Server``."""

Knowledge: TypeAlias = Literal["stateless", "broadcast", "stateful"]
"""What a node knows besides its vector, in ``Auto``."""

# fmt: off
FixedScheme: TypeAlias = Literal[
    "identity", "rand-k", "rand-k-spatial-max", "rand-k-spatial-avg", "rand-k-spatial-opt",
    "rand-k-spatial-adaptive", "rand-k-spatial-adaptive-unbiased", "rand-k-temporal", "rand-k-temporal-shared",
    "rand-k-temporal-window", "rand-k-temporal-stale", "rand-k-temporal-shared-stable", "rand-k-hybrid",
    "rand-k-balanced", "rand-k-balanced-hybrid", "rand-k-epochs-hybrid", "rand-k-hybrid-shrunk",
    "rand-k-balanced-hybrid-shrunk", "rand-k-ratio", "rand-k-balanced-ratio", "top-k", "top-k-spatial",
    "top-k-temporal", "rtop-k", "wangni", "induced", "error-feedback-top-k", "error-feedback-rand-k",
    "error-feedback-chunked-top-k", "error-feedback-sign", "diana", "lag",
]
"""Names that stand for one scheme: ``names()``."""

SchemeName: TypeAlias = Literal[FixedScheme, "auto"]
"""What ``named`` takes."""

Eden: TypeAlias = Literal[
    "eden-1", "eden-1.5", "eden-2", "eden-2.5", "eden-3", "eden-3.5", "eden-4", "eden-4.5", "eden-5",
    "eden-5.5", "eden-6", "eden-6.5", "eden-7", "eden-7.5", "eden-8",
]
"""Rotated values of b bits, in halves. A type of all sixteenths would make every message of a checker a page long."""

ValueName: TypeAlias = Literal[
    "float32", "float64", "float16", "bfloat16", "int8", "int4", "2-bit", "1-bit", "int16", "modulo-2",
    "modulo-3", "modulo-4", "modulo-5", "modulo-6", "modulo-7", "modulo-8", "terngrad", "natural", "qsgd-2",
    "qsgd-3", "qsgd-4", "qsgd-5", "qsgd-6", "qsgd-7", "qsgd-8", "rotated-1", "rotated-2", "rotated-3",
    "rotated-4", "rotated-5", "rotated-6", "rotated-7", "rotated-8",
    Eden,
]
"""How a value travels, in ``Scheme``."""
# fmt: on
