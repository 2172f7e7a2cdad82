"""How a model's arrays travel: most as one vector of differences, a few whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from flwr.app import Array, ArrayRecord

import sparsemean as sm

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
# Estimated from a few coordinates, a variance could become negative.
WHOLE = ("*running_mean", "*running_var")


class Parted:
    """A model's arrays as a node gets them, parted into those that become one vector and those that travel whole.

    Whole travel integers and booleans (counters, of which a few samples tell nothing) and arrays whose names match a
    pattern in ``whole``.

    >>> model = ArrayRecord({"w": Array(np.ones((2, 3), np.float32)), "steps": Array(np.array(4))})
    >>> parted = Parted(model)
    >>> parted.layers.dim, parted.whole
    (6, ('steps',))
    """

    def __init__(self, record: Mapping[str, Array], whole: Iterable[str] = WHOLE) -> None:
        patterns = tuple(whole)
        self.arrays = _numpy(record)
        for name, array in self.arrays.items():
            if array.dtype.kind not in "biuf":
                raise sm.InvalidInput(f"array {name!r} has the type {array.dtype}; only real numbers have a mean here")
        # Sorted, so that both sides agree whatever order the arrays arrive in.
        self.whole = tuple(
            name
            for name, array in sorted(self.arrays.items())
            if array.dtype.kind != "f" or any(fnmatchcase(name, pattern) for pattern in patterns)
        )
        self._start = self._sparse(self.arrays)
        if not self._start:
            raise sm.InvalidInput("no array of floats is left to compress; use the inner strategy as it is")
        self.layers = sm.Layers(self._start)

    def _sparse(self, arrays: Arrays) -> Arrays:
        return {name: arrays[name] for name in sorted(arrays) if name not in self.whole}

    @property
    def start(self) -> npt.NDArray[np.floating[Any]]:
        """The arrays that do not travel whole, as one vector."""
        return self.layers.vector(self._start)

    def difference(self, trained: Mapping[str, Array]) -> npt.NDArray[np.floating[Any]]:
        """What training changed, as one vector."""
        return self.layers.vector(self._sparse(_numpy(trained))) - self.start

    def pack_whole(self, trained: Mapping[str, Array]) -> bytes:
        """The arrays that travel whole, one behind the other, little-endian."""
        found = _numpy({name: trained[name] for name in self.whole if name in trained})
        parts: list[bytes] = []
        for name in self.whole:
            wanted = self.arrays[name]
            array = found.get(name)
            if array is None or array.shape != wanted.shape or not np.can_cast(array.dtype, wanted.dtype, "same_kind"):
                raise sm.InvalidInput(
                    f"array {name!r} came back from training with another shape or type, or not at all"
                )
            parts.append(array.astype(wanted.dtype.newbyteorder("<")).tobytes())
        return b"".join(parts)

    def read_whole(self, data: bytes) -> Arrays:
        """The arrays that ``pack_whole`` wrote."""
        sizes = [self.arrays[name].nbytes for name in self.whole]
        if len(data) != sum(sizes):
            raise sm.MalformedPayload(f"the arrays that travel whole have {sum(sizes)} bytes, got {len(data)}")
        arrays: Arrays = {}
        start = 0
        for name, size in zip(self.whole, sizes, strict=True):
            wanted = self.arrays[name]
            little = np.frombuffer(data[start : start + size], wanted.dtype.newbyteorder("<"))
            if wanted.dtype.kind == "f" and not np.isfinite(little).all():
                raise sm.NonFiniteValues(f"array {name!r} has NaN or infinite entries")
            arrays[name] = little.reshape(wanted.shape)
            start += size
        return arrays

    def mean_of_whole(self, nodes: Sequence[Arrays], weights: Sequence[float]) -> Arrays:
        """Their weighted mean, of integers and booleans rounded to the nearest."""
        shares = np.asarray(weights) / np.sum(weights)
        mean = {}
        for name in self.whole:
            average = sum(share * node[name].astype(np.float64) for share, node in zip(shares, nodes, strict=True))
            mean[name] = np.asarray(average)
        return self.typed(mean)

    def moved(self, difference: npt.NDArray[np.float64], whole: Arrays) -> Arrays:
        """The model after this mean difference, and with these arrays that travelled whole."""
        sparse = self.layers.arrays(self.start + difference)
        return {name: whole[name] if name in whole else sparse[name] for name in self.arrays}

    def typed(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
        """In the types they had: averaging makes floats of integers."""
        return {
            name: (array if self.arrays[name].dtype.kind == "f" else np.rint(array)).astype(self.arrays[name].dtype)
            for name, array in arrays.items()
        }


def record_of(arrays: Arrays) -> ArrayRecord:
    """Arrays as Flower carries them."""
    return ArrayRecord({name: Array(np.asarray(array)) for name, array in arrays.items()})


def _numpy(record: Mapping[str, Array]) -> Arrays:
    return {name: array.numpy() for name, array in record.items()}
