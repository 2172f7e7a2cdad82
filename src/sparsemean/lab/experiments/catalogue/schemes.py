"""Names of the schemes that figures and claims compare."""

from __future__ import annotations

PLAIN, MAX, AVG, OPT = "rand-k", "rand-k-spatial-max", "rand-k-spatial-avg", "rand-k-spatial-opt"
TEMPORAL, SHARED = "rand-k-temporal", "rand-k-temporal-shared"
ADAPTIVE, STABLE, HYBRID = "rand-k-spatial-adaptive", "rand-k-temporal-shared-stable", "rand-k-hybrid"
UNBIASED, BALANCED, BALANCED_HYBRID = "rand-k-spatial-adaptive-unbiased", "rand-k-balanced", "rand-k-balanced-hybrid"
RATIO, BALANCED_RATIO = "rand-k-ratio", "rand-k-balanced-ratio"
EPOCHS_HYBRID = "rand-k-epochs-hybrid"
SHRUNK, BALANCED_SHRUNK = "rand-k-hybrid-shrunk", "rand-k-balanced-hybrid-shrunk"

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

BIASED = ("top-k", "error-feedback-top-k")
"""Nodes send their largest entries; with error feedback what was left out is added to the next vector."""

SIZE_DEPENDS = ("wangni", "induced")
"""Their payloads depend on the vector, and at the same k are not as long as rand-k's."""

BEYOND = (
    "rand-k-spatial-adaptive",
    "rand-k-spatial-adaptive-unbiased",
    "rand-k-temporal-shared-stable",
    "rand-k-hybrid",
)
"""Not the paper's: they learn the correlation from what arrives, and fit what they remember."""

FEWER_BITS = tuple(
    f"{name} int8"
    for name in ("rand-k", "rand-k-spatial-avg", "rand-k-temporal", "rand-k-spatial-adaptive", "rand-k-hybrid")
)
"""More coordinates for the same bytes."""
