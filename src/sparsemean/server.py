"""Server: takes payloads of a round, closes it into an estimate, learns from it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sparsemean import codec
from sparsemean.client import next_basis
from sparsemean.decoders import Belief
from sparsemean.errors import (
    ConflictingPayload,
    DivergenceWarning,
    InvalidInput,
    OutOfStep,
    SparseMeanError,
    TooFewNodes,
    WrongRound,
)
from sparsemean.fingerprint import fingerprint
from sparsemean.inputs import node_name, round_number, weight_of
from sparsemean.kernels import Sample
from sparsemean.memory import Arrival, Setting, Shared
from sparsemean.payload import Doubles, Payload
from sparsemean.quality import news_likeness, quality
from sparsemean.results import Estimate, Receipt
from sparsemean.run import Run
from sparsemean.theory import Moments
from sparsemean.theory.arguments import whole
from sparsemean.totals import RoundTotals
from sparsemean.wire.frame import Header, frame_digest
from sparsemean.wire.values import value_kind


@dataclass(frozen=True, slots=True)
class _Accepted:
    """What the server knows of a payload it took."""

    receipt: Receipt
    weight: Doubles
    bytes: int
    basis: int


class Server:
    """Accepts payloads and returns one estimate a round. Thread-safe; a refused payload changes nothing.

    ``missing`` says what nodes count for that were heard before but not in this round: "drop", nothing, the mean is
    of those present; "carry", their remembered vectors stand in for them, with their last weight.

    >>> import sparsemean as sm
    >>> run = sm.Run(sm.named("identity"), dim=2)
    >>> server = sm.Server(run)
    >>> for node, vector in {"a": [1, 2], "b": [3, 6]}.items():
    ...     receipt = server.accept(node, sm.Client(run, node).encode(vector, server.round))
    >>> server.close_round().mean
    array([2., 4.])
    """

    def __init__(self, run: Run, missing: str = "drop", round: int = 0, batch_bytes: int = 1 << 24) -> None:
        if missing not in ("drop", "carry"):
            raise InvalidInput(f'missing is "drop" or "carry", got {missing!r}')
        if missing == "carry" and not run.scheme.memory.facts.stands_in:
            raise InvalidInput('missing="carry" needs a memory that stands in for absent nodes, such as PerNode()')
        self.run = run
        self.missing = missing
        self.round = round_number(round)
        self._batch_bytes = batch_bytes
        self._lock = threading.Lock()
        dtype = value_kind(run.scheme.values).dtype
        self._memory = run.scheme.memory.start(Setting(run.ranges, run.scheme.encoder, dtype))
        self._likeness = np.zeros(len(run.blocks))
        self._known: dict[str, Doubles] = {}
        self._basis: dict[str, int] = {}
        self._closed: dict[str, _Accepted] = {}
        self._warned = False
        self._open()

    def _open(self) -> None:
        self._accepted: dict[str, _Accepted] = {}
        self._queue: list[Arrival] = []
        self._queued_bytes = 0
        self._totals: RoundTotals | None = None

    def accept(
        self, node: str, blob: bytes | bytearray | memoryview, weight: float | Sequence[float] | Doubles = 1.0
    ) -> Receipt:
        """Take a payload of the open round. Taking the same one again is harmless and gives the same receipt."""
        node, weights = node_name(node), weight_of(weight, len(self.run.blocks))
        if not isinstance(blob, bytes | bytearray | memoryview):
            raise InvalidInput(f"a payload is bytes, not {type(blob).__name__}")
        blob = bytes(blob)
        header, body = codec.open_frame(self.run, node, blob)
        receipt = Receipt(node, header.round, frame_digest(blob))
        with self._lock:
            if self._seen(receipt, weights):
                return receipt
            payload = codec.read_payload(self.run, node, header, body)
            self._check_basis(node, header, payload)
            self._take(receipt, blob, weights, header, payload)
        return receipt

    def accept_many(
        self,
        payloads: Iterable[tuple[str, bytes]] | Mapping[str, bytes] | Path | str,
        weights: Mapping[str, float | Sequence[float] | Doubles] | None = None,
    ) -> list[tuple[str, Receipt | SparseMeanError]]:
        """Take many payloads as they come, with the weight of each node (1 by default); one at a time is in memory.

        ``payloads`` are pairs of node and bytes, a dict of them, or a folder with a file ``<node>.spmn`` for each. The
        answers are in their order: a refused one stands with its error among the receipts, and the others go on.
        """
        given: Mapping[str, float | Sequence[float] | Doubles] = {} if weights is None else weights
        if not isinstance(given, Mapping):
            raise InvalidInput("weights are a dict of node and weight")
        answers: list[tuple[str, Receipt | SparseMeanError]] = []
        for node, blob in _pairs(payloads):
            try:
                answers.append((node, self.accept(node, blob, given.get(node, 1.0))))
            except SparseMeanError as refused:
                answers.append((node, refused))
        return answers

    def _seen(self, receipt: Receipt, weight: Doubles) -> bool:
        """Whether this very payload is already counted; refuses another one in its place, and other rounds."""
        rounds = {self.round: self._accepted, self.round - 1: self._closed}
        before = rounds.get(receipt.round, {}).get(receipt.node)
        if before is not None and before.receipt == receipt and np.array_equal(before.weight, weight):
            return True
        if receipt.round != self.round:
            what = "is over" if receipt.round < self.round else "has not begun"
            raise WrongRound(f"round {receipt.round} {what}; the open round is {self.round}")
        if before is not None:
            raise ConflictingPayload(f"node {receipt.node!r} sent other bytes or another weight in round {self.round}")
        return False

    def _check_basis(self, node: str, header: Header, payload: Payload | None) -> None:
        """A payload that builds on node state must build on the state this server has; 0 begins afresh."""
        known = self._basis.get(node, 0)
        if (header.basis != known and header.basis != 0) or (payload is None and header.basis == 0):
            raise OutOfStep(f"node {node!r} builds on a state unknown here; reset() its client and send again")

    def _take(self, receipt: Receipt, blob: bytes, weight: Doubles, header: Header, payload: Payload | None) -> None:
        if self.run.scheme.encoder.facts.in_step and header.basis == 0:
            self._memory.forget(receipt.node)
        basis = next_basis(header.basis, blob) if self.run.scheme.encoder.facts.in_step else 0
        self._accepted[receipt.node] = _Accepted(receipt, weight, len(blob), basis)
        self._queue.append(Arrival(receipt.node, weight, payload))
        self._queued_bytes += len(blob)
        if self._queued_bytes > self._batch_bytes:
            self._fold()

    def _fold(self) -> RoundTotals:
        """Add what waits to the totals, which are made for the first that comes, and hand it to the memory."""
        if self._totals is None:
            self._totals = RoundTotals(self.run.ranges, bool(self.run.shares), max(1, len(self.run.shares)))
        totals = self._totals
        batches: dict[tuple[int, int], list[Arrival]] = {}
        for arrival in self._queue:
            of_class = self.run.class_of(arrival.payload)
            if arrival.payload is not None and self._one_sample(arrival):
                batches.setdefault((of_class, arrival.payload.choice), []).append(arrival)
                continue
            parts = arrival.payload.parts if arrival.payload else ()
            expected = (self._memory.expected(arrival.node, part.coordinates) for part in parts)
            residuals = (replace(part, values=part.values - b) for part, b in zip(parts, expected, strict=True))
            totals.add(arrival.weight, residuals, of_class)
        for (of_class, _), batch in batches.items():
            rows = [self._memory.row(arrival.node) for arrival in batch]
            sent = [part for arrival in batch if arrival.payload for part in arrival.payload.parts]
            expected_rows = [row if isinstance(row, np.ndarray) else None for row in rows]
            totals.add_samples(np.stack([arrival.weight for arrival in batch]), sent, expected_rows, of_class)
        for arrival in self._queue:
            self._memory.take(arrival)
        self._queue = []
        self._queued_bytes = 0
        return totals

    def _one_sample(self, arrival: Arrival) -> bool:
        """Whether the payload is one seeded sample of which a row is expected, or nothing."""
        parts = arrival.payload.parts if arrival.payload else ()
        if len(parts) != 1 or not isinstance(parts[0].where, Sample):
            return False
        row = self._memory.row(arrival.node)
        return isinstance(row, np.ndarray) or row == 0.0

    def close_round(self, minimum: int = 1) -> Estimate:
        """The estimate from those who came; with fewer than ``minimum`` the round stays open."""
        with self._lock:
            came, wanted = len(self._accepted), whole(minimum, "minimum", 1)
            if came < wanted:
                raise TooFewNodes(f"round {self.round} has {came} of {wanted} nodes; wait for more, or skip_round()")
            if not any(np.any(taken.weight > 0) for taken in self._accepted.values()):
                raise TooFewNodes(f"all nodes of round {self.round} have weight 0, so there is no mean; skip_round()")
            totals = self._fold()
            moments = totals.summary()
            shown = self._shown(totals, moments)
            estimate = self._estimate(totals, moments, shown)
            self._finish(estimate.mean, shown)
            return estimate

    def skip_round(self) -> None:
        """End the round without an estimate; what nodes sent is still learnt, since they hold receipts for it."""
        with self._lock:
            totals = self._fold()
            self._finish(None, self._shown(totals, totals.summary()))

    def beliefs(self) -> tuple[Belief, ...]:
        """How alike the nodes' news has been, block by block: all that an adaptive decoder goes by before a round."""
        return tuple(Belief(before) for before in self._likeness.tolist())

    def _estimate(self, totals: RoundTotals, moments: Moments | None, shown: Doubles) -> Estimate:
        decoder, shares = self.run.scheme.decoder, self.run.shares
        counted = {node: taken.weight for node, taken in self._accepted.items()}
        if self.missing == "carry":
            counted = {**self._known, **counted}
        weight = np.sum(list(counted.values()), axis=0)
        before = self._likeness.tolist()
        beliefs = tuple(Belief(*known) for known in zip(before, shown.tolist(), strict=True))
        innovation = decoder.innovation(totals, shares, beliefs)
        if self.missing == "carry":
            present = np.divide(totals.weight, weight, out=np.zeros_like(weight), where=weight > 0)
            innovation = innovation * self.run.ranges.spread(present)
        T = [decoder.T(known, n) for known, n in zip(beliefs, totals.nodes.tolist(), strict=True)]
        how_good = quality(totals, shares, moments, T, weight)
        self._warn(how_good.feedback)
        return Estimate(
            mean=np.add(self._memory.mean(counted), innovation, out=innovation),
            round=self.round,
            nodes=tuple(self._accepted),
            counts=totals.counts,
            bytes=sum(taken.bytes for taken in self._accepted.values()),
            error=how_good.error,
            error_se=how_good.error_se,
            correlation=how_good.correlation,
            rounding=how_good.rounding,
        )

    def _shown(self, totals: RoundTotals, moments: Moments | None) -> Doubles:
        """How alike the news of this round is; as before where it does not tell, or nobody wants to know."""
        if not self.run.scheme.decoder.adapts:
            return self._likeness
        shown = news_likeness(totals, self.run.shares, moments)
        return self._likeness if shown is None else np.where(np.isnan(shown), self._likeness, shown)

    def _warn(self, feedback: float) -> None:
        if isinstance(self.run.scheme.memory, Shared) and feedback >= 1 and not self._warned:
            self._warned = True
            warnings.warn(
                f"the shared memory multiplies its own error by {feedback:.3g} each round and will diverge; "
                "use memory=SharedStable(), a larger k, or more nodes",
                DivergenceWarning,
                stacklevel=4,
            )

    def _finish(self, estimate: Doubles | None, shown: Doubles) -> None:
        self._likeness = shown
        self._memory.learn(self.round, estimate)
        self._known.update({node: taken.weight for node, taken in self._accepted.items()})
        if self.run.scheme.encoder.facts.in_step:
            self._basis.update({node: taken.basis for node, taken in self._accepted.items()})
        self._closed = self._accepted
        self.round += 1
        self._open()

    def forget(self, node: str) -> None:
        """Drop all that is remembered of a node, which may come back as a new one."""
        with self._lock:
            if node in self._accepted:
                raise InvalidInput(f"node {node!r} takes part in the open round; forget it after close_round()")
            self._memory.forget(node)
            self._known.pop(node, None)
            self._basis.pop(node, None)

    def expected(self, node: str) -> Doubles:
        """What the memory puts in place of this node's vector before it hears from it: zeros for one never heard."""
        with self._lock:
            return np.zeros(self.run.dim) + self._memory.remembered(node)

    def digest(self) -> str:
        """Changes with any part of the server's state."""
        with self._lock:
            return fingerprint(vars(self))


def _pairs(payloads: Iterable[tuple[str, bytes]] | Mapping[str, bytes] | Path | str) -> Iterator[tuple[str, bytes]]:
    if isinstance(payloads, Mapping):
        yield from payloads.items()
    elif isinstance(payloads, Path | str):
        if not Path(payloads).is_dir():
            raise InvalidInput(f"{payloads} is no folder; payloads lie in one as <node>.spmn")
        for path in sorted(Path(payloads).glob("*.spmn")):
            if path.is_file():
                yield path.stem, path.read_bytes()
    else:
        for pair in payloads:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise InvalidInput("payloads are pairs of node and bytes, a dict of them, or a folder")
            yield pair[0], pair[1]
