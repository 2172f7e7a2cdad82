"""Running totals of a round: what every decoder needs of the payloads, in O(d) memory however many nodes come."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from sparsemean.blocks import Blocks
from sparsemean.errors import InvalidInput
from sparsemean.kernels import scatter
from sparsemean.payload import Doubles, Ints, Part
from sparsemean.theory.estimated import Moments


class RoundTotals:
    """Sums, counts and powers per coordinate of y = weight · scale · (value − expectation); updated in place.

    With ``moments`` it also keeps the sums of squares and cubes from which the server estimates its own error.
    """

    def __init__(self, blocks: Blocks, moments: bool) -> None:
        self.blocks = blocks
        self.nodes: npt.NDArray[np.int64] = np.zeros(len(blocks.sizes), np.int64)
        self.weight: Doubles = np.zeros(len(blocks.sizes))
        self.sums: Doubles = np.zeros(blocks.dim)
        self.counts: npt.NDArray[np.int32] = np.zeros(blocks.dim, np.int32)
        self.squares: Doubles = np.zeros(blocks.dim if moments else 0)
        self.cubes: Doubles = np.zeros(blocks.dim if moments else 0)
        self.fourths: Doubles = np.zeros(len(blocks.sizes))

    @np.errstate(over="ignore")  # powers of absurd values may overflow; the sums themselves do not
    def add(self, weight: Doubles, residuals: Iterable[Part]) -> None:
        """One node: its weight per block, and its parts less what was expected of them. O(k)."""
        self.nodes += weight > 0
        self.weight += weight
        for part in residuals:
            chosen, values = part.coordinates, part.values.astype(np.float64)  # fourth powers overflow float32
            share = self.blocks.at(weight, chosen)
            if not np.all(weight > 0):  # a node without weight is left out of M_j
                kept = np.broadcast_to(share, chosen.shape) > 0
                chosen, values, share = chosen[kept], values[kept], np.broadcast_to(share, kept.shape)[kept]
            y = np.asarray(share * (part.scale * values), np.float64)
            scatter()(self.sums, self.counts, self.squares, self.cubes, chosen, y)
            if self.squares.size:
                self._add_fourths(chosen, y**2)

    def _add_fourths(self, chosen: Ints, square: Doubles) -> None:
        if len(self.blocks.sizes) == 1:
            self.fourths += square @ square
        else:
            self.fourths += np.bincount(self.blocks.of(chosen), square * square, minlength=self.fourths.size)

    def merge(self, other: RoundTotals) -> None:
        """Join the totals of other nodes over the same coordinates."""
        if other.blocks != self.blocks or other.squares.size != self.squares.size:
            raise InvalidInput("totals of different runs cannot be merged; make both with the same Run")
        self.nodes += other.nodes
        self.weight += other.weight
        self.sums += other.sums
        self.counts += other.counts
        self.fourths += other.fourths
        self.squares += other.squares
        self.cubes += other.cubes

    @np.errstate(over="ignore", invalid="ignore")
    def summary(self) -> Moments | None:
        """A few numbers per block, additive over coordinate ranges; None where powers are not kept."""
        if not self.squares.size:
            return None
        s, q = self.sums, self.squares
        return Moments(
            s2=self.blocks.sums(s * s),
            q=self.blocks.sums(q),
            p4=self.fourths.copy(),
            sp3=self.blocks.sums(s * self.cubes),
            q2=self.blocks.sums(q * q),
            qs2=self.blocks.sums(q * s * s),
        )
