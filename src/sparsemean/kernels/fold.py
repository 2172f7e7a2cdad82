"""Add a batch of payloads to the totals of a round; their coordinates are drawn again from their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparsemean._types import Counts, Doubles, Flags, Floats, Ints
from sparsemean.kernels.parallel_map import cores
from sparsemean.kernels.sample import Sample, sample_numpy
from sparsemean.kernels.twin import twin

WORTH_THREADS = 1 << 18  # values, about a millisecond of one thread


class Totals(NamedTuple):
    """What a batch is added to, in place; y as in ``Batch``.

    Attributes
    ----------
    sums, counts
        Per coordinate Σ y, and how many nodes sent it.
    energy
        Per block Σ y²; empty if no moments are wanted, and then none of the following is touched.
    moment_begin
        Per tile of the sampler where its moments begin in ``squares`` and ``cubes``; −1 for a tile without.
    squares, cubes
        Σ y² and Σ y³ per coordinate of the tiles that have them.
    fourths
        Per block Σ y⁴ over the same coordinates.
    """

    sums: Doubles
    counts: Counts
    energy: Doubles
    moment_begin: Ints
    squares: Doubles
    cubes: Doubles
    fourths: Doubles


class Blend(NamedTuple):
    """An expectation of which a node's row is one part: u·c + h·(m·c + g·row).

    Attributes
    ----------
    common
        c, the same for all nodes, of dim entries.
    heard
        h, per node 1 where it was heard and 0 where not; None: nowhere.
    factors
        u, m and g of every block: (3, blocks).
    """

    common: Doubles
    heard: Sequence[Flags | None]
    factors: Doubles

    def expected(self, node: int, row: Floats | float, chosen: Ints, block: Ints) -> Doubles:
        """What is expected of a node at the coordinates ``chosen``, which lie in the blocks ``block``."""
        u, m, g = self.factors[:, block]
        common, heard = self.common[chosen], self.heard[node]
        mixed: Doubles = u * common
        if heard is not None:
            known = row if isinstance(row, float) else row[chosen].astype(np.float64)
            mixed += heard[chosen] * (m * common + g * known)
        return mixed


class Batch(NamedTuple):
    """Payloads to be added: y = weight · (scale · (value − expected)).

    Attributes
    ----------
    samples
        The coordinates of each payload; all samples have the same sizes.
    values
        The k values of each, all of one type.
    expected
        The row expected of each, of dim entries and all of one type; None: 0. With ``blend`` one part of it.
    weights
        ``weights[payload, block]``; where it is 0 the coordinates of the block are not counted.
    starts
        First coordinate of each block.
    scale
        The same for all.
    blend
        How rows and a common vector are mixed into the expectation; None: the rows are the expectation.
    """

    samples: Sequence[Sample]
    values: Sequence[Floats]
    expected: Sequence[Floats | None]
    weights: Doubles
    starts: Ints
    scale: float
    blend: Blend | None = None


@np.errstate(over="ignore")  # powers of absurd values may overflow; the sums themselves do not
def fold_numpy(totals: Totals, batch: Batch, threads: int = 1) -> None:
    """Add one payload after another, all its coordinates at once; ``threads`` is for the compiled twin."""
    for node, (sample, values) in enumerate(zip(batch.samples, batch.values, strict=True)):
        chosen = np.empty(sample.k, np.int64)
        sample_numpy(sample, 0, sample.tiles, chosen)
        _add(totals, sample.size, *weighed(batch, node, chosen, values))


def weighed(batch: Batch, node: int, chosen: Ints, values: Floats) -> tuple[Ints, Ints, Doubles]:
    """Of a payload's ``values`` at the coordinates ``chosen`` those that count: coordinates, blocks and y."""
    row, weights = batch.expected[node], batch.weights[node]
    block = np.searchsorted(batch.starts, chosen, side="right") - 1
    residual = values.astype(np.float64)
    if batch.blend is not None:
        residual -= batch.blend.expected(node, 0.0 if row is None else row, chosen, block)
    elif row is not None:
        residual -= row[chosen].astype(np.float64)
    counted = weights[block] > 0
    chosen, block, residual = chosen[counted], block[counted], residual[counted]
    return chosen, block, weights[block] * (batch.scale * residual)


def _add(totals: Totals, size: int, chosen: Ints, block: Ints, y: Doubles) -> None:
    totals.sums[chosen] += y
    totals.counts[chosen] += 1
    if totals.energy.size:
        square = y * y
        totals.energy[:] += np.bincount(block, square, totals.energy.size)
        begin = totals.moment_begin[chosen // size]
        has = begin >= 0
        at, square = begin[has] + chosen[has] % size, square[has]
        totals.squares[at] += square
        totals.cubes[at] += square * y[has]
        totals.fourths[:] += np.bincount(block[has], square * square, totals.fourths.size)


fold = twin(fold_numpy, "fold")


def threads_for(samples: Sequence[Sample]) -> int:
    """How many threads a batch is worth: all cores, or one if it takes no longer than waking them."""
    values = samples[0].k * len(samples) if samples else 0
    return cores() if values >= WORTH_THREADS else 1
