"""A model's layers as one vector, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sparsemean._types import Floats
from sparsemean.errors import InvalidInput
from sparsemean.inputs import array_of
from sparsemean.theory.arguments import whole

Arrays: TypeAlias = Mapping[str, Any] | Sequence[Any]
SMALL = 1024  # entries below which a tensor has too few samples for a correlation of its own


@dataclass(frozen=True)
class _Place:
    name: str | int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


class Layers:
    """Where each array of a dict or list stands in one long vector.

    Large arrays come first, a block each; small ones (biases, norms) follow, and share one block.

    Parameters
    ----------
    arrays : dict or list of arrays
        A model's parameters, such as a state dict.
    small : int, default 1024
        Arrays of fewer entries share the last block.

    Attributes
    ----------
    dim : int
        Length of the vector.
    blocks : tuple of int
        For ``Run(…, blocks=)``, so that each large array has a correlation and a fit of its own.
    names : tuple of tuples
        Which arrays are in each block.

    >>> layers = Layers({"bias": np.zeros(3), "weight": np.ones((2, 4))}, small=4)
    >>> layers.vector({"bias": np.zeros(3), "weight": np.ones((2, 4))})
    array([1., 1., 1., 1., 1., 1., 1., 1., 0., 0., 0.])
    >>> layers.blocks, layers.names, layers.arrays(np.arange(11.0))["bias"]
    ((8, 3), (('weight',), ('bias',)), array([ 8.,  9., 10.]))
    """

    def __init__(self, arrays: Arrays, small: int = SMALL) -> None:
        small = whole(small, "small", 0)
        self._keyed = isinstance(arrays, Mapping)
        given = dict(_items(arrays))
        shapes = {name: _array(name, array) for name, array in given.items()}
        if not shapes:
            raise InvalidInput("there are no arrays here; give a dict or list of a model's layers")
        self._names = list(shapes)
        ordered = sorted(shapes, key=lambda name: shapes[name].size < small)  # stable: the order is kept within each
        self._places: list[_Place] = []
        start = 0
        for name in ordered:
            array = shapes[name]
            self._places.append(_Place(name, array.shape, _type_of(given[name], array), start))
            start += array.size
        self.dim = start
        large = [place.size for place in self._places if place.size >= small and place.size]
        rest = self.dim - sum(large)
        self.blocks: tuple[int, ...] = (*large, rest) if rest else tuple(large)
        alone = [(place.name,) for place in self._places[: len(large)]]
        shared = tuple(place.name for place in self._places[len(large) :])
        self.names: tuple[tuple[str | int, ...], ...] = (*alone, shared) if rest else tuple(alone)

    def vector(self, arrays: Arrays) -> Floats:
        """All entries as one vector; float64 if any array is, else float32."""
        given = {name: _array(name, array) for name, array in _items(arrays)}
        found, wanted = {name: array.shape for name, array in given.items()}, {p.name: p.shape for p in self._places}
        for name in {**wanted, **found}:
            if found.get(name) != wanted.get(name):
                raise InvalidInput(
                    f"these are not the arrays the Layers were made for: {name!r} has the shape "
                    f"{found.get(name, 'of nothing, it is missing')} where {wanted.get(name, 'nothing')} is expected"
                )
        wide = any(array.dtype == np.float64 for array in given.values())
        vector: Floats = np.empty(self.dim, np.float64 if wide else np.float32)
        for place in self._places:
            vector[place.start : place.start + place.size] = given[place.name].ravel()
        return vector

    def arrays(self, vector: npt.ArrayLike) -> Any:
        """The dict or list that the vector stands for, in the shapes and floating types of the first one."""
        flat = np.asarray(vector)
        if flat.shape != (self.dim,):
            raise InvalidInput(f"the layers have {self.dim} entries in all, got a vector of shape {flat.shape}")
        made = {
            place.name: flat[place.start : place.start + place.size].reshape(place.shape).astype(place.dtype)
            for place in self._places
        }
        return {name: made[name] for name in self._names} if self._keyed else [made[name] for name in self._names]


def _array(name: str | int, array: Any) -> Floats:
    try:
        return array_of(array)
    except InvalidInput as error:
        raise InvalidInput(f"layer {name!r}: {error}") from None


def _type_of(given: Any, array: Floats) -> np.dtype[Any]:
    """A floating type comes back as it was; of integers there is no mean."""
    own = getattr(given, "dtype", None)
    return own if isinstance(own, np.dtype) and own.kind == "f" else array.dtype


def _items(arrays: Arrays) -> list[tuple[str | int, Any]]:
    if isinstance(arrays, Mapping):
        return list(arrays.items())
    if isinstance(arrays, Sequence) and not isinstance(arrays, str | bytes):
        return list(enumerate(arrays))
    raise InvalidInput(f"layers are a dict or list of arrays, got {type(arrays).__name__}")
