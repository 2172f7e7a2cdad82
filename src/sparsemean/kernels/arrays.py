"""Passes over whole arrays: sums at given coordinates, multiples, reweighing, sums of powers, largest entries."""

from __future__ import annotations

import numpy as np

from sparsemean._types import Counts, Doubles, Floats, Ints
from sparsemean.kernels.twin import ARRAYS, twin


def scatter_numpy(sums: Doubles, counts: Counts, coordinates: Ints, y: Doubles) -> None:
    """Add y to ``sums`` and 1 to ``counts`` at these coordinates, which are distinct."""
    sums[coordinates] += y
    counts[coordinates] += 1


def add_scaled_numpy(sums: Floats, factor: float, out: Doubles, anew: bool = False) -> None:
    """out += factor · sums, or out = factor · sums if ``anew``."""
    if anew:
        np.multiply(sums, factor, out=out)
    else:
        out += factor * sums


def reweigh_numpy(factors: Doubles, counts: Counts, sums: Doubles, out: Doubles, anew: bool = False) -> None:
    """out += factors[counts] · sums, or out = 0 + factors[counts] · sums if ``anew``; ``out`` may be ``sums``.

    Spatial's decoding: each coordinate times a factor that depends on how many nodes sent it.
    """
    if anew:
        np.multiply(factors[counts], sums, out=out)
        out += 0.0  # turns −0 into 0, as adding to a new array of zeros would
    else:
        out += factors[counts] * sums


def power_sums_numpy(
    sums: Doubles,
    squares: Doubles,
    cubes: Doubles,
    counts: Counts,
    moment_begin: Ints,
    size: int,
    starts: Ints,
    least: int,
    width: int,
) -> tuple[Doubles, Doubles]:
    """Sums over coordinates of products of the power sums S = Σy, Q = Σy² and P3 = Σy³, per block, and by the count M.

    Parameters
    ----------
    sums, counts
        S and M of every coordinate; M lies in [least, least + width).
    squares, cubes
        Q and P3 of the coordinates that have them.
    moment_begin, size
        Q and P3 of tile b, which has ``size`` coordinates, begin at ``moment_begin[b]``; a tile with −1 has none.
    starts
        First coordinate of each block.
    least, width
        The counts m = least, least + 1, … to sum by.

    Returns
    -------
    (4, blocks) array
        Σ S² over all coordinates, then Σ S·P3, Σ Q² and Σ Q·S² over those that have Q and P3.
    (10, width, blocks) array
        By count, how many coordinates there are, and Σ S². Then of those that have Q and P3, with x̄ = S/M and the
        central sums c2 = Q − Sx̄, c3 = P3 − 3x̄Q + 2x̄²S and c4 = P4 − 4x̄P3 + 6x̄²Q − 3x̄³S: how many there are, and
        the sums of x̄⁴, c2², x̄²c2, x̄c3, c4 − P4, c2⁴ and x̄⁸.
    """
    tiles = np.flatnonzero(moment_begin >= 0)
    at = (tiles[:, None] * size + np.arange(size)).ravel()
    at = at[at < sums.size]
    block, s, sent = np.searchsorted(starts, at, side="right") - 1, sums[at], counts[at]
    products = (s * cubes, squares * squares, squares * s * s)
    higher = [np.bincount(block, product, starts.size) for product in products]
    everywhere = np.searchsorted(starts, np.arange(sums.size), side="right") - 1
    place, held_place = (
        everywhere + starts.size * (counts.astype(np.int64) - least),
        block + starts.size * (sent.astype(np.int64) - least),
    )
    table = [
        *(np.bincount(place, row, width * starts.size) for row in (np.ones(sums.size), sums * sums)),
        *(np.bincount(held_place, row, width * starts.size) for row in _held_products(s, squares, cubes, sent)),
    ]
    found = np.array([_block_sums(sums * sums, starts), *higher])
    return found, np.array(table).reshape(len(table), width, starts.size)


def _held_products(s: Doubles, q: Doubles, p3: Doubles, sent: Counts) -> list[Doubles]:
    """What the last eight rows are sums of."""
    x = s / np.maximum(sent, 1)
    x2, c2 = x * x, np.maximum(q - s * x, 0.0)
    c3, c4 = p3 - 3.0 * x * q + 2.0 * x2 * s, x * (-4.0 * p3 + x * (6.0 * q - 3.0 * x * s))
    return [np.ones(s.size), x2 * x2, c2 * c2, x2 * c2, x * c3, c4, c2 * c2 * (c2 * c2), x2 * x2 * (x2 * x2)]


def _block_sums(numbers: Doubles, starts: Ints) -> Doubles:
    """The sum of each block."""
    found = np.zeros(starts.size)
    filled = np.diff(starts, append=numbers.size) > 0  # reduceat would give an empty block the entry at its start
    if numbers.size:
        found[filled] = np.add.reduceat(numbers, starts[filled])
    return found


def largest_numpy(vector: Floats, k: int) -> Ints:
    """The k coordinates of largest magnitude in ascending order; of equal magnitudes those that come first.

    >>> largest_numpy(np.array([1.0, -5.0, 3.0, -3.0]), 2)
    array([1, 2])
    """
    if k == 0:
        return np.empty(0, np.int64)
    magnitude = np.abs(vector)
    least = np.partition(magnitude, vector.size - k)[vector.size - k]
    chosen = magnitude > least
    chosen[np.flatnonzero(magnitude == least)[: k - np.count_nonzero(chosen)]] = True
    return np.flatnonzero(chosen)


scatter = twin(scatter_numpy, "scatter", ARRAYS)
add_scaled = twin(add_scaled_numpy, "add_scaled", ARRAYS)
reweigh = twin(reweigh_numpy, "reweigh", ARRAYS)
power_sums = twin(power_sums_numpy, "power_sums", ARRAYS)
largest = twin(largest_numpy, "largest", ARRAYS, values=lambda vector, k: vector.size)
