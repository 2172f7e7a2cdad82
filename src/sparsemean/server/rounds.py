"""Rounds: all a server knows, moved on by payloads in the order they are taken. No threads, files or clocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles
from sparsemean.codec import next_basis
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.moment_sample import moment_sample
from sparsemean.decoding.quality import Quality, innovation_correlation, quality
from sparsemean.decoding.summary import Summary
from sparsemean.decoding.totals import RoundTotals
from sparsemean.errors import ConflictingPayload, OutOfStep, TooFewNodes, WrongRound
from sparsemean.kernels import Sample
from sparsemean.memory import Arrival, MemorySpec, Shared
from sparsemean.memory.rows import InMemory, Shelf
from sparsemean.payload import Payload
from sparsemean.results import Estimate, Receipt
from sparsemean.run import Run
from sparsemean.state_tree import Tree, array_in, branch, names_in
from sparsemean.wire.values import value_kind


@dataclass(frozen=True, slots=True)
class Submission:
    """A payload that is whole and made for this run and node, with its weight."""

    receipt: Receipt
    weight: Doubles
    blob: bytes
    basis: int
    payload: Payload | None


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What is known of a payload that was taken."""

    receipt: Receipt
    weight: Doubles
    bytes: int
    basis: int


@dataclass(frozen=True, slots=True)
class Decoded:
    """An open round as its decoder sees it: mean and counts of what was not expected, and how good that is."""

    innovation: Doubles
    counts: npt.NDArray[np.int32]
    weights: dict[str, Doubles]
    """Of those the mean is of."""
    quality: Quality


class Rounds:
    """The open round, what is remembered of earlier ones, and how one becomes the other.

    Of vectors that are shared out by coordinates it has the range [lo, hi), and payloads are cut to it. At the end of a
    round such ranges tell each other their ``summary``; all else of them is apart.
    """

    def __init__(
        self,
        run: Run,
        missing: str,
        round: int,
        batch_bytes: int,
        shelf: Shelf | None = None,
        lo: int = 0,
        hi: int | None = None,
    ) -> None:
        self.run = run
        self.missing = missing
        self.round = round
        self._batch_bytes = batch_bytes
        self._range = (lo, run.dim if hi is None else hi)
        self._blocks = run.ranges.within(*self._range)
        self.dtype = value_kind(run.scheme.values).dtype
        setting = MemorySpec(self._blocks, run.scheme.encoder, self.dtype, shelf or InMemory(), run.dim)
        self.memory = run.scheme.memory.start(setting)
        self._likeness = np.zeros(len(run.blocks))
        self.known: dict[str, Doubles] = {}  # last weights, those heard longest ago first
        self._basis: dict[str, int] = {}
        self._closed: dict[str, Acceptance] = {}
        self._warned = False
        self._open()

    def _open(self) -> None:
        self.accepted: dict[str, Acceptance] = {}
        self._queue: dict[str, Arrival] = {}
        self._queued_bytes = 0
        self._totals: RoundTotals | None = None

    def check_round(self, round: int) -> None:
        """Refuse rounds but the open one, and the one before it, whose payloads may come again."""
        if round not in (self.round, self.round - 1):
            raise self._wrong(round)

    def _wrong(self, round: int) -> WrongRound:
        what = "is over" if round < self.round else "has not begun"
        return WrongRound(f"round {round} {what}; the open round is {self.round}")

    def counted(self, offer: Submission, beside: Mapping[str, Submission]) -> bool:
        """Whether this very payload is already counted; refuses another one in its place, and other rounds.

        ``beside`` are those of the open round that are about to be taken.
        """
        receipt = offer.receipt
        earlier: Mapping[str, Acceptance] = {self.round: self.accepted, self.round - 1: self._closed}.get(
            receipt.round, {}
        )
        before = earlier.get(receipt.node) or (beside.get(receipt.node) if receipt.round == self.round else None)
        if before is not None and before.receipt == receipt and np.array_equal(before.weight, offer.weight):
            return True
        if receipt.round != self.round:
            raise self._wrong(receipt.round)
        if before is not None:
            raise ConflictingPayload(f"node {receipt.node!r} sent other bytes or another weight in round {self.round}")
        return False

    def check_basis(self, offer: Submission) -> None:
        """A payload that builds on node state must build on the state known here; 0 begins afresh."""
        node, known = offer.receipt.node, self._basis.get(offer.receipt.node, 0)
        if (offer.basis != known and offer.basis != 0) or (offer.payload is None and offer.basis == 0):
            raise OutOfStep(f"node {node!r} builds on a state unknown here; reset() its client and send again")

    def take(self, offer: Submission) -> None:
        """Count a payload that is new and builds on a known state."""
        self.count(*self.taken(offer), offer.payload)

    def only_enqueues(self, offer: Submission) -> bool:
        """Whether taking this payload puts it into the queue and does nothing else; see ``count``."""
        afresh = self.run.scheme.encoder.facts.in_step and offer.basis == 0
        return not afresh and self._queued_bytes + _held_bytes(offer.payload) <= self._batch_bytes

    def taken(self, offer: Submission) -> tuple[Acceptance, bool]:
        """What will be known of the payload, and whether its node begins afresh with it."""
        in_step = self.run.scheme.encoder.facts.in_step
        basis = next_basis(offer.basis, offer.blob) if in_step else 0
        return Acceptance(offer.receipt, offer.weight, len(offer.blob), basis), in_step and offer.basis == 0

    def count(self, taken: Acceptance, afresh: bool, payload: Payload | None) -> None:
        """Count a payload, of a node that begins ``afresh`` or goes on from what is known of it."""
        node = taken.receipt.node
        if afresh:
            self.memory.forget(node)
        # The entry in ``accepted`` is what counts: if an interrupt comes before it, the one in the queue is void.
        self._queue.pop(node, None)
        self._queued_bytes += _held_bytes(payload)
        self._queue[node] = Arrival(node, taken.weight, payload)
        self.accepted[node] = taken
        if self._queued_bytes > self._batch_bytes:
            self.fold()

    def fold(self) -> RoundTotals:
        """Add what waits to the totals, which are made for the first that comes, and hand it to the memory.

        When it is done changes nothing, to the bit.
        """
        if self._totals is None:
            shares, held = self.run.shares, moment_sample(self.run.ranges, *self._range)
            self._totals = RoundTotals(self._blocks, bool(shares), max(1, len(shares)), held)
        totals, queue = self._totals, [arrival for node, arrival in self._queue.items() if node in self.accepted]
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
        self._queue = {}
        self._queued_bytes = 0
        return totals

    def _one_sample(self, arrival: Arrival) -> bool:
        """Whether the payload is one seeded sample of which a row is expected, or nothing."""
        parts = arrival.payload.parts if arrival.payload else ()
        if len(parts) != 1 or not isinstance(parts[0].where, Sample):
            return False
        row = self.memory.row(arrival.node)
        return isinstance(row, np.ndarray) or row == 0.0

    def check_enough(self, minimum: int) -> None:
        """Refuse to end a round with fewer nodes, or without any weight."""
        came = len(self.accepted)
        if came < minimum:
            raise TooFewNodes(f"round {self.round} has {came} of {minimum} nodes; wait for more, or skip_round()")
        if not any(np.any(taken.weight > 0) for taken in self.accepted.values()):
            raise TooFewNodes(f"all nodes of round {self.round} have weight 0, so there is no mean; skip_round()")

    def summary(self) -> Summary:
        """What this range of coordinates adds to what is known of the open round."""
        return Summary.of(self.fold(), self.memory.fits, self.run.scheme.decoder.adapts)

    def decoded(self, summary: Summary) -> Decoded:
        """What the decoder makes of the open round; ``summary`` is that of all ranges. Changes nothing."""
        decoder, shares, shown = self.run.scheme.decoder, self.run.shares, self._shown(summary)
        counted = {node: taken.weight for node, taken in self.accepted.items()}
        if self.missing == "carry":
            counted = {**self.known, **counted}
        weight = np.sum(list(counted.values()), axis=0)
        beliefs = tuple(Belief(*known) for known in zip(self._likeness.tolist(), shown.tolist(), strict=True))
        T = [decoder.T(known, n) for known, n in zip(beliefs, summary.nodes.tolist(), strict=True)]
        how_good = quality(summary, shares, T, weight, self.run.dim)
        totals = self.fold()
        innovation = decoder.innovation(totals, shares, beliefs)
        if self.missing == "carry":
            present = np.divide(totals.weight, weight, out=np.zeros_like(weight), where=weight > 0)
            innovation *= self._blocks.expand(present)
        return Decoded(innovation, totals.counts, counted, how_good)

    def close(self, summary: Summary, decoded: Decoded, most_nodes: int) -> Estimate:
        """End the round and learn from it; rows are written by ``memory.settle``, which is left to the caller."""
        remembered, mean = self.memory.mean(decoded.weights), decoded.innovation
        if not (isinstance(remembered, float) and remembered == 0.0):
            mean += remembered
        how_good = decoded.quality
        estimate = Estimate(
            mean=mean,
            round=self.round,
            nodes=tuple(self.accepted),
            counts=decoded.counts,
            bytes=sum(taken.bytes for taken in self.accepted.values()),
            error=how_good.error,
            error_se=how_good.error_se,
            correlation=how_good.correlation,
            rounding=how_good.rounding,
        )
        self._finish(estimate.mean, summary, most_nodes)
        return estimate

    def skip(self, summary: Summary, most_nodes: int) -> None:
        """End the round without an estimate; what nodes sent is still learnt, since they hold receipts for it."""
        self._finish(None, summary, most_nodes)

    def beliefs(self) -> tuple[Belief, ...]:
        """How alike the nodes' news has been, block by block."""
        return tuple(Belief(before) for before in self._likeness.tolist())

    def _shown(self, summary: Summary) -> Doubles:
        """How alike the news of this round is; as before where it does not tell, or nobody wants to know."""
        if not self.run.scheme.decoder.adapts:
            return self._likeness
        shown = innovation_correlation(summary, self.run.shares)
        return self._likeness if shown is None else np.where(np.isnan(shown), self._likeness, shown)

    def divergence(self, decoded: Decoded) -> str | None:
        """A warning, once, where a shared memory feeds its own error back faster than it learns."""
        feedback = decoded.quality.feedback
        if self._warned or feedback < 1 or not isinstance(self.run.scheme.memory, Shared):
            return None
        self._warned = True
        return (
            f"the shared memory multiplies its own error by {feedback:.3g} each round and will diverge; "
            "use memory=SharedStable(), a larger k, or more nodes"
        )

    def _finish(self, estimate: Doubles | None, summary: Summary, most_nodes: int) -> None:
        self._likeness = self._shown(summary)
        for node, taken in self.accepted.items():
            self.known.pop(node, None)
            self.known[node] = taken.weight
        for node in list(self.known)[: max(0, len(self.known) - max(most_nodes, len(self.accepted)))]:
            self._drop(node)
        self.memory.pool(summary.fits)
        self.memory.learn(self.round, estimate)
        if self.run.scheme.encoder.facts.in_step:
            self._basis.update({node: taken.basis for node, taken in self.accepted.items()})
        self._closed = self.accepted
        self.round += 1
        self._open()

    def forget(self, node: str) -> None:
        """Drop all that is remembered of a node.

        What came before is folded first: a hybrid memory takes its common average anew only where nobody has come yet,
        so that the result would else depend on when payloads were folded.
        """
        if self._queue:
            self.fold()
        self._drop(node)

    def _drop(self, node: str) -> None:
        self.memory.forget(node)
        self.known.pop(node, None)
        self._basis.pop(node, None)

    def state(self) -> Tree:
        """All of it between two rounds, but for rows on a shelf."""
        return {
            "round": self.round,
            "warned": self._warned,
            "likeness": self._likeness,
            "known": {"nodes": list(self.known), "weights": self._stacked(self.known)},
            "basis": {"nodes": list(self._basis), "numbers": np.array(list(self._basis.values()), np.int64)},
            "closed": {
                "nodes": list(self._closed),
                "digests": [taken.receipt.digest for taken in self._closed.values()],
                "weights": self._stacked({node: taken.weight for node, taken in self._closed.items()}),
                "numbers": np.array([(taken.bytes, taken.basis) for taken in self._closed.values()], np.int64),
            },
            "memory": self.memory.state(),
        }

    def restore(self, state: Tree) -> None:
        """Be as it was."""
        round, known, basis, closed = (branch(state, name) for name in ("round", "known", "basis", "closed"))
        if not isinstance(round, int):
            raise ValueError("round is no number")
        self.round, self._warned = round, bool(branch(state, "warned"))
        self._likeness = array_in(state, "likeness")
        self.known = dict(zip(names_in(known, "nodes"), array_in(known, "weights"), strict=True))
        self._basis = dict(zip(names_in(basis, "nodes"), array_in(basis, "numbers").tolist(), strict=True))
        rows = zip(
            *(names_in(closed, name) for name in ("nodes", "digests")),
            array_in(closed, "weights"),
            array_in(closed, "numbers").tolist(),
            strict=True,
        )
        self._closed = {
            node: Acceptance(Receipt(node, round - 1, digest), weight, *numbers)
            for node, digest, weight, numbers in rows
        }
        self.memory.restore(branch(state, "memory"))

    def _stacked(self, weights: Mapping[str, Doubles]) -> Doubles:
        return np.array(list(weights.values()), np.float64).reshape(len(weights), len(self.run.blocks))


def _held_bytes(payload: Payload | None) -> int:
    return 0 if payload is None else payload.held_bytes
