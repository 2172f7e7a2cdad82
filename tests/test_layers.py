"""A model's arrays as one vector and back; arrays from elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean.inputs import array_of

untyped: Any = sm


def model() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "bias": rng.normal(size=3).astype(np.float32),
        "weight": rng.normal(size=(40, 30)).astype(np.float32),
        "scale": np.array(2.0, np.float32),
        "head": rng.normal(size=(30, 50)).astype(np.float16),
    }


def test_large_arrays_are_blocks_and_small_ones_share_the_last() -> None:
    layers = sm.Layers(model())
    assert (layers.blocks, layers.dim) == ((1200, 1500, 4), 2704)
    assert layers.names == (("weight",), ("head",), ("bias", "scale"))
    assert sm.Run(sm.named("rand-k", k=0.1), layers.dim, blocks=layers.blocks).blocks == layers.blocks


def test_there_and_back() -> None:
    arrays = model()
    layers = sm.Layers(arrays)
    again = layers.arrays(layers.vector(arrays))
    assert list(again) == list(arrays)
    for name, array in arrays.items():
        assert (again[name].shape, again[name].dtype) == (array.shape, array.dtype)
        np.testing.assert_array_equal(again[name], array)
    assert layers.vector(arrays).dtype == np.float32
    assert layers.vector({**arrays, "bias": np.zeros(3)}).dtype == np.float64


@given(st.lists(st.lists(st.integers(1, 5), max_size=3), min_size=1, max_size=6), st.integers(0, 30))
def test_any_list_of_shapes_comes_back(shapes: list[list[int]], small: int) -> None:
    arrays = [np.random.default_rng(i).normal(size=shape) for i, shape in enumerate(shapes)]
    layers = sm.Layers(arrays, small)
    assert sum(layers.blocks) == layers.dim == sum(array.size for array in arrays)
    assert sum(size < small for size in layers.blocks) <= 1
    for one, other in zip(arrays, layers.arrays(layers.vector(arrays)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (lambda: sm.Layers({}), "no arrays"),
        (lambda: untyped.Layers(3), "dict or list"),
        (lambda: untyped.Layers("abc"), "dict or list"),
        (lambda: sm.Layers(model()).vector([np.zeros(2)]), "made for"),
        (lambda: sm.Layers(model()).arrays(np.zeros(3)), "2704 entries"),
        (lambda: sm.Layers({"a": np.array(["x"])}), "real numbers"),
    ],
    ids=range(6),
)
def test_what_does_not_fit_is_refused(work, told: str) -> None:
    with pytest.raises(sm.InvalidInput, match=told):
        work()


class Capsule:
    """Has ``__dlpack__`` alone, as some array libraries do."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class Wrapped:
    """Has ``__array__`` alone."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._array


@pytest.mark.parametrize("wrap", [Capsule, Wrapped])
def test_arrays_of_other_libraries_are_seen_without_a_copy(wrap) -> None:
    vector = np.arange(5.0, dtype=np.float32)
    assert np.shares_memory(array_of(wrap(vector)), vector)
    run = sm.Run(sm.named("identity"), 5)
    assert sm.Client(run, "a").encode(wrap(vector), 0) == sm.Client(run, "a").encode(vector, 0)


def test_half_floats_become_float32_and_integers_float64() -> None:
    assert array_of(np.ones(2, np.float16)).dtype == np.float32
    assert array_of([1, 2]).dtype == np.float64


class OnGpu:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad")


class OnAnotherDevice(Capsule):
    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("the buffer is on device 2")


def test_a_tensor_that_cannot_be_read_says_what_to_do() -> None:
    with pytest.raises(sm.InvalidInput, match="detach"):
        array_of(OnGpu())
    with pytest.raises(sm.InvalidInput, match=r"device 2.*CPU"):
        array_of(OnAnotherDevice(np.zeros(2)))


def test_masks_are_not_passed_over() -> None:
    masked = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
    with pytest.raises(sm.InvalidInput, match="masked"):
        array_of(masked)
    assert array_of(masked[::2]).tolist() == [1.0, 3.0]
