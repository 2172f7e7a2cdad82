"""The estimator: totals and memory of a range of coordinates, and the mean that they give at the end of a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from sparsemean._types import Counts, Doubles, Floats, Ints
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.epoch_error import later_rows
from sparsemean.decoding.moment_sample import moment_sample
from sparsemean.decoding.summary import Summary
from sparsemean.decoding.totals import RoundTotals
from sparsemean.encoders import Remembered
from sparsemean.kernels import Blend, Sample
from sparsemean.kernels.sample import drawn
from sparsemean.kernels.tiled import Tiled
from sparsemean.memory import Arrival, MemorySpec, Past
from sparsemean.memory.rows import InMemory, Shelf
from sparsemean.payload import Part, Payload
from sparsemean.run import Run
from sparsemean.sampling.samples import sample_between
from sparsemean.server.observed import SUMS, Look, observed
from sparsemean.server.repeats import repeats


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
        spec = MemorySpec(self._blocks, run.encoder, run.value_kind.dtype, shelf or InMemory(), run.dim)
        self.memory = run.scheme.memory.start(spec)
        self._totals: RoundTotals | None = None

    @property
    def totals(self) -> RoundTotals:
        """Of the open round; made when they are first needed."""
        if self._totals is None:
            shares, sampled = self.run.class_shares, moment_sample(self.run.ranges, *self._range)
            weighs = self.run.scheme.decoder.weighs
            epochs = self.run.epochs is not None
            self._totals = RoundTotals(self._blocks, bool(shares), max(1, len(shares)), sampled, weighs, epochs)
        return self._totals

    def fold(
        self,
        arrivals: Sequence[Arrival],
        sent_before: Callable[[str], Sample | None],
        look: Look | None = None,
    ) -> None:
        """Add payloads to the totals, and hand them to the memory.

        How they are batched changes nothing, to the bit; where nodes have several encoders, nothing but rounding.
        ``sent_before`` is what a node sent in the last round, where that is to be compared (``repeats``). With a
        ``look``, what is sent is also looked at for ``Auto``.
        """
        totals, arrivals = self.totals, [self._absolute(arrival) for arrival in arrivals]
        batches: dict[tuple[int, int], list[tuple[Arrival, Part, Floats | None]]] = {}
        listed: list[tuple[Arrival, Payload, Floats | None]] = []
        for arrival, row in zip(arrivals, self.memory.rows([arrival.node for arrival in arrivals]), strict=True):
            payload = arrival.payload
            parts, choice, slots = ((), 0, 0) if payload is None else (payload.parts, payload.choice, payload.slots)
            if parts and (then := sent_before(arrival.node)) is not None:
                totals.repeats[:, choice] += repeats(arrival, self.memory, self._blocks, self._within(then))
            simple = isinstance(row, np.ndarray) or row == 0.0
            known = row if isinstance(row, np.ndarray) else None
            if simple and len(parts) == 1 and isinstance(parts[0].where, Sample):
                batches.setdefault((choice, slots), []).append((arrival, parts[0], known))
                continue
            later = self.run.epochs is not None and len(parts) == 2  # past the first draw: independent of others
            if simple and later and payload is not None and self._by_list(arrival, payload):
                if listed and listed[-1][1].choice != choice:
                    self._fold_lists(listed)
                listed.append((arrival, payload, known))
                continue
            self._fold_lists(listed)  # before what came later, so that it does not matter how coordinates are listed
            expected = (self.memory.expected(arrival.node, part.coordinates) for part in parts)
            residuals = (replace(part, values=part.values - b) for part, b in zip(parts, expected, strict=True))
            if later:
                of_u, of_s = later_rows(choice, len(self.run.shares))
                totals.add(arrival.weight, residuals, of_u, energies=(of_u, of_s))
            else:
                totals.add(arrival.weight, residuals, self._class_of(choice, slots), slots)
        self._fold_lists(listed)
        for (choice, slots), batch in batches.items():
            came, sent, rows = zip(*batch, strict=True)
            weights = np.stack([arrival.weight for arrival in came])
            totals.add_samples(weights, sent, rows, self._class_of(choice, slots), self._blend(came), slots)
        if look is not None:
            self._observe(arrivals, look)
        self.memory.take(arrivals)

    def _absolute(self, arrival: Arrival) -> Arrival:
        """The arrival with values of x, where those that came have to be read by what is remembered of the node."""
        encoder, payload = self.run.encoder, arrival.payload
        if payload is not None and self.run.sketched:
            return replace(arrival, payload=replace(payload, parts=tuple(self._resolved(arrival.node, payload))))
        if payload is None or not isinstance(encoder, Remembered):
            return arrival
        parts = []
        for part in payload.parts:
            _, last, _ = self.memory.last_heard(arrival.node, part.coordinates)
            parts.append(encoder.absolute(part, last.astype(np.float32)))
        return replace(arrival, payload=replace(payload, parts=tuple(parts)))

    def _resolved(self, node: str, payload: Payload) -> Iterator[Part]:
        """Its modulo values as those of x; what could not be told is as expected, and counted."""
        for part in payload.parts:
            if part.wrapped is None:
                yield part
                continue
            expected = np.zeros(part.coordinates.size) + self.memory.expected(node, part.coordinates)
            values, kept, noise, failed = part.wrapped.near(expected)
            self.totals.unresolved += failed
            yield replace(part, values=values, kept=kept, noise=noise, wrapped=None)

    def _by_list(self, arrival: Arrival, payload: Payload) -> bool:
        """Whether ``RoundTotals.add_lists`` takes it."""
        totals, tiled = self.totals, all(isinstance(part.where, Tiled) for part in payload.parts)
        return tiled and bool(np.all(arrival.weight > 0)) and totals.moments and not totals.sent_weight.size

    def _fold_lists(self, listed: list[tuple[Arrival, Payload, Floats | None]]) -> None:
        """Add payloads of one encoder whose coordinates are listed by tile, and take them off."""
        if listed:
            came, payloads, rows = zip(*listed, strict=True)
            both, blend = later_rows(payloads[0].choice, len(self.run.shares)), self._blend(came)
            weights = np.stack([arrival.weight for arrival in came])
            self.totals.add_lists(weights, [each.parts for each in payloads], rows, both[0], both, blend)
            listed.clear()

    def _blend(self, arrivals: Sequence[Arrival]) -> Blend | None:
        return self.memory.blend([arrival.node for arrival in arrivals])

    def _observe(self, arrivals: Sequence[Arrival], look: Look) -> None:
        totals = self.totals
        if not totals.observed.size:
            totals.observed = np.zeros((len(SUMS), len(self._blocks.sizes)))
        for arrival in arrivals:
            totals.observed += observed(arrival, self.memory, self._blocks, look)

    def _within(self, sample: Sample) -> Ints:
        """The coordinates of a sample in the range, from its beginning on."""
        lo, hi = self._range
        return drawn(sample) if hi - lo == self.run.dim else sample_between(sample, lo, hi)[0] - lo

    def _class_of(self, choice: int, slots: int) -> int:
        """Which of ``Run.class_shares`` is that of nodes with this encoder, in a draw of so many slots or in none."""
        shares = self.run.shares
        if not shares:
            return 0
        return choice + (len(shares) if self.run.planned and not slots else 0)

    def summary(self) -> Summary:
        """What this range adds to the summary of the open round."""
        return Summary.of(self.totals, self.memory.fits)

    def innovation(self, beliefs: tuple[Belief, ...], weight: Doubles | None = None) -> tuple[Doubles, Counts]:
        """The decoder's estimate of the mean innovation, and how many sent each coordinate. Changes nothing.

        Parameters
        ----------
        beliefs
            The correlation of each block, as far as it is known.
        weight
            Per block, the weight of all nodes that the mean is of, where it is of more than those who came.
        """
        totals = self.totals
        innovation = self.run.scheme.decoder.innovation(totals, self.run.class_shares, beliefs)
        if weight is not None:
            present = np.divide(totals.weight, weight, out=np.zeros_like(weight), where=weight > 0)
            innovation *= self._blocks.expand(present)
        return innovation, totals.counts

    def mean(self, innovation: Doubles, weights: Mapping[str, Doubles]) -> Doubles:
        """The estimate: mean expectation of these nodes plus mean innovation, whose array it takes over."""
        expected = self.memory.mean(weights)
        if not (isinstance(expected, float) and expected == 0.0):
            innovation += expected
        return innovation

    def learn(self, round: int, estimate: Doubles | None, summary: Summary, past: Past = "kept") -> None:
        """The round is over: learn from it, and begin the next; rows are written by ``memory.settle``.

        ``past`` says what becomes of what is known of nodes.
        """
        self.memory.pool(summary.fits)
        if past == "kept":
            self.memory.learn(round, estimate)
        else:
            self.memory.begin_anew(round, estimate, past)
        self._totals = None
