"""Server: takes payloads of a round, closes it into an estimate, learns from it."""

from __future__ import annotations

import json
import logging
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypeVar

import numpy as np

from sparsemean import codec
from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief
from sparsemean.errors import (
    BrokenServer,
    DivergenceWarning,
    InvalidInput,
    JournalError,
    RoundFull,
    SparseMeanError,
    WrongRound,
)
from sparsemean.inputs import journal_folder, lists_of, node_name, payload_pairs, round_number, weight_of
from sparsemean.kernels import cores, parallel_map
from sparsemean.results import Estimate, Receipt
from sparsemean.run import Run
from sparsemean.server.clip import Clip
from sparsemean.server.counters import Counters
from sparsemean.server.fingerprint import fingerprint
from sparsemean.server.group_commit import GroupCommit
from sparsemean.server.reports import RoundReport
from sparsemean.server.rounds import Rounds, Submission
from sparsemean.server.uninterrupted import uninterrupted
from sparsemean.theory.arguments import whole
from sparsemean.wire.frame import frame_digest

if TYPE_CHECKING:
    from sparsemean.journal import Journal, Record
    from sparsemean.memory.rows import Shelf

Weight = float | Sequence[float] | Doubles
Result = TypeVar("Result")
LEAST_BATCH = 1 << 25
LAST_ROUND = (1 << 63) - 1
BATCH = 256  # payloads that accept_many takes at once
WORTH_A_THREAD = 1 << 18  # bytes of a payload, the checksum of which takes longer than a thread does to begin
BOOKKEEPING = 1 << 11  # bytes that any node takes, whatever is remembered of it
WEIGHTS = 4  # of each block that are held for a node

log = logging.getLogger("sparsemean.server")


@dataclass(slots=True)
class _Ended:
    """A round that is over, and whether those who watch were told."""

    estimate: Estimate | None
    report: RoundReport
    warning: str | None
    told: bool = False


class _Stopped(Exception):
    """Whoever closes the round was interrupted before it was over."""


class Server:
    """Accepts payloads and returns one estimate a round. Thread-safe; a refused payload changes nothing.

    ``missing`` says what nodes count for that were heard before but not in this round: "drop", nothing, the mean is
    of those present; "carry", their remembered vectors stand in for them, with their last weight.

    Payloads wait in memory up to ``batch_bytes``, by default as many as the totals of a round take or 32 MiB, and are
    then added to them in one pass.

    ``journal`` is a folder that makes rounds durable: a server of the same run goes on from it where the last one
    stopped, however it stopped. With durability "accept" a receipt means that the payload survives a power cut; with
    "round", that it survives the death of the process. Rounds that ended survive both, ``last_estimate`` included.

    Nodes are remembered up to ``memory_bytes`` in all; those heard longest ago are forgotten first, and a round takes
    no more nodes than there is room for. ``clip`` bounds what one node can do; ``on_round`` are called with a
    ``RoundReport`` after each round.

    An interrupt (Ctrl-C, or any exception of a signal handler) leaves the server as it was before the call or as it is
    after it. Make the same call again: a payload is not counted twice, and ``close_round`` returns the estimate that
    the interrupted call did not return.

    >>> import sparsemean as sm
    >>> run = sm.Run(sm.named("identity"), dim=2)
    >>> server = sm.Server(run)
    >>> for node, vector in {"a": [1, 2], "b": [3, 6]}.items():
    ...     receipt = server.accept(node, sm.Client(run, node).encode(vector, server.round))
    >>> server.close_round().mean
    array([2., 4.])
    """

    def __init__(
        self,
        run: Run,
        missing: str = "drop",
        round: int = 0,
        batch_bytes: int | None = None,
        journal: Path | str | None = None,
        durability: str = "accept",
        memory_bytes: int = 1 << 34,
        clip: Clip | None = None,
        on_round: Sequence[Callable[[RoundReport], object]] = (),
    ) -> None:
        if missing not in ("drop", "carry"):
            raise InvalidInput(f'missing is "drop" or "carry", got {missing!r}')
        if missing == "carry" and not run.scheme.memory.facts.stands_in:
            raise InvalidInput('missing="carry" needs a memory that stands in for absent nodes, such as PerNode()')
        if durability not in ("accept", "round"):
            raise InvalidInput(f'durability is "accept" or "round", got {durability!r}')
        if clip is not None and run.scheme.encoder.facts.in_step:
            raise InvalidInput(f"{run.scheme.encoder!r} builds on what the server took, so it cannot be clipped")
        self.run = run
        self.missing = missing
        self._clip = clip
        self._on_round = tuple(on_round)
        self._first_round = round_number(round)
        self._batch_bytes = max(LEAST_BATCH, 12 * run.dim) if batch_bytes is None else batch_bytes
        self._rounds = self._begun(self._first_round)
        self._unsound = False
        self._closed = False
        self._undelivered: list[_Ended] = []  # the round whose close_round was interrupted, once it is over
        self._most_nodes = self._room(whole(memory_bytes, "memory_bytes", 1), journal is not None)
        self._lock = threading.Lock()
        self._came = threading.Condition(self._lock)
        self._admit_together: GroupCommit[Submission, Receipt | SparseMeanError] = GroupCommit(self._admit)
        self._counters = Counters()
        self._journal: Journal | None = None
        try:
            uninterrupted(lambda: self._begin(None if journal is None else journal_folder(journal), durability))
        except BaseException:
            self.close()
            raise

    def _begin(self, folder: Path | None, durability: str) -> None:
        with self._lock:
            if folder is not None:
                self._journal = self._opened(folder, durability)
                self._recover()

    def _begun(self, round: int, shelf: Shelf | None = None) -> Rounds:
        return Rounds(self.run, self.missing, round, self._batch_bytes, shelf)

    def _opened(self, folder: Path, durability: str) -> Journal:
        from sparsemean.journal import Journal  # a node has no use for a database

        clip = None if self._clip is None else [self._clip.norm, self._clip.value]
        bound = {"run": json.loads(self.run.to_json()), "missing": self.missing, "clip": clip}
        return Journal(folder, bound, durability == "accept")

    def _room(self, memory_bytes: int, journal: bool) -> int:
        """How many nodes the server has room for."""
        waits = journal or self.run.scheme.memory.facts.per_node  # a payload is kept until the round ends
        remembered, payload = self._node_bytes()
        each = remembered + BOOKKEEPING + 8 * len(self.run.blocks) * WEIGHTS + (payload if waits else 0)
        if each > memory_bytes:
            raise InvalidInput(f"one node takes {each} bytes here, more than memory_bytes = {memory_bytes}")
        return memory_bytes // each

    def _node_bytes(self) -> tuple[int, int]:
        """What is remembered of a node, and its payload."""
        return self._rounds.memory.node_bytes, self.run.payload_bytes

    @property
    def round(self) -> int:
        """The open round."""
        if self._unsound and not self._closed:
            self._alone(self._sound)
        return self._rounds.round

    def _alone(self, work: Callable[[], Result], interrupted: threading.Event | None = None) -> Result:
        """Do this while no other thread changes anything, and where no signal can interrupt it."""

        def locked() -> Result:
            with self._lock:
                return work()

        return uninterrupted(locked, interrupted)

    def accept(self, node: str, blob: bytes | bytearray | memoryview, weight: Weight = 1.0) -> Receipt:
        """Take a payload of the open round. Taking the same one again is harmless and gives the same receipt."""
        try:
            if self._unsound:
                self._alone(self._sound)
            offer = self._offer(self._rounds, node, blob, weight)
            answer = self._enqueued(offer) or uninterrupted(lambda: self._admit_together(offer))
        except SparseMeanError as refused:
            self._counters.refuse(refused)
            raise
        if isinstance(answer, SparseMeanError):
            raise answer
        return answer

    def _enqueued(self, offer: Submission) -> Receipt | SparseMeanError | None:
        """Take a payload that only has to be put into the queue, and answer it; None where there is more to do.

        ``Rounds.count`` does that in a way which an interrupt cannot harm, so that it need not be done elsewhere.
        """
        if not self._enqueues:
            return None
        with self._lock:
            rounds = self._rounds
            if self._unsound or not rounds.only_enqueues(offer):
                return None
            (answer,), new = self._judged(rounds, [offer])
            self._came.notify_all()  # who wakes up and looks when this thread lets go of the lock
            for each in new.values():
                rounds.take(each)
        self._count_refusals([answer])
        return answer

    @property
    def _enqueues(self) -> bool:
        """Whether payloads go to the queue at once: no journal has to know of them first."""
        return self._journal is None

    def accept_many(
        self,
        payloads: Iterable[tuple[str, bytes]] | Mapping[str, bytes] | Path | str,
        weights: Mapping[str, Weight] | None = None,
    ) -> list[tuple[str, Receipt | SparseMeanError]]:
        """Take many payloads as they come, with the weight of each node (1 by default); a batch of them is in memory.

        ``payloads`` are pairs of node and bytes, a dict of them, or a folder with a file ``<node>.spmn`` for each.
        Returned is a list of pairs in their order, (node, receipt), or (node, error) where one was refused: an error
        stands there and is not raised, so that the others go on.
        """
        given: Mapping[str, Weight] = {} if weights is None else weights
        if not isinstance(given, Mapping):
            raise InvalidInput("weights are a dict of node and weight")
        answers: list[tuple[str, Receipt | SparseMeanError]] = []
        waiting: list[tuple[int, Submission]] = []
        room = self._batch_bytes
        try:
            for node, offer in self._offers(payload_pairs(payloads), given):
                if isinstance(offer, SparseMeanError):
                    self._counters.refuse(offer)
                    answers.append((node, offer))
                    continue
                answers.append((node, offer.receipt))  # first, or an interrupt would leave none to replace
                waiting.append((len(answers) - 1, offer))
                room -= len(offer.blob) + (offer.payload.held_bytes if offer.payload is not None else 0)
                if len(waiting) == BATCH or room < 0:
                    self._answer(waiting, answers)
                    room = self._batch_bytes
        finally:
            self._answer(waiting, answers)
        return answers

    def _offers(
        self, pairs: Iterable[tuple[str, bytes]], weights: Mapping[str, Weight]
    ) -> Iterator[tuple[str, Submission | SparseMeanError]]:
        """Each payload opened, or why it cannot be; large ones as many at a time as there are cores."""

        def opened(pair: tuple[str, bytes]) -> Submission | SparseMeanError:
            try:
                return self._offer(self._rounds, *pair, weights.get(pair[0], 1.0))
            except SparseMeanError as refused:
                return refused

        size = self.run.payload_bytes
        at_once = min(cores(), max(1, self._batch_bytes // size)) if size > WORTH_A_THREAD else 1
        for some in lists_of(at_once, pairs):
            for (node, _), offer in zip(some, parallel_map(opened, some, at_once), strict=True):
                yield node, offer

    def _answer(
        self, waiting: list[tuple[int, Submission]], answers: list[tuple[str, Receipt | SparseMeanError]]
    ) -> None:
        found = uninterrupted(lambda: self._admit([offer for _, offer in waiting]))
        for (place, offer), answer in zip(waiting, found, strict=True):
            answers[place] = (offer.receipt.node, answer)
        waiting.clear()

    def _offer(self, rounds: Rounds, node: str, blob: bytes | bytearray | memoryview, weight: Weight) -> Submission:
        """The payload, if it is whole, of this run and node, and not of a round long gone or far ahead."""
        node, weights = node_name(node), weight_of(weight, len(self.run.blocks))
        if not isinstance(blob, bytes | bytearray | memoryview):
            raise InvalidInput(f"a payload is bytes, not {type(blob).__name__}")
        blob = bytes(blob)
        header, body = codec.open_frame(self.run, node, blob)
        rounds.check_round(header.round)
        receipt = Receipt(node, header.round, frame_digest(blob))
        payload = codec.read_payload(self.run, node, header, body)
        if payload is not None and self._clip is not None:
            payload = self._clip.clipped(payload)
        return Submission(receipt, weights, blob, header.basis, payload)

    def _admit(self, offers: Sequence[Submission]) -> list[Receipt | SparseMeanError]:
        """Take what may be taken: all of it or, where the journal fails, nothing."""
        with self._lock:
            rounds = self._sound()
            answers, new = self._judged(rounds, offers)
            with self._changing():
                try:
                    self._write(rounds.round, new.values())
                except JournalError as failure:  # nothing has changed
                    answers = [
                        failure if isinstance(answer, Receipt) and answer.node in new else answer for answer in answers
                    ]
                    new = {}
                for offer in new.values():
                    rounds.take(offer)
            self._came.notify_all()
        self._count_refusals(answers)
        return answers

    def _judged(
        self, rounds: Rounds, offers: Sequence[Submission]
    ) -> tuple[list[Receipt | SparseMeanError], dict[str, Submission]]:
        """An answer to each payload, and those that are new; nothing is taken yet."""
        answers: list[Receipt | SparseMeanError] = []
        new: dict[str, Submission] = {}
        for offer in offers:
            try:
                if rounds.counted(offer, new):
                    self._counters.repeated += 1
                else:
                    rounds.check_basis(offer)
                    self._check_room(rounds.round, len(rounds.accepted) + len(new))
                    new[offer.receipt.node] = offer
                answers.append(offer.receipt)
            except SparseMeanError as refused:
                answers.append(refused)
        return answers, new

    def _count_refusals(self, answers: Iterable[Receipt | SparseMeanError]) -> None:
        for answer in answers:
            if isinstance(answer, SparseMeanError):
                self._counters.refuse(answer)

    def _check_room(self, round: int, nodes: int) -> None:
        if nodes >= self._most_nodes:
            raise RoundFull(f"round {round} has {nodes} nodes, all there is room for; raise memory_bytes")

    def _write(self, round: int, offers: Collection[Submission]) -> None:
        if self._journal is not None and offers:
            self._journal.accept(round, [(o.receipt.node, o.weight.tobytes(), o.blob) for o in offers])

    def close_round(self, minimum: int = 1, wanted: int | None = None, deadline: float | None = None) -> Estimate:
        """The estimate from those who came; with fewer than ``minimum`` the round stays open.

        With a ``deadline``, in seconds from now, it waits until ``wanted`` nodes have come (``minimum`` by default), or
        the time is over. After a call that was interrupted once it had ended the round, and before any new payload, it
        returns the estimate of that round.
        """
        least = whole(minimum, "minimum", 1)
        most = least if wanted is None else whole(wanted, "wanted", least)
        if wanted is not None and deadline is None:
            raise InvalidInput("wanted says how many to wait for; give deadline=, the seconds to wait at most")
        if deadline is not None and not (isinstance(deadline, int | float) and deadline >= 0):
            raise InvalidInput(f"a deadline is a number of seconds from now, got {deadline!r}")
        if deadline is not None and not self._undelivered:
            self._wait(most, deadline)
        ended: list[_Ended] = []
        interrupted = threading.Event()
        try:
            self._alone(lambda: ended.append(self._close(least, interrupted)), interrupted)
            self._tell(ended[0])
            return ended[0].estimate  # type: ignore[return-value]  # only a skipped round has none
        except BaseException:
            self._undelivered = ended
            raise

    def _close(self, least: int, interrupted: threading.Event) -> _Ended:
        rounds, undelivered = self._sound(), self._undelivered
        if undelivered and not rounds.accepted:
            return undelivered.pop()
        rounds.check_enough(least)
        return self._end("close", interrupted)

    def skip_round(self) -> None:
        """End the round without an estimate; what nodes sent is still learnt, since they hold receipts for it."""
        interrupted = threading.Event()
        self._tell(self._alone(lambda: self._end("skip", interrupted), interrupted))

    def _wait(self, wanted: int, deadline: float) -> None:
        round, seconds = self.round, min(deadline, threading.TIMEOUT_MAX)
        with self._lock:
            self._came.wait_for(lambda: self._rounds.round != round or len(self._rounds.accepted) >= wanted, seconds)
            if self._rounds.round != round:
                raise WrongRound(f"round {round} was ended by another thread; the open round is {self._rounds.round}")

    def _end(self, kind: Literal["close", "skip"], interrupted: threading.Event) -> _Ended:
        """End the round.

        The order is what makes it safe. Up to the look at ``interrupted`` nothing has changed that could be seen. From
        there on the server is unsound: 1 the estimate is completed and learnt from, all in memory; 2 the journal gets
        the state, the end of the round and what is to be written into rows, and syncs; 3 only then are rows written.
        Where it fails before 2 is done, the journal still has the open round; after that, what to write into rows.
        """
        rounds, journal = self._sound(), self._journal
        round, came = rounds.round, dict(rounds.accepted)
        heard = len(rounds.known.keys() | came.keys())
        if round == LAST_ROUND:
            raise InvalidInput(f"round {round} is the last that a payload can name; begin a new run")
        self._undelivered = []
        with self._changing():
            summary = rounds.summary()
        decoded = rounds.decoded(summary) if kind == "close" else None
        if interrupted.is_set():
            raise _Stopped
        warning = estimate = None
        try:
            with self._changing():
                if decoded is None:
                    rounds.skip(summary, self._most_nodes)
                else:
                    warning = rounds.divergence(decoded)
                    estimate = rounds.close(summary, decoded, self._most_nodes)
                if journal is not None:
                    journal.end(kind, round, rounds.state(), estimate, rounds.memory.changes())
                rounds.memory.settle()
                if journal is not None:
                    journal.settled()
        except JournalError:
            self._recover()
            raise
        self._came.notify_all()
        return _Ended(estimate, self._counters.report(round, came, heard - len(rounds.known), estimate), warning)

    def _tell(self, ended: _Ended) -> None:
        if ended.told:
            return
        report, ended.told = ended.report, True
        log.info("%s", report)
        if report.forgotten:
            log.warning("round %d: forgot %d nodes for want of room; see memory_bytes", report.round, report.forgotten)
        for told in self._on_round:
            try:
                told(report)
            except Exception:
                log.exception("a round's report could not be written by %r", told)
        if ended.warning is not None:
            warnings.warn(ended.warning, DivergenceWarning, stacklevel=3)  # whoever closes the round

    def beliefs(self) -> tuple[Belief, ...]:
        """How alike the nodes' news has been, block by block: all that an adaptive decoder goes by before a round."""
        return self._rounds.beliefs()

    def forget(self, node: str) -> None:
        """Drop all that is remembered of a node, which may come back as a new one."""
        self._alone(lambda: self._forget(node_name(node)))

    def _forget(self, node: str) -> None:
        rounds = self._sound()
        if node in rounds.accepted:
            raise InvalidInput(f"node {node!r} takes part in the open round; forget it after close_round()")
        with self._changing():
            if self._journal is not None:
                self._journal.forget(rounds.round, node)
            rounds.forget(node)

    def expected(self, node: str) -> Doubles:
        """What the memory puts in place of this node's vector before it hears from it: zeros for one never heard."""
        return self._alone(lambda: np.zeros(self.run.dim) + self._sound().memory.remembered(node))

    def last_estimate(self) -> Estimate | None:
        """The estimate of the round that ended last, from the journal: for whoever did not live to get it.

        None before the first round has ended, and after one that was skipped. Without a journal, None but for the round
        whose ``close_round`` was interrupted when it had ended the round, until the next round ends.
        """
        return self._alone(self._last_estimate)

    def _last_estimate(self) -> Estimate | None:
        self._sound()
        if self._journal is not None:
            return self._journal.last_estimate()
        return self._undelivered[0].estimate if self._undelivered else None

    def digest(self) -> str:
        """Changes with any part of the server's state; the same with and without a journal."""
        return self._alone(self._digest)

    def _digest(self) -> str:
        rounds = self._sound()
        with self._changing():
            rounds.fold()  # when payloads are added to the totals is not part of the state
        return fingerprint(vars(rounds))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """What is done within leaves the state unsound if it fails."""
        try:
            yield
        except BaseException:
            self._unsound = True
            raise

    @property
    def _recovers(self) -> bool:
        """Whether the state can be taken from somewhere again."""
        return self._journal is not None

    def _sound(self) -> Rounds:
        """The state; taken from the journal again where something went wrong in the middle of a change."""
        if self._closed:
            raise JournalError("the server is closed; make a new one")
        if self._journal is not None:
            self._journal.check_process()
        if self._unsound:
            if not self._recovers:
                raise BrokenServer(
                    "an error in the middle of a change left this server's state incomplete; make a new server, with "
                    "journal= if it should recover by itself"
                )
            self._recover()
        return self._rounds

    def _recover(self) -> None:
        """Rebuild the state from the journal."""
        from sparsemean.server.recovery import rebuilt  # a node has no use for a database

        assert self._journal is not None
        self._rounds, _ = rebuilt(self._journal, self._first_round, self._begun, self._replay)
        self._unsound = False

    def _replay(self, rounds: Rounds, record: Record) -> None:
        """Take a record of the open round again."""
        if record.kind == "forget":
            rounds.forget(record.node)
        else:
            rounds.take(self._offer(rounds, record.node, record.payload, np.frombuffer(record.weight)))

    def close(self) -> None:
        """Let go of the journal; a server with a journal cannot be used after. Nothing is lost without it, too."""
        self._alone(self._close_journal)

    def _close_journal(self) -> None:
        if self._journal is not None:
            self._closed = True
            self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
