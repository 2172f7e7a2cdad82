"""Sums from which the spread of a round of an epoch is known, where nodes are past the epoch's first draw.

Given the past nodes draw independently of each other, and each sends, tile by tile, r of the coordinates of a class as
a sample without replacement, with probability π. With y = w (value − expectation)/π as in ``RoundTotals``, the variance
of Σy² over such a sample is r (1 − π) times the variance of y² over the class in the tile, for which that over the
sample is unbiased; and (1 − π) y² is unbiased for the variance of what a node adds to the error at a coordinate.
"""

from __future__ import annotations

import numpy as np

from sparsemean._types import Doubles, Ints
from sparsemean.decoding.moment_sample import MomentSample
from sparsemean.payload.blocks import Blocks


class LaterSpread:
    """Sums over nodes, updated in place.

    Parameters
    ----------
    blocks : Blocks
        Of the vectors, or of a range of them.
    sample : MomentSample
        The coordinates that keep ``variances``, in the same range.
    classes : int
        How many classes there are; 0 where draws are not epochs, and nothing is kept.

    Attributes
    ----------
    spread : (classes, blocks) array
        Σ r/(r − 1) (y² − mean of y²)², the mean being that of a node, class and tile; y⁴ where r = 1.
    variances : array
        Σ_i a_i of each sampled coordinate, a = (1 − π) y² and, of few-bit values, π times the variance of y.
    squares : (blocks,) array
        Σ a² over nodes and sampled coordinates.
    """

    def __init__(self, blocks: Blocks, sample: MomentSample, classes: int) -> None:
        self._blocks, self._sample = blocks, sample
        self.spread: Doubles = np.zeros((classes, len(blocks.sizes)))
        self.variances: Doubles = np.zeros(sample.count if classes else 0)
        self.squares: Doubles = np.zeros(len(blocks.sizes))

    @np.errstate(over="ignore", invalid="ignore")  # powers of absurd values; what rests on them is then not stated
    def add(self, row: int, probability: float, coordinates: Ints, y: Doubles, noise: Doubles | float) -> None:
        """What a node sent of one class of coordinates; ``noise`` is the variance of y that few-bit values add."""
        square, tile = y * y, (coordinates + self._sample.lo) // self._sample.size
        _, tile, r = np.unique(tile, return_inverse=True, return_counts=True)
        mean = np.where(r > 1, np.bincount(tile, square, r.size) / r, 0.0)
        factor = np.where(r > 1, r / np.maximum(r - 1.0, 1.0), 1.0)
        self.spread[row] += self._blocks.sums_at(coordinates, factor[tile] * (square - mean[tile]) ** 2)
        a = (1.0 - probability) * square + probability * noise
        places = self._sample.places(coordinates)
        held = places >= 0
        self.variances[places[held]] += a[held]
        self.squares += self._blocks.sums_at(coordinates[held], a[held] ** 2)

    @np.errstate(over="ignore", invalid="ignore")
    def add_list(
        self, row: int, probability: float, spread: Doubles, coordinates: Ints, held: Doubles, noise: Doubles | float
    ) -> None:
        """The same of coordinates listed by tile, where ``variances`` and the sums ``spread`` are known.

        ``held`` is y² at the sampled ones, which are ``coordinates``, and ``noise`` its variance there.
        """
        self.spread[row] += spread
        self.squares += self._blocks.sums_at(coordinates, ((1.0 - probability) * held + probability * noise) ** 2)

    def merge(self, other: LaterSpread) -> None:
        """Join the sums of other nodes over the same coordinates."""
        self.spread += other.spread
        self.variances += other.variances
        self.squares += other.squares

    @np.errstate(over="ignore", invalid="ignore")
    def sums(self) -> Doubles:
        """Additive over ranges, (classes + 2, blocks): ``spread``, Σ_j Σ_{i≠l} a_ij a_lj and Σ_j (Σ_i a_ij)⁴.

        The last two are of all coordinates, as far as the sampled ones tell. Empty where draws are not epochs.
        """
        if not len(self.spread):
            return np.zeros((0, self.squares.size))
        at = self._sample.coordinates
        pairs, fourths = (self._blocks.sums_at(at, self.variances**power) for power in (2, 4))
        return np.vstack([self.spread, self._sample.scale * np.array([pairs - self.squares, fourths])])
