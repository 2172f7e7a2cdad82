"""Add a batch of payloads to the totals of a round, drawing their coordinates anew from the words of their keys."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from sparsemean._types import Counts, Doubles, Flags, Floats, Ints
from sparsemean.kernels.choose import fastest
from sparsemean.kernels.parallel_map import cores
from sparsemean.kernels.sample import Sample, sample_numpy

WORTH_THREADS = 1 << 18  # values, about a millisecond of one thread


class Totals(NamedTuple):
    """What a batch is added to, in place; y is as in ``Batch``.

    Per coordinate Σ y and how many sent it; per block Σ y² (``energy``), unless that is empty. The tiles of the
    sampler with ``kept[tile]`` ≥ 0 have, from there on, Σ y² and Σ y³ per coordinate in ``squares`` and ``cubes``, and
    add Σ y⁴ to their blocks' ``fourths``.
    """

    sums: Doubles
    counts: Counts
    energy: Doubles
    kept: Ints
    squares: Doubles
    cubes: Doubles
    fourths: Doubles


class Blend(NamedTuple):
    """What is expected where the rows are one part of it: u·c + h·(m·c + g·row).

    c is ``common`` to all nodes; h, one row of 0 and 1 for each, says where it was ``heard`` (None: nowhere);
    ``factors`` are u, m and g of every block.
    """

    common: Doubles
    heard: Sequence[Flags | None]
    factors: Doubles

    def expected(self, node: int, row: Floats | float, chosen: Ints, block: Ints) -> Doubles:
        """At these coordinates, which lie in these blocks."""
        u, m, g = self.factors[:, block]
        common, heard = self.common[chosen], self.heard[node]
        mixed: Doubles = u * common
        if heard is not None:
            known = row if isinstance(row, float) else row[chosen].astype(np.float64)
            mixed += heard[chosen] * (m * common + g * known)
        return mixed


class Batch(NamedTuple):
    """Payloads of one size: y = weight · (scale · (value − expected)).

    Of each a sample, its k values and the row expected of it (None: 0), all values and all rows of one type, the rows
    perhaps only one part of a blend; ``weights[i, block]``, where a coordinate of weight 0 is left out; the first
    coordinate of each block.
    """

    samples: Sequence[Sample]
    values: Sequence[Floats]
    expected: Sequence[Floats | None]
    weights: Doubles
    starts: Ints
    scale: float
    blend: Blend | None = None


Fold: TypeAlias = Callable[[Totals, Batch, int], None]


@np.errstate(over="ignore")  # powers of absurd values may overflow; the sums themselves do not
def fold_numpy(totals: Totals, batch: Batch, threads: int = 1) -> None:
    """One payload after another, all its coordinates at once; one thread whatever ``threads`` says."""
    for node, (sample, values, row, weights) in enumerate(
        zip(batch.samples, batch.values, batch.expected, batch.weights, strict=True)
    ):
        chosen = np.empty(sample.k, np.int64)
        sample_numpy(sample, 0, sample.tiles, chosen)
        block = np.searchsorted(batch.starts, chosen, side="right") - 1
        residual = values.astype(np.float64)
        if batch.blend is not None:
            residual -= batch.blend.expected(node, 0.0 if row is None else row, chosen, block)
        elif row is not None:
            residual -= row[chosen].astype(np.float64)
        counted = weights[block] > 0
        chosen, block, residual = chosen[counted], block[counted], residual[counted]
        _add(totals, sample.size, chosen, block, weights[block] * (batch.scale * residual))


def _add(totals: Totals, size: int, chosen: Ints, block: Ints, y: Doubles) -> None:
    totals.sums[chosen] += y
    totals.counts[chosen] += 1
    if totals.energy.size:
        square = y * y
        totals.energy[:] += np.bincount(block, square, totals.energy.size)
        begin = totals.kept[chosen // size]
        has = begin >= 0
        at, square = begin[has] + chosen[has] % size, square[has]
        totals.squares[at] += square
        totals.cubes[at] += square * y[has]
        totals.fourths[:] += np.bincount(block[has], square * square, totals.fourths.size)


def threads_for(samples: Sequence[Sample]) -> int:
    """All cores for a batch that takes longer than starting threads does."""
    values = samples[0].k * len(samples) if samples else 0
    return cores() if values >= WORTH_THREADS else 1


@functools.cache
def fold() -> Fold:
    """The fastest of the two here."""
    return fastest(fold_numpy, "fold")
