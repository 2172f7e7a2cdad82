"""Rounds whose coordinates are listed by tile: what they add to totals, to a fit and to sums of rows.

The same as ``fold``, ``fit_sums``, ``carry`` and ``put`` do with samples, but for the order of sums over coordinates:
here it is that of the list, value after value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparsemean._types import Array, Counts, Doubles, Flags, Floats, Ints, Words
from sparsemean.kernels.at import Known, fit_at_numpy
from sparsemean.kernels.carry import CANCELLED, Columns, check_of
from sparsemean.kernels.fit_sums import products
from sparsemean.kernels.fold import WORTH_THREADS, Blend
from sparsemean.kernels.parallel_map import cores
from sparsemean.kernels.tiled import Tiled
from sparsemean.kernels.twin import LISTED, twin


class ListedTotals(NamedTuple):
    """What is added to, in place; y and π = 1/scale as in ``ListedBatch``.

    Attributes
    ----------
    sums, counts, moment_begin, squares, cubes
        As in ``Totals``.
    variances
        Σ (1 − π) y² + π · noise of the coordinates that have squares and cubes.
    """

    sums: Doubles
    counts: Counts
    moment_begin: Ints
    squares: Doubles
    cubes: Doubles
    variances: Doubles


class ListedBatch(NamedTuple):
    """Values to be added: y = weight · (scale · (value − expected)); a node may have several lists.

    Attributes
    ----------
    where
        Lists of coordinates, all of one dim and tile; those of one node have none in common.
    values
        The values of each list, all of one type.
    expected
        The row expected of its node, of dim entries and all of one type; None: 0. With ``blend`` one part of it.
    weights
        ``weights[list, block]``, all above 0.
    starts
        First coordinate of each block.
    scales
        Of each list: 1/π, π being the probability with which its coordinates were sent.
    noise
        The variance of y that rounding adds, of each list at the coordinates that have squares and cubes; None: 0.
    blend
        How rows and a common vector are mixed into the expectation; None: the rows are the expectation.
    """

    where: Sequence[Tiled]
    values: Sequence[Floats]
    expected: Sequence[Floats | None]
    weights: Doubles
    starts: Ints
    scales: Sequence[float]
    noise: Sequence[Doubles | None]
    blend: Blend | None = None


class ListedSums(NamedTuple):
    """Sums over the coordinates of each list, as NumPy takes them: pairwise in one block, one by one in several.

    Attributes
    ----------
    energy
        Σ y²: (lists, blocks).
    spread
        Σ r/(r − 1) (y² − mean of y²)², the mean being that of the r values of a tile; y⁴ where r = 1: (lists, blocks).
    held
        y² at the coordinates that have squares and cubes, an array for each list.
    """

    energy: Doubles
    spread: Doubles
    held: list[Doubles]


@np.errstate(over="ignore", invalid="ignore")  # powers of absurd values may overflow; the sums themselves do not
def fold_listed_numpy(totals: ListedTotals, batch: ListedBatch, threads: int = 1) -> ListedSums:
    """Add one list after another; ``threads`` is for the compiled twin."""
    energy, spread = np.zeros((2, len(batch.where), batch.starts.size))
    found = ListedSums(energy, spread, [])
    for i, (where, values, row) in enumerate(zip(batch.where, batch.values, batch.expected, strict=True)):
        chosen, residual = where.coordinates, values.astype(np.float64)
        block = np.searchsorted(batch.starts, chosen, side="right") - 1
        if batch.blend is not None:
            residual -= batch.blend.expected(i, 0.0 if row is None else row, chosen, block)
        elif row is not None:
            residual -= row[chosen].astype(np.float64)
        y = batch.weights[i][block] * (batch.scales[i] * residual)
        square = y * y
        totals.sums[chosen] += y
        totals.counts[chosen] += 1
        begin = totals.moment_begin[chosen // where.tile]
        has = begin >= 0
        at, held, noise, p = begin[has] + chosen[has] % where.tile, square[has], batch.noise[i], 1.0 / batch.scales[i]
        totals.squares[at] += held
        totals.cubes[at] += held * y[has]
        totals.variances[at] += (1.0 - p) * held + p * (0.0 if noise is None else noise)
        found.energy[i] = block_sums(batch.starts.size, block, square)
        found.spread[i] = block_sums(batch.starts.size, block, spread_terms(where, square))
        found.held.append(held)
    return found


def spread_terms(where: Tiled, square: Doubles) -> Doubles:
    """What ``ListedSums.spread`` is the sum of."""
    counts = np.diff(where.at)
    r = counts[counts > 0]
    tile = np.repeat(np.arange(r.size), r)
    mean = np.where(r > 1, np.bincount(tile, square, r.size) / r, 0.0)
    factor = np.where(r > 1, r / np.maximum(r - 1.0, 1.0), 1.0)
    terms: Doubles = factor[tile] * (square - mean[tile]) ** 2
    return terms


def block_sums(blocks: int, block: Ints, values: Doubles) -> Doubles:
    """The sum of each block."""
    return np.array([np.sum(values)]) if blocks == 1 else np.bincount(block, values, blocks).astype(np.float64)


class ListedFit(NamedTuple):
    """What came, and what was known before it: as in ``Fit``, for lists of coordinates."""

    where: Sequence[Tiled]
    values: Sequence[Floats]
    rows: Sequence[Floats | None]
    heard: Sequence[Flags | None]
    weights: Doubles
    starts: Ints
    common: Doubles
    rounding: float


def fit_listed_numpy(fit: ListedFit, threads: int = 1) -> Doubles:
    """The seven sums of ``fit_sums_numpy`` of each list: (lists, 7, blocks)."""
    found = np.zeros((len(fit.where), 7, fit.starts.size))
    for i, (where, values, row, flags, weight) in enumerate(zip(*fit[:5], strict=True)):
        at = where.coordinates
        if row is not None and flags is not None:
            found[i] = fit_at_numpy(Known(row, flags, fit.common, fit.starts), weight, at, values, fit.rounding)
        else:
            block, none = np.searchsorted(fit.starts, at, side="right") - 1, np.zeros(at.size)
            x, c = weight[block] * values, weight[block] * fit.common[at]
            found[i] = products(block, fit.starts.size, x, c, none, none, fit.rounding)
    return found


class ListedChanges(NamedTuple):
    """New entries of rows: as in ``Changes``, for lists of coordinates; several may be of one row."""

    where: Sequence[Tiled]
    values: Sequence[Array]
    rows: Sequence[Array]


class Lost(NamedTuple):
    """Where cancellation left a sum inexact.

    Attributes
    ----------
    at
        The coordinates, ascending.
    since
        Number of the list after which it first was, for each of them.
    """

    at: Ints
    since: Ints


def carry_listed_numpy(
    columns: Columns, changes: ListedChanges, threads: int = 1, checks: Words | None = None
) -> list[Lost]:
    """As ``carry_numpy``, list after list; of each sum it tells where it was left inexact, and since when."""
    lost = [(np.empty(0, np.int64), np.empty(0, np.int64)) for _ in columns.sums]
    for i, (where, values, row) in enumerate(zip(*changes, strict=True)):
        at = where.coordinates
        block, old = np.searchsorted(columns.starts, at, side="right") - 1, row[at].astype(np.float64)
        if checks is not None:
            added = (check_of(values, at) - check_of(row[at], at)) % 2**64
            checks[i : i + 1] += np.array([added], np.uint64)
        for s, (sums, weights) in enumerate(zip(columns.sums, columns.weights, strict=True)):
            weight = weights[i][block]
            moved = sums[at] + weight * (values - old)
            sums[at] = moved
            late = at[np.abs(moved) < CANCELLED * np.abs(weight * old)]
            lost[s] = np.append(lost[s][0], late), np.append(lost[s][1], np.full(late.size, i))
    return [first_lost(*each) for each in lost]


def first_lost(at: Ints, since: Ints) -> Lost:
    """Each coordinate once, with the first of its numbers, which ascend."""
    once, first = np.unique(at, return_index=True)
    return Lost(once, since[first])


def put_listed_numpy(changes: ListedChanges, threads: int = 1) -> None:
    """Write the values into the rows."""
    for where, values, row in zip(*changes, strict=True):
        row[where.coordinates] = values


fold_listed = twin(fold_listed_numpy, "fold_listed", LISTED)
fit_listed = twin(fit_listed_numpy, "fit_listed", LISTED)
carry_listed = twin(carry_listed_numpy, "carry_listed", LISTED)
put_listed = twin(put_listed_numpy, "put_listed", LISTED)


def threads_for_lists(where: Sequence[Tiled]) -> int:
    """How many threads so many coordinates are worth, as ``threads_for`` says of samples."""
    return cores() if sum(each.k for each in where) >= WORTH_THREADS else 1
