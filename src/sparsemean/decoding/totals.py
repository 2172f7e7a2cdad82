"""Running totals of a round: what every decoder needs of the payloads, in O(d) memory however many nodes come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Floats, Ints
from sparsemean.decoding.by_count import ByCount
from sparsemean.decoding.later_spread import LaterSpread
from sparsemean.decoding.moment_sample import MomentSample, moment_sample
from sparsemean.decoding.senders import Senders, SenderSums
from sparsemean.errors import InvalidInput
from sparsemean.kernels import Batch, Blend, Sample, Totals, fold, power_sums, scatter, threads_for
from sparsemean.kernels.listed import ListedBatch, ListedTotals, fold_listed, threads_for_lists
from sparsemean.kernels.tiled import Tiled
from sparsemean.payload import Part
from sparsemean.payload.blocks import Blocks
from sparsemean.theory.estimated import Moments

NO_MOMENTS = (np.zeros(0), np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0))
"""What stands in ``Totals`` where no powers are summed."""

NO_COORDINATES: Ints = np.empty(0, np.int64)
"""In place of those at which values stand, where there is one block and sums do not ask."""

AT_ONCE = 1 << 22
"""Values at listed coordinates that are added at a time where there are several blocks; their squares take 16 bytes."""

Entry = tuple[int, int, Part, Tiled]
"""Number of the node, class of its squares, and a part whose coordinates are listed by tile."""


class RoundTotals:
    """Sums, counts and powers per coordinate of y = weight · scale · (value − expectation); updated in place.

    Nodes that send with different shares, or by another law, are summed apart and counted together.

    Parameters
    ----------
    blocks : Blocks
        Of the vectors, or of a range of them.
    moments : bool
        Whether to keep the energies, from which the server estimates its own error, and the sums of squares and cubes
        at the ``held`` coordinates, from which it tells the standard error: 12 to 14 bytes a coordinate of a long
        vector.
    classes : int, default 1
        How many classes of nodes there are.
    held : MomentSample, optional
        Which coordinates keep power sums; where the blocks are a range of longer vectors, those of the range.
    weighs : bool, default False
        Whether to sum the weights of those who sent a coordinate, times their scale: ``sent_weight``, 8 bytes a
        coordinate.
    epochs : bool, default False
        Whether nodes may be past the first draw of an epoch, of which the spread is known from sums of its own: 8 bytes
        a coordinate of a short vector, 1 of a long one.
    """

    def __init__(
        self,
        blocks: Blocks,
        moments: bool,
        classes: int = 1,
        held: MomentSample | None = None,
        weighs: bool = False,
        epochs: bool = False,
    ) -> None:
        self.blocks = blocks
        self.moments = moments
        self.held = moment_sample(blocks) if held is None else held
        self.class_nodes: npt.NDArray[np.int64] = np.zeros((classes, len(blocks.sizes)), np.int64)
        self.class_slots: npt.NDArray[np.int64] = np.zeros(classes, np.int64)  # of its draw; 0: independent
        self.class_sums: Doubles = np.zeros((classes, blocks.dim))
        self.class_squares: Doubles = np.zeros((classes, len(blocks.sizes)))
        self.class_noise: Doubles = np.zeros((classes, len(blocks.sizes)))
        self.repeats: Doubles = np.zeros((4, classes, len(blocks.sizes)))
        self.observed: Doubles = np.zeros((0, len(blocks.sizes)))
        self.weight: Doubles = np.zeros(len(blocks.sizes))
        self.unresolved = 0  # tiles of modulo values that count as expected
        self.counts: npt.NDArray[np.int32] = np.zeros(blocks.dim, np.int32)
        self.sent_weight: Doubles = np.zeros(blocks.dim if weighs else 0)
        self.squares: Doubles = np.zeros(self.held.count if moments else 0)
        self.cubes: Doubles = np.zeros(self.held.count if moments else 0)
        self.fourths: Doubles = np.zeros(len(blocks.sizes))
        self.senders = Senders(self.held)  # of the first class, where its draw is balanced
        self.later = LaterSpread(blocks, self.held, classes if epochs and moments else 0)

    @property
    def nodes(self) -> npt.NDArray[np.int64]:
        """How many nodes have a weight, per block."""
        nodes: npt.NDArray[np.int64] = self.class_nodes.sum(axis=0)
        return nodes

    @property
    def present(self) -> list[int]:
        """The classes that nodes came of; the first where nobody did."""
        return np.flatnonzero(self.class_nodes.any(axis=1)).tolist() or [0]

    @property
    def sums(self) -> Doubles:
        """Σ_i y_ij over all nodes."""
        first, *others = self.present
        sums: Doubles = self.class_sums[[first, *others]].sum(axis=0) if others else self.class_sums[first]
        return sums

    @np.errstate(over="ignore")  # powers of absurd values may overflow; the sums themselves do not
    def add(
        self,
        weight: Doubles,
        residuals: Iterable[Part],
        of_class: int = 0,
        slots: int = 0,
        energies: Iterable[int] | None = None,
    ) -> None:
        """One node: its weight per block, and its parts less what was expected of them. O(k).

        ``slots`` are those of the draw in which its class takes part; 0 where nodes draw independently. ``energies``
        says for each part to which class its squares and noise belong, where that is not the node's.
        """
        self.class_slots[of_class] = slots
        self.class_nodes[of_class] += weight > 0
        self.weight += weight
        for part, row in zip(residuals, repeat(of_class) if energies is None else energies, strict=False):
            chosen, values = part.coordinates, part.values.astype(np.float64)  # fourth powers overflow float32
            share = np.broadcast_to(self.blocks.at(weight, chosen), chosen.shape)
            counted: slice | npt.NDArray[np.bool_] = slice(None)
            if not np.all(weight > 0):  # a node without weight is left out of M_j
                counted = share > 0
                chosen, values, share = chosen[counted], values[counted], share[counted]
            y = np.asarray(share * (part.scale * values), np.float64)
            scatter(self.class_sums[of_class], self.counts, chosen, y)
            if self.sent_weight.size:
                self.sent_weight[chosen] += share * part.scale
            if self.moments:
                self.class_squares[row] += self.blocks.sums_at(chosen, y * y)
                self._add_powers(chosen, y)
                if of_class == 0 and np.any(weight > 0):
                    self.senders.add(slots, chosen, y)
                if part.noise != 0.0:
                    self.class_noise[row] += self._noise(weight, part)
                if energies is not None:
                    noise = np.broadcast_to(np.asarray(part.noise, np.float64), part.values.shape)[counted]
                    self.later.add(row, 1.0 / part.scale, chosen, y, noise * (part.scale * share) ** 2)

    def _add_powers(self, chosen: Ints, y: Doubles) -> None:
        places = chosen
        if not self.held.everything:
            places = self.held.places(chosen)
            chosen, y, places = chosen[places >= 0], y[places >= 0], places[places >= 0]
        square = y * y
        self.squares[places] += square
        self.cubes[places] += square * y
        self.fourths += self.blocks.sums_at(chosen, square * square)

    @np.errstate(over="ignore")
    def add_samples(
        self,
        weights: Doubles,
        parts: Sequence[Part],
        expected: Sequence[Floats | None],
        of_class: int = 0,
        blend: Blend | None = None,
        slots: int = 0,
    ) -> None:
        """Many nodes at once, each with one seeded sample, all of one size and scale. O(nk), tile by tile."""
        self.class_slots[of_class] = slots
        samples = [part.where for part in parts if isinstance(part.where, Sample)]
        self.class_nodes[of_class] += np.count_nonzero(weights > 0, axis=0)
        for weight in weights:
            self.weight += weight
        moments, empty = self.moments, np.zeros(0)
        into = Totals(
            self.class_sums[of_class],
            self.counts,
            self.class_squares[of_class] if moments else empty,
            self.held.begin,
            self.squares,
            self.cubes,
            self.fourths if moments else empty,
        )
        values, scale = [part.values for part in parts], parts[0].scale
        batch = Batch(samples, values, expected, weights, self.blocks.starts, scale, blend)
        fold(into, batch, threads_for(samples))
        if moments and of_class == 0:
            self.senders.add_batch(slots, batch)
        if self.sent_weight.size:
            self._add_weights(batch)
        for weight, part in zip(weights, parts, strict=True):
            if moments and part.noise != 0.0:
                self.class_noise[of_class] += self._noise(weight, part)

    def add_lists(
        self,
        weights: Doubles,
        payloads: Sequence[Sequence[Part]],
        expected: Sequence[Floats | None],
        of_class: int,
        energies: Sequence[int],
        blend: Blend | None = None,
    ) -> None:
        """Many nodes at once, each with parts whose coordinates are listed by tile; all weights are above 0. O(nk).

        To the bit what ``add`` does with one after another. ``energies`` says of each part of a payload to which class
        its squares and noise belong.
        """
        self.class_nodes[of_class] += len(weights)
        for weight in weights:
            self.weight += weight
        entries = [
            (node, row, part, part.where)
            for node, parts in enumerate(payloads)
            for part, row in zip(parts, energies, strict=True)
            if isinstance(part.where, Tiled)
        ]
        moments = self.held.begin, self.squares, self.cubes, self.later.variances
        into = ListedTotals(self.class_sums[of_class], self.counts, *moments)
        for some in _few(entries) if len(self.blocks.sizes) > 1 else [entries]:
            nodes, rows, parts, where = zip(*some, strict=True)
            values, scales = [part.values for part in parts], [part.scale for part in parts]
            # Of one block sums do not ask where values stand.
            known = [self._held(weights[node], part, at) for node, _, part, at in some]
            batch = ListedBatch(
                where,
                values,
                [expected[node] for node in nodes],
                weights[list(nodes)],
                self.blocks.starts,
                scales,
                [noise for _, noise in known],
                None if blend is None else blend._replace(heard=[blend.heard[node] for node in nodes]),
            )
            sums = fold_listed(into, batch, threads_for_lists(where))
            for i, (row, part, (coordinates, noise)) in enumerate(zip(rows, parts, known, strict=True)):
                self.class_squares[row] += sums.energy[i]
                self.fourths += self.blocks.sums_at(coordinates, sums.held[i] * sums.held[i])
                if part.noise != 0.0:
                    self.class_noise[row] += self._noise(weights[nodes[i]], part)
                rounding = 0.0 if noise is None else noise
                self.later.add_list(row, 1.0 / part.scale, sums.spread[i], coordinates, sums.held[i], rounding)

    def _held(self, weight: Doubles, part: Part, where: Tiled) -> tuple[Ints, Doubles | None]:
        """Of a list the coordinates that keep power sums, if somebody asks, and the variance of y by rounding there."""
        if part.noise == 0.0 and len(self.blocks.sizes) == 1:
            return NO_COORDINATES, None
        coordinates, numbers = self.held.listed(where)
        if part.noise == 0.0:
            return coordinates, None
        share = np.broadcast_to(self.blocks.at(weight, coordinates), coordinates.shape)
        noise = np.broadcast_to(np.asarray(part.noise, np.float64), part.values.shape)[numbers]
        return coordinates, noise * (part.scale * share) ** 2

    def _add_weights(self, batch: Batch) -> None:
        """The weights of a batch are what it would add if every value were 1 and nothing expected."""
        ones = [np.ones(each.size, each.dtype) for each in batch.values]
        into = Totals(self.sent_weight, np.zeros_like(self.counts), *NO_MOMENTS)
        fold(into, batch._replace(values=ones, expected=[None] * len(ones), blend=None), threads_for(batch.samples))

    def _noise(self, weight: Doubles, part: Part) -> Doubles:
        """Σ of its variance over the values of a part, per block."""
        if isinstance(part.noise, float):
            coordinates = part.coordinates if len(self.blocks.sizes) > 1 else NO_COORDINATES
            total = part.noise * self.blocks.sums_at(coordinates, np.ones(part.values.size))
        elif len(self.blocks.sizes) == 1:
            total = np.array([part.noise.sum()])
        else:
            total = self.blocks.sums_at(part.coordinates, np.asarray(part.noise))
        noise: Doubles = (weight * part.scale) ** 2 * total
        return noise

    def merge(self, other: RoundTotals) -> None:
        """Join the totals of other nodes over the same coordinates."""
        mine, theirs = vars(self), vars(other)
        same = self.held == other.held and self.later.spread.shape == other.later.spread.shape
        same = same and all(np.shape(mine[name]) == np.shape(theirs[name]) for name in mine)
        if not same:
            raise InvalidInput("totals of different runs cannot be merged; make both with the same Run")
        for name, array in mine.items():
            if name == "class_slots":  # no sum: both take part in the same draw, if they have nodes of the class
                np.maximum(array, theirs[name], out=array)
            elif isinstance(array, np.ndarray):
                array += theirs[name]
        self.senders.merge(other.senders)
        self.later.merge(other.later)

    @np.errstate(over="ignore", invalid="ignore")
    def summary(self) -> tuple[Moments, ByCount] | None:
        """A few numbers per block, and per block and count, additive over ranges; None where powers are not kept."""
        if not self.moments:
            return None
        held = self.held
        # Not 0 and n: who sends a coordinate in two parts is counted twice, and loops do not check their places.
        least, most = (int(self.counts.min()), int(self.counts.max())) if self.counts.size else (0, 0)
        power = self.squares, self.cubes, self.counts, held.begin, held.size, self.blocks.starts
        (s2, *higher), by_count = power_sums(self.sums, *power, least, most - least + 1)
        sp3, q2, qs2, p4 = (held.scale * each for each in (*higher, self.fourths))
        moments = Moments(s2, self.class_squares.sum(axis=0), p4, sp3, q2, qs2, self.class_noise.sum(axis=0))
        occur = np.flatnonzero(by_count[0].any(axis=1))
        return moments, ByCount(occur + least, by_count[:, occur])

    def sender_sums(self) -> SenderSums:
        """What coordinates that share their senders have in common; 0 where draws are not balanced."""
        scale = np.divide(self.class_nodes[0], self.weight, out=np.zeros(self.weight.size), where=self.weight > 0)
        return self.senders.sums(scale)

    @np.errstate(over="ignore", invalid="ignore")
    def products(self) -> Doubles:
        """Σ_j S_sj S_tj of the sums of classes s and t, per block: (classes, classes, blocks)."""
        found = np.zeros((len(self.class_sums), *self.class_nodes.shape))
        for s in self.present:
            for t in self.present:
                found[s, t] = self.blocks.sums(self.class_sums[s] * self.class_sums[t])
        return found


def _few(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """The lists in order, AT_ONCE values at a time, but at least one list."""
    some: list[Entry] = []
    values = 0
    for entry in entries:
        values += entry[3].k
        if some and values > AT_ONCE:
            yield some
            some, values = [], entry[3].k
        some.append(entry)
    if some:
        yield some
