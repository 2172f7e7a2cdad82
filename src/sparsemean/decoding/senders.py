"""Who sent what at some coordinates of a balanced draw: what coordinates that share their senders have in common."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sparsemean._types import Doubles, Ints
from sparsemean.decoding.moment_sample import MomentSample
from sparsemean.kernels import Batch
from sparsemean.kernels.fold import weighed
from sparsemean.kernels.sample import drawn_near
from sparsemean.theory.forms import inverse, left_out
from sparsemean.theory.shared_senders import LEAST_NODES, shared_sender_covariance, squared_differences

MOST_SLOTS = 40
"""With more slots nothing is kept: sets of senders are then many, and to compare all pairs of nodes takes long."""

ENTRIES = 1 << 17
"""Nodes times coordinates to look at, about; but at least one tile of them and at most ``MOST_TILES``."""

MOST_TILES = 16


class SenderSums(NamedTuple):
    """Sums over coordinates, additive over ranges; 0 where nothing was kept. With y as in ``RoundTotals``.

    Attributes
    ----------
    covariance : float
        Of the gaps between predicted and actual error, over all pairs of coordinates: what their sum varies by beyond
        independent ones (``theory.shared_senders``), where the estimate is the mean of what came. In units of y n/W.
    outlying, triples : float
        Over coordinates that three nodes sent, of what is left of values without their mean: Σ 6 c3²/c2 and Σ c2², c2
        and c3 being the sums of squares and of cubes. The first is half of the second for normal values, and as large
        if one of three is apart from two that are equal.
    products, pairs : float
        Over neighbouring coordinates, Σ (y_i − y_l)²(z_o − z_q)²/4 of two pairs of nodes, one of each coordinate, that
        have no node in common, and how many such there are.
    """

    covariance: float = 0.0
    outlying: float = 0.0
    triples: float = 0.0
    products: float = 0.0
    pairs: float = 0.0

    @property
    def apart(self) -> float:
        """See ``triple_kurtosis``; 0 where nothing was kept."""
        return 2.0 * self.outlying / self.triples - 1.0 if self.triples > 0.0 else 0.0

    @property
    def neighbours(self) -> float:
        """See ``triple_kurtosis``; NaN where no four nodes sent two neighbours."""
        return self.products / self.pairs if self.pairs > 0.0 else math.nan


class Senders:
    """The values of each node in some tiles: all tiles of a short vector, evenly spaced ones of a long one.

    Parameters
    ----------
    sample : MomentSample
        Says which range of which vectors this is.
    """

    def __init__(self, sample: MomentSample) -> None:
        self._sample = sample
        self.slots = 0
        self.sent: list[tuple[Ints, Doubles]] = []

    def tiles(self) -> Ints:
        """The tiles that are looked at, of the whole vector."""
        number, size = -(-self._sample.blocks.dim // self._sample.size), self._sample.size
        wanted = min(max(ENTRIES // (size * max(self.slots, 1)), 1), MOST_TILES)
        return np.arange(number) if number <= wanted else np.arange(wanted) * number // wanted

    def add(self, slots: int, coordinates: Ints, y: Doubles) -> None:
        """What a node in a draw of so many slots sent, coordinates counted from the beginning of the range."""
        if 0 < slots <= MOST_SLOTS:
            self.slots = slots
            here = np.isin((coordinates + self._sample.lo) // self._sample.size, self.tiles())
            self.sent.append((coordinates[here], y[here]))

    def add_batch(self, slots: int, batch: Batch) -> None:
        """The same of many nodes."""
        if not 0 < slots <= MOST_SLOTS:
            return
        self.slots = slots
        for node in np.flatnonzero(batch.weights.any(axis=1)).tolist():
            sample, values = batch.samples[node], batch.values[node]
            chosen, place = drawn_near(sample, self.tiles() * sample.size)
            coordinates, _, y = weighed(batch, node, chosen, values[place])
            self.sent.append((coordinates, y))

    def merge(self, other: Senders) -> None:
        """Join what other nodes sent."""
        self.slots = max(self.slots, other.slots)
        self.sent += other.sent

    def sums(self, scale: Doubles) -> SenderSums:
        """Of the range; ``scale`` is n/W of each block."""
        if len(self.sent) < LEAST_NODES:
            return SenderSums()
        sample, tiles = self._sample, self.tiles()
        lo, hi = sample.range
        looked_at = np.minimum((tiles + 1) * sample.size, sample.blocks.dim) - tiles * sample.size
        found = np.zeros(len(SenderSums()))
        for start in (tiles * sample.size).tolist():
            if lo <= start < hi:
                size = min(sample.size, hi - start)
                weight = sample.blocks.at(scale, np.arange(start, start + size))
                found += _of_tile(*self._dense(start - lo, size), weight)
        return SenderSums(*(found * (sample.blocks.dim / float(looked_at.sum()))).tolist())

    def _dense(self, start: int, size: int) -> tuple[Doubles, Doubles]:
        """y of each node in a tile, 0 where it did not send, and 1 where it did."""
        y, sent = np.zeros((2, len(self.sent), size))
        for row, (coordinates, values) in enumerate(self.sent):
            here = (coordinates >= start) & (coordinates < start + size)
            at = coordinates[here] - start
            y[row, at], sent[row, at] = values[here], 1.0
        return y, sent


@np.errstate(over="ignore", invalid="ignore")
def _of_tile(y: Doubles, sent: Doubles, scale: Doubles | float) -> SenderSums:
    m = sent.sum(axis=0)
    met = float(np.sum(np.maximum(m - 1.0, 0.0)))
    if met == 0.0:
        return SenderSums()
    a = float(np.sum(left_out(m, float(len(y))))) / met
    covariance = shared_sender_covariance(a, sent, squared_differences(y * scale, sent))
    y = sent * (y - y.sum(axis=0) * inverse(m))
    if m.max() > 3:  # kurtosis is then estimated from four senders
        return SenderSums(covariance)
    three = y[:, m == 3]
    square = three * three
    c2, c3 = square.sum(axis=0), np.sum(square * three, axis=0)
    outlying, triples = float(np.sum(6.0 * c3 * c3 * inverse(c2))), float(np.sum(c2 * c2))
    return SenderSums(covariance, outlying, triples, *_disjoint_pairs(y, sent))


def _disjoint_pairs(y: Doubles, sent: Doubles) -> tuple[float, float]:
    """``products`` and ``pairs`` of values without the mean of their coordinate.

    All pairs of one coordinate with all of the next, less those with a node in common, of which pairs with two were
    taken off twice.
    """
    m, q = sent.sum(axis=0), np.sum(y * y, axis=0)
    of_node = sent * (m * y * y + q) / 2.0  # Σ_l (y_i − y_l)²/2, as Σ y is 0
    both = sent[:, :-1] * sent[:, 1:]
    v, z = both * y[:, :-1], both * y[:, 1:]

    def total(numbers: Doubles) -> Doubles:
        found: Doubles = np.sum(numbers, axis=0)
        return found

    b, vv, zz = total(both), total(v * v), total(z * z)
    same = b * total(v * v * z * z) + vv * zz + 2.0 * total(v * z) ** 2
    same -= 2.0 * (total(v * v * z) * total(z) + total(v * z * z) * total(v))
    product = (m * q)[:-1] * (m * q)[1:] / 4.0 - total(of_node[:, :-1] * of_node[:, 1:]) + same / 4.0
    halves = m * (m - 1.0) / 2.0
    number = halves[:-1] * halves[1:] - b * (m[:-1] - 1.0) * (m[1:] - 1.0) + b * (b - 1.0) / 2.0
    return float(product.sum()), float(number.sum())
