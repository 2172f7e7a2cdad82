"""The estimator: totals and memory of a range of coordinates, and the mean that they give at the end of a round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.moment_sample import moment_sample
from sparsemean.decoding.summary import Summary
from sparsemean.decoding.totals import RoundTotals
from sparsemean.kernels import Sample
from sparsemean.memory import Arrival, MemorySpec
from sparsemean.memory.rows import InMemory, Shelf
from sparsemean.run import Run
from sparsemean.wire.values import value_kind


class Estimator:
    """Folds payloads into totals, decodes them, and learns from them, for the coordinates [lo, hi).

    Where vectors are shared out by coordinates, payloads are cut to the range. Ranges need only the sum of their
    ``summary`` from each other.

    Parameters
    ----------
    run : Run
    shelf : Shelf
        Where the memory keeps its rows.
    lo, hi : int
        The range, which begins and ends with a tile; by default all of the vector.
    """

    def __init__(self, run: Run, shelf: Shelf | None = None, lo: int = 0, hi: int | None = None) -> None:
        self.run = run
        self._range = (lo, run.dim if hi is None else hi)
        self._blocks = run.ranges.within(*self._range)
        dtype = value_kind(run.scheme.values).dtype
        spec = MemorySpec(self._blocks, run.scheme.encoder, dtype, shelf or InMemory(), run.dim)
        self.memory = run.scheme.memory.start(spec)
        self._totals: RoundTotals | None = None

    @property
    def totals(self) -> RoundTotals:
        """Of the open round; made when they are first needed."""
        if self._totals is None:
            shares, sampled = self.run.shares, moment_sample(self.run.ranges, *self._range)
            self._totals = RoundTotals(self._blocks, bool(shares), max(1, len(shares)), sampled)
        return self._totals

    def fold(self, arrivals: Iterable[Arrival]) -> None:
        """Add payloads to the totals, and hand them to the memory. How they are batched changes nothing, to the bit."""
        totals, queue = self.totals, list(arrivals)
        batches: dict[tuple[int, int], list[Arrival]] = {}
        for arrival in queue:
            of_class = self.run.class_of(arrival.payload)
            if arrival.payload is not None and self._one_sample(arrival):
                batches.setdefault((of_class, arrival.payload.choice), []).append(arrival)
                continue
            parts = arrival.payload.parts if arrival.payload else ()
            expected = (self.memory.expected(arrival.node, part.coordinates) for part in parts)
            residuals = (replace(part, values=part.values - b) for part, b in zip(parts, expected, strict=True))
            totals.add(arrival.weight, residuals, of_class)
        for (of_class, _), batch in batches.items():
            rows = [self.memory.row(arrival.node) for arrival in batch]
            sent = [part for arrival in batch if arrival.payload for part in arrival.payload.parts]
            expected_rows = [row if isinstance(row, np.ndarray) else None for row in rows]
            blend = self.memory.blend([arrival.node for arrival in batch])
            totals.add_samples(np.stack([arrival.weight for arrival in batch]), sent, expected_rows, of_class, blend)
        for arrival in queue:
            self.memory.take(arrival)

    def _one_sample(self, arrival: Arrival) -> bool:
        """Whether the payload is one seeded sample of which a row is expected, or nothing."""
        parts = arrival.payload.parts if arrival.payload else ()
        if len(parts) != 1 or not isinstance(parts[0].where, Sample):
            return False
        row = self.memory.row(arrival.node)
        return isinstance(row, np.ndarray) or row == 0.0

    def summary(self) -> Summary:
        """What this range adds to the summary of the open round."""
        return Summary.of(self.totals, self.memory.fits, self.run.scheme.decoder.adapts)

    def innovation(self, beliefs: tuple[Belief, ...], weight: Doubles | None = None) -> Doubles:
        """The decoder's estimate of the mean innovation. Changes nothing.

        Parameters
        ----------
        beliefs
            The correlation of each block, as far as it is known.
        weight
            Per block, the weight of all nodes that the mean is of, where it is of more than those who came.
        """
        innovation = self.run.scheme.decoder.innovation(self.totals, self.run.shares, beliefs)
        if weight is not None:
            present = np.divide(self.totals.weight, weight, out=np.zeros_like(weight), where=weight > 0)
            innovation *= self._blocks.expand(present)
        return innovation

    def mean(self, innovation: Doubles, weights: Mapping[str, Doubles]) -> Doubles:
        """The estimate: mean expectation of these nodes plus mean innovation, whose array it takes over."""
        expected = self.memory.mean(weights)
        if not (isinstance(expected, float) and expected == 0.0):
            innovation += expected
        return innovation

    def learn(self, round: int, estimate: Doubles | None, summary: Summary) -> None:
        """The round is over: learn from it, and begin the next; rows are written by ``memory.settle``."""
        self.memory.pool(summary.fits)
        self.memory.learn(round, estimate)
        self._totals = None
