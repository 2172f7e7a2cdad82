"""A round whose payloads are all there, in one pass over the tiles: sums, mean and memory of each while it is cached.

What a server does with ``fold``, ``power_sums``, ``reweigh``, ``fit_sums``, ``carry`` and ``put``, one after another
over whole vectors, for nodes that all come in every round with weight 1, and to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparsemean._types import Counts, Doubles, Flags, Floats, Ints
from sparsemean.kernels.arrays import reweigh_numpy
from sparsemean.kernels.at import hybrid_expectation
from sparsemean.kernels.carry import CANCELLED
from sparsemean.kernels.fit_sums import fit_products
from sparsemean.kernels.sample import Sample, drawn
from sparsemean.kernels.twin import PASS, twin


class Sent(NamedTuple):
    """What n nodes sent: y = scale · (value − expectation).

    Attributes
    ----------
    samples
        Where the values of each stand, all of one size; None: everywhere, in order.
    values
        Of each, all of one type.
    scale
        The same for all.
    dim
        Length of the vectors.
    """

    samples: Sequence[Sample] | None
    values: Sequence[Floats]
    scale: float
    dim: int

    def coordinates(self, node: int) -> Ints:
        """Where the values of a node stand."""
        return np.arange(self.dim) if self.samples is None else drawn(self.samples[node])


class Remembered(NamedTuple):
    """What is remembered of the nodes, changed in place.

    Attributes
    ----------
    last
        B, a row for each node: what it last sent at each coordinate, 0 where nothing; of the type of the values.
    sums
        Σ_i B_ij, which follows the changes of rows as ``kernels.carry`` does it.
    heard
        1 where B holds something, else 0: a row for each node, and the expectation is then that of ``Hybrid``. Empty:
        the rows themselves are expected.
    factors
        (a, g, u) of that.
    rounding
        B − c below this, relative to both, tells nothing of g.
    """

    last: Floats
    sums: Doubles
    heard: Flags
    factors: Doubles
    rounding: float

    @property
    def common(self) -> Doubles:
        """c, the average of B over the nodes heard; 0 where nobody was."""
        number = self.heard.sum(axis=0, dtype=np.float64)
        average: Doubles = np.divide(self.sums, number, out=np.zeros_like(self.sums), where=number > 0)
        return average


class Powers(NamedTuple):
    """Which power sums are wanted besides the energies.

    Attributes
    ----------
    begin
        Per tile where the squares and cubes of its coordinates begin, as in ``fold.Totals``; −1 for a tile whose higher
        powers are not wanted.
    size
        Coordinates per tile.
    """

    begin: Ints
    size: int

    def held(self, coordinates: Ints) -> Flags:
        """Whether higher powers are wanted of these coordinates."""
        return np.asarray(self.begin[coordinates // self.size] >= 0)


class PassSums(NamedTuple):
    """Sums over all coordinates.

    Attributes
    ----------
    energy, fourths
        Of each node Σ y², and Σ y⁴ over the coordinates whose higher powers are wanted: (n,).
    powers
        With S = Σ_i y, Q = Σ_i y² and P3 = Σ_i y³ at a coordinate Σ S² over all of them, and Σ S·P3, Σ Q² and Σ Q·S²
        over those: (4,).
    most
        The largest number of nodes that sent a coordinate: (1,).
    fits
        Those of ``fit_sums``: (7,).
    """

    energy: Doubles
    fourths: Doubles
    powers: Doubles
    most: Counts
    fits: Doubles


@np.errstate(over="ignore", invalid="ignore")  # powers of absurd values may overflow; the sums themselves do not
def one_pass_numpy(
    sent: Sent,
    gains: Doubles,
    zero: float,
    out: Floats | None,
    powers: Powers | None,
    memory: Remembered | None = None,
    threads: int = 1,
) -> PassSums:
    """Write the estimated mean to ``out``, and let the memory learn what came.

    Parameters
    ----------
    sent
        The payloads.
    gains
        The factor of a sum of m values over the number of nodes: g(0)/n, …, g(n)/n.
    zero
        Added to each product; 0, or −0 to leave −0 as it is.
    out
        Where the mean goes, rounded to its type; None: nothing is decoded or learnt, only power sums are taken.
    powers
        Which power sums are wanted; None: none, and they stay 0.
    memory
        Of the nodes; None: nothing is expected.
    threads
        How many the compiled twin may use.
    """
    n = len(sent.values)
    sums, counts, squares, cubes = np.zeros(sent.dim), np.zeros(sent.dim, np.int32), *np.zeros((2, sent.dim))
    found = PassSums(np.zeros(n), np.zeros(n), np.zeros(4), np.zeros(1, np.int32), np.zeros(7))
    common = memory.common if memory is not None and memory.heard.size else np.empty(0)
    for node, values in enumerate(sent.values):
        at, residual = sent.coordinates(node), values.astype(np.float64)
        if memory is not None:
            last = memory.last[node][at].astype(np.float64)
            if memory.heard.size:
                heard, here = memory.heard[node][at].astype(np.float64), common[at]
                a, g, u = memory.factors
                residual -= hybrid_expectation(here, last, heard, (a, g, u))
                products = fit_products(values.astype(np.float64), here, last, heard, memory.rounding)
                found.fits[:] += [float(np.sum(product)) for product in products]
            else:
                residual -= last
        y = sent.scale * residual
        sums[at] += y
        counts[at] += 1
        if powers is not None:
            square = y * y
            found.energy[node] = np.sum(square)
            squares[at] += square
            cubes[at] += square * y
            found.fourths[node] = np.sum((square * square)[powers.held(at)])
    if powers is not None:
        held = powers.held(np.arange(sent.dim))
        of_held = sums * cubes, squares * squares, squares * sums * sums
        found.powers[:] = [np.sum(sums * sums), *(np.sum(product[held]) for product in of_held)]
        found.most[0] = counts.max(initial=0)
    if out is not None:
        out[:] = _mean(gains, zero, sums, counts, memory, n)
        if memory is not None:
            _learn(sent, memory)
    return found


def _mean(gains: Doubles, zero: float, sums: Doubles, counts: Counts, memory: Remembered | None, n: int) -> Doubles:
    mean = np.empty(sums.size)
    reweigh_numpy(gains, counts, sums, mean, True)
    if np.signbit(zero):
        mean = gains[counts] * sums
    if memory is None:
        return mean
    if not memory.heard.size:
        return mean + 1.0 / n * memory.sums
    a, g, u = memory.factors
    heard = 1.0 / n * memory.heard.sum(axis=0, dtype=np.float64)
    expected: Doubles = (heard * (a - g - u) + u) * memory.common + 1.0 / n * memory.sums * g
    return mean + expected


def _learn(sent: Sent, memory: Remembered) -> None:
    """The rows hold what came, and the sums follow; summed anew where a far larger value left (``kernels.carry``)."""
    lost = np.zeros(sent.dim, bool)
    for node, values in enumerate(sent.values):
        at = sent.coordinates(node)
        old = memory.last[node][at].astype(np.float64)
        memory.sums[at] += values - old
        lost[at] |= np.abs(memory.sums[at]) < CANCELLED * np.abs(old)
        memory.last[node][at] = values
        if memory.heard.size:
            memory.heard[node][at] = 1
    memory.sums[lost] = 0.0
    for row in memory.last:
        memory.sums[lost] += row[lost]


# However few the values: sums over coordinates are added in another order by either, and nodes that decode for
# themselves must all have the same bits, whatever else their processes have loaded.
one_pass = twin(one_pass_numpy, "one_pass", PASS)
