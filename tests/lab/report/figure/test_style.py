"""Colours that everybody can tell apart, on either ground."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.lab.report.figure.style import _LISTED, style_of, token
from sparsemean.lab.report.page.legend import legend

GROUNDS = {"light": "#ffffff", "dark": "#161b22"}
FREQUENT = (
    *("rand-k", "wangni", "induced", "rand-k-spatial-max", "rand-k-spatial-avg", "rand-k-spatial-adaptive"),
    *("rand-k-temporal", "rand-k-temporal-shared", "rand-k-hybrid"),
)
BALANCED = ("rand-k-balanced", "rand-k-balanced-hybrid")
BESIDE = ("exact", "rand-k", "rand-k-spatial-opt", "rand-k-spatial-adaptive-unbiased", "rand-k-hybrid")
"""Those that stand beside designed draws in their figures."""
EPOCHS = "rand-k-epochs-hybrid"
# Machado, Oliveira and Fernandes (2009), severity 1; rows of matrices for linear RGB.
EYES: dict[str, list[float]] = {
    "normal": [1, 0, 0, 0, 1, 0, 0, 0, 1],
    "protan": [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
    "deutan": [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
    "tritan": [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
}
# Ottosson (2020), "A perceptual color space for image processing".
CONES = [0.41222147, 0.53633254, 0.05144599, 0.2119035, 0.68069955, 0.10739696, 0.08830246, 0.28171884, 0.6299787]
LAB = [0.21045426, 0.79361779, -0.00407205, 1.9779985, -2.42859221, 0.45059371, 0.02590404, 0.78277177, -0.80867577]


def linear(colour: str) -> Doubles:
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """As WCAG defines it."""
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def seen_by(eyes: str, colour: str) -> Doubles:
    """The colour in OKLab, where equal steps look equally large."""
    rgb = np.clip(matrix(EYES[eyes]) @ linear(colour), 0, 1)
    lab: Doubles = matrix(LAB) @ np.cbrt(matrix(CONES) @ rgb)
    return lab


def matrix(rows: list[float]) -> Doubles:
    return np.array(rows, np.float64).reshape(3, 3)


@pytest.mark.parametrize("theme", GROUNDS)
def test_every_line_stands_out_from_the_ground(theme):
    names = [*_LISTED, *(f"made-up-{i}" for i in range(200))]
    low = {name: value for name in names if (value := contrast(getattr(style_of(name), theme), GROUNDS[theme])) < 3}
    assert not low


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("theme", GROUNDS)
def test_frequent_schemes_differ_for_every_eye(theme, eyes):
    seen = {name: seen_by(eyes, getattr(style_of(name), theme)) for name in FREQUENT}
    near = {
        pair: distance
        for pair in itertools.combinations(FREQUENT, 2)
        if (distance := float(np.linalg.norm(seen[pair[0]] - seen[pair[1]]))) < 0.09
    }
    assert not near


def apart(eyes: str, theme: str, one: str, other: str) -> float:
    """The distance between the colours of two schemes."""
    colours = [seen_by(eyes, getattr(style_of(name), theme)) for name in (one, other)]
    return float(np.linalg.norm(colours[0] - colours[1]))


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("theme", GROUNDS)
def test_designed_draws_differ_from_what_stands_beside_them(theme, eyes):
    designed = (*BALANCED, EPOCHS)
    pairs = [*itertools.product(designed, BESIDE), *itertools.combinations(designed, 2)]
    assert not {pair: distance for pair in pairs if (distance := apart(eyes, theme, *pair)) < 0.1}
    rest = itertools.product(designed, FREQUENT)
    assert not {pair: distance for pair in rest if (distance := apart(eyes, theme, *pair)) < 0.05}


def test_balanced_draws_have_a_marker_of_their_own():
    markers = {name: style_of(name).marker for name in _LISTED}
    assert [name for name, marker in markers.items() if marker.startswith("pentagon")] == list(BALANCED)
    assert len({markers[name] for name in BALANCED}) == 2


def test_no_two_schemes_look_the_same():
    names = [name for name in {*sm.names(), *_LISTED} if name not in ("exact-mean", "iid", "non-iid", "stations")]
    looks = {(style_of(name).light, style_of(name).marker, style_of(name).dash) for name in names}
    assert len(looks) == len(names)


def test_a_scheme_of_ones_own_keeps_its_look():
    assert style_of("mine") == style_of("mine") != style_of("yours")
    assert style_of("mine").label == "mine"


def test_the_kind_of_values_changes_the_dash_alone():
    plain, few = style_of("rand-k-temporal"), style_of("rand-k-temporal int8")
    assert (few.light, few.marker, few.label) == (plain.light, plain.marker, "Rand-k-Temporal (int8)")
    assert few.dash != plain.dash


def test_names_are_safe_in_style_sheets_and_legends():
    name = "</style><script>alert(1)</script>\"'"
    assert token(name).removeprefix("--s").isalnum()
    assert "<script" not in legend([name], str)


def test_every_listed_scheme_has_a_legend_entry():
    assert legend(_LISTED, str).count("<button") == len(_LISTED)
