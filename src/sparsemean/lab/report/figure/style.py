"""The look of each scheme: one colour, marker, dash and label, the same in all figures, on screen and on paper.

Families share a hue (spatial blue, temporal orange to red, both memories violet, top-k green); markers and dashes tell
members apart, so that no figure depends on colour vision. Balanced draws have pentagons.
"""

from __future__ import annotations

import colorsys
import zlib
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Style:
    """Colours are for a light and for a dark ground; marker (or none) and dash are names of `draw`."""

    label: str
    light: str
    dark: str
    marker: str
    dash: str = "solid"


REFERENCES = ("exact", "exact-mean", "identity", "lag")
"""Those that send whole vectors: drawn in every panel, never ranked, and no axis is stretched for their tiny errors."""

# The colours of the nine most frequent were chosen by search: at least 9 apart (OKLab × 100) for normal, protan,
# deutan and tritan eyes, with a contrast of 3.2 or more to the ground. Those of designed draws are 10 apart from all
# that stand beside them in the figures of designed draws, and 5 from the other frequent ones.
_LISTED = {
    "exact": Style("Exact mean", "#111827", "#f3f4f6", "none", "dash"),
    "exact-mean": Style("Exact mean", "#111827", "#f3f4f6", "none", "dash"),
    "identity": Style("Whole vectors", "#374151", "#d1d5db", "square-open", "dot"),
    "rand-k": Style("Rand-k", "#908e85", "#9b9694", "circle"),
    "wangni": Style("Wangni", "#685000", "#f8d88e", "square"),
    "induced": Style("Induced", "#bc3999", "#ac418e", "diamond"),
    "rand-k-spatial-max": Style("Rand-k-Spatial (Max)", "#4291d9", "#82c5e9", "triangle-down"),
    "rand-k-spatial-avg": Style("Rand-k-Spatial (Avg)", "#0d2ab3", "#6592ec", "triangle-up"),
    "rand-k-spatial-opt": Style("Rand-k-Spatial (Opt)", "#0c1a3f", "#e3edff", "star", "dash"),
    "rand-k-spatial-adaptive": Style("Rand-k-Spatial (adaptive)", "#00705e", "#8ff8ef", "star"),
    "rand-k-spatial-adaptive-unbiased": Style(
        "Rand-k-Spatial (adaptive, unbiased)", "#00705e", "#8ff8ef", "star-open", "dash"
    ),
    "rand-k-temporal": Style("Rand-k-Temporal", "#d97419", "#fd983e", "square"),
    "rand-k-temporal-shared": Style("Rand-k-Temporal, O(d) memory", "#6e010c", "#dd2e36", "cross"),
    "rand-k-temporal-shared-stable": Style("Rand-k-Temporal, stable O(d)", "#6e010c", "#dd2e36", "cross-open", "dash"),
    "rand-k-temporal-window": Style("Rand-k-Temporal, window", "#d97419", "#fd983e", "square-open", "dash"),
    "rand-k-temporal-stale": Style("Rand-k-Temporal, forgetting", "#d97419", "#fd983e", "x", "dot"),
    "rand-k-hybrid": Style("Hybrid memory", "#3b1369", "#7b4ae4", "hexagon"),
    "rand-k-balanced": Style("Balanced draws", "#28a000", "#a8e000", "pentagon"),
    "rand-k-balanced-hybrid": Style("Balanced draws, hybrid memory", "#9000e8", "#e860ff", "pentagon-open"),
    "rand-k-epochs-hybrid": Style("Epochs, hybrid memory", "#b80018", "#f06018", "star"),
    "rand-k-hybrid-shrunk": Style("Hybrid memory, shrunk", "#3b1369", "#7b4ae4", "hexagon-open", "dot"),
    "rand-k-balanced-hybrid-shrunk": Style(
        "Balanced draws, hybrid memory, shrunk", "#9000e8", "#e860ff", "hexagon-open", "dot"
    ),
    "rand-proj-spatial-avg": Style("Rand-Proj-Spatial (Avg)", "#7c2d12", "#fdba74", "x-open", "dot"),
    "auto": Style("Auto", "#0e7490", "#22d3ee", "circle-open"),
    "auto-broadcast": Style("Auto, hears the broadcast", "#0e7490", "#22d3ee", "diamond", "dash"),
    "auto-stateful": Style("Auto, keeps a vector", "#0e7490", "#22d3ee", "square", "dot"),
    "relative": Style("Difference to the broadcast", "#a16207", "#fde047", "diamond-open"),
    "difference": Style("Difference to its own vector", "#9f1239", "#fb7185", "square"),
    "rand-k-ratio": Style("Ratio", "#b45309", "#fbbf24", "diamond"),
    "rand-k-balanced-ratio": Style("Balanced draws, ratio", "#b45309", "#fbbf24", "diamond-open", "dash"),
    "top-k": Style("Top-k", "#15803d", "#4ade80", "triangle-up"),
    "top-k-spatial": Style("Top-k-Spatial", "#15803d", "#4ade80", "triangle-up-open", "dash"),
    "top-k-temporal": Style("Top-k-Temporal", "#15803d", "#4ade80", "triangle-down-open", "dot"),
    "rtop-k": Style("RTop-k", "#4d7c0f", "#a3e635", "diamond", "dashdot"),
    "error-feedback-top-k": Style("Top-k, error feedback", "#155e75", "#22d3ee", "x", "dash"),
    "error-feedback-rand-k": Style("Rand-k, error feedback", "#155e75", "#22d3ee", "x-open", "dot"),
    "error-feedback-chunked-top-k": Style("Top-k in chunks, error feedback", "#155e75", "#22d3ee", "star", "dash"),
    "error-feedback-sign": Style("Signs, error feedback", "#155e75", "#22d3ee", "star-open", "dot"),
    "diana": Style("DIANA", "#b0179f", "#e879f9", "hexagon", "dashdot"),
    "lag": Style("LAG", "#78350f", "#d6a77a", "diamond-open", "dash"),
    "iid": Style("IID", "#0d2ab3", "#6592ec", "circle"),
    "non-iid": Style("non-IID", "#d97419", "#fd983e", "square", "dash"),
    "stations": Style("Stations", "#00705e", "#8ff8ef", "diamond", "dot"),
    "own scales": Style("Own scales", "#bc3999", "#ac418e", "square", "dash"),
    "common scale": Style("Common scale", "#00705e", "#8ff8ef", "circle"),
    "numpy": Style("NumPy", "#908e85", "#9b9694", "square"),
    "tuned numpy": Style("tuned NumPy", "#bc3999", "#ac418e", "circle", "dash"),
    "bincount": Style("bincount", "#685000", "#f8d88e", "diamond"),
    "scipy": Style("scipy", "#4291d9", "#82c5e9", "circle"),
    "torch": Style("torch", "#d97419", "#fd983e", "triangle-up"),
    "dense": Style("dense mean", "#0d2ab3", "#6592ec", "diamond"),
    "limit": Style("limit of memory", "#111827", "#f3f4f6", "none", "dot"),
    "front of unbiased schemes": Style("Front of unbiased schemes", "#111827", "#f3f4f6", "none"),
    "front of all schemes": Style("Front of all schemes", "#6b7280", "#9ca3af", "none", "dash"),
    "other schemes": Style("Other schemes", "#8b95a3", "#77818f", "circle"),
}

_MARKERS = ("circle", "square", "diamond", "cross", "x", "triangle-up", "triangle-down", "star", "hexagon")
_DASHES = ("solid", "dash", "dot", "dashdot")
_VALUES = {"float64": "solid", "float32": "solid", "float16": "dashdot", "bfloat16": "dashdot", "int8": "dash"}
_VALUES |= {"int4": "longdash", "2-bit": "longdashdot"}


def style_of(name: str) -> Style:
    """The style of a scheme; one that is not listed gets its own, the same in every run.

    A name may end in the kind of its values, which changes the dash alone.

    >>> style_of("rand-k").label, style_of("rand-k int8").label, style_of("rand-k int8").dash
    ('Rand-k', 'Rand-k (int8)', 'dash')
    >>> style_of("of-my-own") == style_of("of-my-own")
    True
    """
    key = name.strip().lower().replace("_", "-")
    if key in _LISTED:
        return _LISTED[key]
    scheme, _, values = key.rpartition(" ")
    if scheme in _LISTED:
        return replace(_LISTED[scheme], label=f"{_LISTED[scheme].label} ({values})", dash=_VALUES.get(values, "dot"))
    return _stable(name)


def values_of(name: str) -> str:
    """The kind of its values that a scheme's name ends in; empty where it has none.

    >>> values_of("rand-k int8"), values_of("rand-k"), values_of("tuned numpy")
    ('int8', '', '')
    """
    scheme, _, values = name.rpartition(" ")
    return values if scheme in _LISTED and name not in _LISTED else ""


def _stable(name: str) -> Style:
    """A look drawn from the name's checksum: hue, marker and dash from different bits of it."""
    bits = zlib.crc32(name.encode())
    hue, marker, dash = (bits & 0xFF) / 256, _MARKERS[(bits >> 8) % len(_MARKERS)], _DASHES[(bits >> 20) % len(_DASHES)]
    return Style(name, _hex(hue, 0.33), _hex(hue, 0.72), marker, dash)


def _hex(hue: float, lightness: float) -> str:
    red, green, blue = colorsys.hls_to_rgb(hue, lightness, 0.7)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def token(name: str) -> str:
    """The CSS variable that holds the scheme's colour on the page; safe whatever the name.

    >>> token("rand-k")
    '--s3d175267'
    """
    return f"--s{zlib.crc32(name.encode()):08x}"


def rank(name: str) -> tuple[int, str]:
    """Where a scheme stands in legends: as listed here, others last.

    >>> sorted(["zeta", "rand-k", "exact"], key=rank)
    ['exact', 'rand-k', 'zeta']
    """
    key = name.strip().lower().replace("_", "-")
    known = list(_LISTED)
    scheme = key if key in _LISTED else key.rpartition(" ")[0]
    return (known.index(scheme) if scheme in _LISTED else len(known)), key
