"""Signs of one magnitude: the paper's compressor, through its bytes, and right in the long run with error feedback."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import checks
from sparsemean._names import ValueName
from sparsemean.errors import MalformedPayload, NonFiniteValues
from sparsemean.payload import Layout, Part
from sparsemean.sampling import Key
from sparsemean.wire import parts
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import value_kind

KEY = Key(7, 3, "station-12")
SIGNS = Layout("signs", 10)


def decoded(vector: np.ndarray, values: ValueName = "float32") -> np.ndarray:
    return sm.estimate_mean(vector[None], sm.Scheme(sm.Sign(), values=values)).mean


@pytest.mark.parametrize("values", ["float64", "float32", "2-bit", "eden-1", "qsgd-4"])
@pytest.mark.parametrize("dim", [1, 7, 8, 9, 1000])
def test_the_error_is_what_the_paper_says_in_one_bit_a_coordinate(values, dim):
    x = np.random.default_rng(dim).normal(size=dim)
    run = sm.Run(sm.Scheme(sm.Sign(), values=values), dim)
    assert run.payload_fixed
    assert (
        len(sm.Client(run, "a").encode(x, 0))
        == run.payload_bytes
        == 64 + (8 if values == "float64" else 4) + -(-dim // 8)
    )
    back = decoded(x, values)
    np.testing.assert_allclose(back, np.sign(x) * np.abs(x).mean(), rtol=1e-7)
    assert np.sum((back - x) ** 2) == pytest.approx(np.sum(x**2) - np.sum(np.abs(x)) ** 2 / dim, rel=1e-5, abs=1e-12)


def test_on_gaussian_vectors_it_loses_1_minus_2_over_pi():
    x = np.random.default_rng(0).normal(size=1 << 18)
    assert np.sum((decoded(x) - x) ** 2) / np.sum(x**2) == pytest.approx(1 - 2 / np.pi, rel=0.01)


@pytest.mark.parametrize("values", ["float64", "float32", "int8"])
@pytest.mark.parametrize("zero", [0.0, -0.0, -1e-60])
def test_nothing_is_nothing(values, zero):
    """Nor are there signs where the magnitude is 0 in the format alone."""
    x = np.full(10, zero)
    back = decoded(x, values)
    assert np.abs(back).max() <= abs(zero)
    assert not np.any(np.isnan(back))
    assert np.signbit(back).any() == (zero == -1e-60 and values == "float64")


def test_units_do_not_matter_and_what_is_too_large_is_refused():
    x = np.random.default_rng(1).normal(size=33)
    assert np.array_equal(decoded(x * 2.0**90), decoded(x) * 2.0**90)
    assert np.array_equal(decoded(x * 2.0**-100), decoded(x) * 2.0**-100)
    with pytest.raises(sm.InvalidInput, match="fit float32"):
        decoded(x * 1e60)


@pytest.mark.parametrize(
    ("level", "signs", "error"),
    [
        (-1.0, 0, MalformedPayload),
        (-0.0, 0, MalformedPayload),
        (0.0, 4, MalformedPayload),
        (1.0, 1 << 10, MalformedPayload),
        (np.nan, 0, NonFiniteValues),
        (np.inf, 0, NonFiniteValues),
    ],
)
def test_hostile_bytes_are_refused(level, signs, error):
    kind = value_kind("2-bit")
    good = parts.pack([Part(np.arange(10), np.full(10, -2.0))], SIGNS, 10, kind, KEY)
    assert good == struct.pack("<fH", 2.0, (1 << 10) - 1)
    with pytest.raises(error):
        parts.unpack(Reader(memoryview(struct.pack("<fH", level, signs))), SIGNS, 10, kind, KEY)


def test_values_of_several_magnitudes_are_no_signs():
    with pytest.raises(sm.InvalidInput, match="several magnitudes"):
        parts.pack([Part(np.arange(10), np.arange(10.0))], SIGNS, 10, value_kind("float32"), KEY)


@pytest.mark.parametrize("encoder", [sm.Sign(), sm.ErrorFeedback(sm.Sign()), sm.Difference(sm.Sign())])
def test_it_keeps_what_it_declares(encoder):
    memory = sm.Offset() if isinstance(encoder, sm.Difference) else None
    scheme = sm.Scheme(encoder, memory=memory, values="int8")
    checks.check_scheme(scheme)
    assert not scheme.unbiased
    assert sm.estimate_mean(checks.example_vectors(3, 40), scheme).error is None


@pytest.mark.parametrize(
    "make", [lambda: sm.Scheme(sm.Sign(), sm.Spatial("avg")), lambda: sm.Scheme(sm.Sign(), memory=sm.PerNode())]
)
def test_nobody_takes_signs_for_values(make):
    with pytest.raises(sm.IncompatibleScheme):
        make()


def test_with_error_feedback_the_running_mean_comes_to_the_truth():
    rng, rounds = np.random.default_rng(3), 400
    vectors = rng.normal(size=(3, 200)) * rng.exponential(size=200)
    truth = vectors.mean(axis=0)
    left = {}
    for encoder in (sm.ErrorFeedback(sm.Sign()), sm.Sign()):
        means = sm.simulate(sm.Run(sm.Scheme(encoder), 200), np.broadcast_to(vectors, (rounds, 3, 200)))
        left[encoder] = np.sum((np.mean([each.mean for each in means], axis=0) - truth) ** 2) / np.sum(truth**2)
    assert left[sm.ErrorFeedback(sm.Sign())] < 0.02
    assert left[sm.Sign()] > 0.2
