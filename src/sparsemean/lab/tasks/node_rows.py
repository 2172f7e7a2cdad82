"""The data rows of all nodes in one array, one node after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Floats, Ints
from sparsemean.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class NodeRows:
    """``rows`` has shape (all rows, dim); node i holds the ``sizes[i]`` rows of ``slices[i]``.

    >>> data = NodeRows.of([[[1, 2]], [[3, 4], [5, 6]]])
    >>> data.rows[data.slices[1]].tolist(), data.weights
    ([[3.0, 4.0], [5.0, 6.0]], array([1., 2.]))
    """

    rows: Floats
    sizes: Ints

    @staticmethod
    def of(parts: Sequence[npt.ArrayLike] | npt.NDArray[np.generic]) -> NodeRows:
        """One (rows, dim) array for each node, or one array (nodes, rows, dim), which is not copied.

        float32 and float64 are kept, everything else becomes float32.
        """
        arrays = [_real(part) for part in parts]
        if not arrays or any(a.ndim != 2 or a.size == 0 or a.shape[1] != arrays[0].shape[1] for a in arrays):
            shapes = sorted({a.shape for a in arrays})[:5]
            raise InvalidInput(f"give one non-empty (rows, dim) array for each node, all of one dim; got {shapes}")
        if isinstance(parts, np.ndarray) and parts.dtype == arrays[0].dtype:
            rows: Floats = _real(parts).reshape(-1, parts.shape[2])
        else:
            rows = np.concatenate(arrays)
        if not np.isfinite(rows).all():
            raise InvalidInput("rows hold NaN or infinity; remove or replace these values")
        return NodeRows(rows, np.array([len(array) for array in arrays], np.int64))

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.sizes)

    @property
    def dim(self) -> int:
        """Length of a row."""
        return int(self.rows.shape[1])

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where each node's rows lie."""
        ends = np.cumsum(self.sizes).tolist()
        return tuple(slice(end - size, end) for size, end in zip(self.sizes.tolist(), ends, strict=True))

    @property
    def weights(self) -> Doubles | None:
        """The nodes' sizes, with which a mean over nodes is one over rows; None where all are equal."""
        return None if np.all(self.sizes == self.sizes[0]) else self.sizes.astype(np.float64)

    def targets(self, parts: Sequence[npt.ArrayLike] | npt.NDArray[np.generic]) -> npt.NDArray[Any]:
        """One number for each row, from one array for each node: in the order of ``rows``."""
        arrays = [np.asarray(part) for part in parts]
        if [array.shape for array in arrays] != [(size,) for size in self.sizes.tolist()]:
            raise InvalidInput("give each node one label or target for each of its rows")
        joined = np.concatenate(arrays)
        if joined.dtype.kind not in "biuf" or not np.isfinite(joined).all():
            raise InvalidInput("labels and targets are finite numbers; leave out the rows that lack one")
        return joined


def _real(values: npt.ArrayLike) -> Floats:
    """As an array of float32 or float64."""
    array = np.asarray(values)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)
