"""Balanced samples on tensors: the coordinates of the library, whatever the sizes and slots."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels.hands import hand_size
from sparsemean.kernels.sample import Sample, sample_numpy
from sparsemean.sampling import Key, balanced_sample_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sparsemean[torch]'")

from sparsemean.integrations.torch_ddp import draw  # noqa: E402

CPU = torch.device("cpu")
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "balanced_v1.json").read_text())


@st.composite
def batches(draw: st.DrawFn) -> list[Sample]:
    """Samples of one size that stand alone, or in slots of one draw or of several."""
    size = 1 << draw(st.integers(7, 13) | st.just(17))
    dim = draw(st.integers(1, 4 * size))
    k = draw(st.integers(1, dim) | st.just(dim) | st.integers(1, min(dim, 3)))
    slots = draw(st.integers(0, 20) | st.integers(2, 1 << 20))
    hand = draw(st.just(hand_size(dim, k, size)) | st.integers(1, size.bit_length() - 1).map(lambda w: 1 << w))
    digests, places = st.sampled_from([bytes(range(32)), bytes(32)]), st.integers(0, max(slots - 1, 0))
    chosen = draw(st.lists(st.tuples(digests, places), min_size=1, max_size=4))
    samples = [Sample.keyed(digest, dim, k, size) for digest, _ in chosen]
    if slots == 0:
        return samples
    return [each.balanced(digest, hand, slot, slots) for each, (digest, slot) in zip(samples, chosen, strict=True)]


@given(batches())
@settings(max_examples=150)
def test_coordinates_are_those_of_the_library(samples: list[Sample]) -> None:
    expected = np.empty((len(samples), samples[0].k), np.int64)
    for sample, row in zip(samples, expected, strict=True):
        sample_numpy(sample, 0, sample.tiles, row)
    np.testing.assert_array_equal(draw.coordinates(samples, CPU).numpy(), expected)


@pytest.mark.parametrize("case", GOLDEN["coordinates"], ids=lambda case: f"{case['dim']}-{case['k']}-{case['slots']}")
def test_golden_coordinates(case) -> None:
    key = Key(int(case["seed"]), int(case["round"]), None, case["part"])
    sample = balanced_sample_of(key, case["dim"], case["k"], case["slot"], case["slots"])
    found = draw.coordinates([sample], CPU)[0].numpy()
    assert hashlib.sha256(found.astype("<i8").tobytes()).hexdigest() == case["sha256"]


def test_all_slots_of_a_draw_cover_every_coordinate_alike() -> None:
    samples = [balanced_sample_of(Key(1, 0, str(slot)), 10_000, 1_000, slot, 25) for slot in range(25)]
    counts = torch.bincount(draw.coordinates(samples, CPU).ravel(), minlength=10_000)
    assert counts.unique().tolist() == [2, 3]
