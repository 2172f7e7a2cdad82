"""Server: takes payloads of a round, closes it into an estimate, learns from it."""

from __future__ import annotations

import json
import logging
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from sparsemean._names import Durability, Missing
from sparsemean._types import Doubles, Floats
from sparsemean.codec import pack_plan
from sparsemean.decoding.decoders import Belief
from sparsemean.encoders import Encoder
from sparsemean.errors import (
    DivergenceWarning,
    InvalidInput,
    JournalError,
    RoundFull,
    SparseMeanError,
    WrongRound,
)
from sparsemean.inputs import journal_folder, lists_of, node_name, payload_pairs, round_number, vector_of
from sparsemean.kernels import cores, parallel_map
from sparsemean.results import Estimate, Receipt
from sparsemean.run import Run
from sparsemean.sampling import MAX_SLOTS, Slots
from sparsemean.schemes import outline, shortened
from sparsemean.server.clip import Clip
from sparsemean.server.counters import Counters
from sparsemean.server.group_commit import GroupCommit
from sparsemean.server.local import Entry, LocalRounds
from sparsemean.server.option_control import Why
from sparsemean.server.reports import RoundReport
from sparsemean.server.roster import Offered, Roster, Submission
from sparsemean.server.rounds import Kind, Rounds
from sparsemean.server.secrets import Given, Secrets
from sparsemean.server.submissions import Blob, Weight, submission_of
from sparsemean.server.uninterrupted import uninterrupted
from sparsemean.state_tree import Tree, branch
from sparsemean.theory.arguments import whole

if TYPE_CHECKING:
    from sparsemean.journal import Journal, Record

Result = TypeVar("Result")
AnOffer = TypeVar("AnOffer", bound=Offered)
Answer = Receipt | SparseMeanError
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

    An interrupt (Ctrl-C, or any exception of a signal handler) leaves the server as it was before the call or as it is
    after it. Make the same call again: a payload is not counted twice, and ``close_round`` returns the estimate that
    the interrupted call did not return.

    Parameters
    ----------
    run : Run
        What the server and its nodes agree on.
    missing : {"drop", "carry"}, default "drop"
        What nodes count for that were heard before but not in this round: nothing, so that the mean is of those
        present; or their remembered vectors stand in for them, with their last weight.
    round : int, default 0
        The first round; a journal that holds rounds goes on with its own.
    batch_bytes : int, optional
        Payloads wait in memory up to this size, and are then added to the totals in one pass; by default 12 bytes a
        coordinate, 32 MiB at least.
    journal : path, optional
        A folder that makes rounds durable: a server of the same run goes on from it where the last one stopped, however
        it stopped. Rounds that ended survive a power cut, ``last_estimate`` included.
    durability : {"accept", "round"}, default "accept"
        With a journal, whether a receipt means that the payload survives a power cut ("accept"), or the death of the
        process ("round").
    memory_bytes : int, default 2**34
        Cap on what is kept per node, summed over nodes. When it is reached, nodes heard longest ago are forgotten, and
        ``accept`` raises ``RoundFull`` once a round holds as many nodes as fit.
    clip : Clip, optional
        Bound on each node's values before they enter the mean (``docs/reliability.md`` states the resulting bound).
    on_round : sequence of callables
        Each is called with a ``RoundReport`` after every round; an exception there is logged and goes no further.
    secrets : mapping of str and bytes, or callable, optional
        Of each node's name the secret that its ``Client`` has, 16 to 32 bytes: compact frames (``Run(frame=…)``) are
        then authenticated, and a node without one is refused. Nothing is written of them, and a journal needs none.

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
        missing: Missing = "drop",
        round: int = 0,
        batch_bytes: int | None = None,
        journal: Path | str | None = None,
        durability: Durability = "accept",
        memory_bytes: int = 1 << 34,
        clip: Clip | None = None,
        on_round: Sequence[Callable[[RoundReport], object]] = (),
        secrets: Given | None = None,
    ) -> None:
        check_settings(run, missing, durability, clip)
        batch = max(LEAST_BATCH, 12 * run.dim) if batch_bytes is None else batch_bytes

        def read(roster: Roster, record: Record) -> Entry | None:
            if record.kind != "accept":
                return None
            weight = np.frombuffer(record.weight)
            submission = submission_of(run, clip, roster, record.node, record.payload, weight, verified=True)
            return Entry(*roster.acceptance(submission), submission.payload)

        folder = None if journal is None else journal_folder(journal)
        rounds = LocalRounds(run, missing, round_number(round), batch, read)
        self._serve(run, missing, rounds, batch, folder, memory_bytes, clip, on_round, secrets)
        if folder is not None:
            try:
                self._alone(lambda: rounds.open(_journal(folder, run, missing, clip, durability)))
            except BaseException:
                self.close()
                raise

    def _serve(
        self,
        run: Run,
        missing: Missing,
        rounds: Rounds,
        batch_bytes: int,
        folder: Path | str | None,
        memory_bytes: int,
        clip: Clip | None,
        on_round: Sequence[Callable[[RoundReport], object]],
        secrets: Given | None = None,
    ) -> None:
        """Serve these rounds; what a kind of server calls in ``__init__`` that keeps its rounds elsewhere."""
        self.run = run
        self.missing = missing
        self._rounds = rounds
        self._batch_bytes = batch_bytes
        self._clip = clip
        self._secrets = Secrets(run, secrets)
        self._on_round = tuple(on_round)
        self._folder = folder
        self._most_nodes = self._room(whole(memory_bytes, "memory_bytes", 1), folder is not None)
        self._undelivered: list[_Ended] = []  # the round whose close_round was interrupted, once it is over
        self._lock = threading.Lock()
        self._came = threading.Condition(self._lock)
        self._group: GroupCommit[Submission, Answer] = GroupCommit(self._admit)
        self._counters = Counters()

    def _room(self, memory_bytes: int, durable: bool) -> int:
        """How many nodes the server has room for."""
        waits = durable or self.run.scheme.memory.facts.per_node  # a payload is kept until the round ends
        remembered, payload = self._rounds.node_bytes
        each = remembered + BOOKKEEPING + 8 * len(self.run.blocks) * WEIGHTS + (payload if waits else 0)
        if each > memory_bytes:
            raise InvalidInput(f"one node takes {each} bytes here, more than memory_bytes = {memory_bytes}")
        return memory_bytes // each

    def __repr__(self) -> str:
        """The open round and who came, the scheme, the journal; not the seed. It waits for no other thread."""
        roster = self._rounds.roster
        came = f"payloads: {len(roster.accepted)}, nodes known: {len(roster.known)}"
        kept = "" if self._folder is None else f"; journal {shortened(repr(str(self._folder)))}"
        state = f"round {roster.round} open, {came}" if self._rounds.sound else "to be recovered by the next call"
        return f"<{type(self).__name__}: {state}; {outline(self.run.scheme)}, dim {self.run.dim}{kept}>"

    @property
    def round(self) -> int:
        """The open round."""
        if not self._rounds.sound:
            self._alone(self._rounds.ready)
        return self._rounds.roster.round

    @property
    def came(self) -> tuple[str, ...]:
        """The nodes whose payloads are in the open round, in the order in which they came."""
        return self._ready_alone(lambda rounds: tuple(rounds.roster.accepted))

    def _alone(self, work: Callable[[], Result], interrupted: threading.Event | None = None) -> Result:
        """Do this while no other thread changes anything, and where no signal can interrupt it."""

        def locked() -> Result:
            with self._lock:
                return work()

        return uninterrupted(locked, interrupted)

    @property
    def reference(self) -> Floats | None:
        """The last mean as float32, for nodes with a ``Relative`` encoder: ``client.encode(…, reference=…)``.

        Or what ``refer_to`` was given in this round. None before the first round has ended, and where the scheme has no
        use for it. Read-only.
        """
        reference = self._ready_alone(lambda rounds: rounds.roster.reference)
        return None if reference is None else reference.mean

    def refer_to(self, reference: npt.ArrayLike) -> None:
        """Make this the reference of the open round, in place of the last mean: where nodes hear something else.

        As by an optimiser that makes its own step of the mean. Call it before any plan of the round is told or any
        payload accepted: from then on the reference stays until the round ends, and giving the same once more does
        nothing. It is in the journal when this returns. The mean of this round is the reference of the next one again;
        where the round is skipped, there is none, and this reference stays.

        Parameters
        ----------
        reference : (d,) array
            Of which float32 is taken. Nodes must have the same to the bit, or send without a reference.
        """
        if not self.run.relative:
            raise InvalidInput(
                f"{self.run.scheme.encoder!r} sends no differences to a reference; use "
                + ('node="broadcast"' if self.run.auto else "Relative")
            )
        with np.errstate(over="ignore"):
            single = vector_of(reference, self.run.dim).astype(np.float32)
        if not np.isfinite(single).all():
            raise InvalidInput("the reference travels as float32, and a number of it is beyond that; nodes do without")

        def referred() -> None:
            roster = self._rounds.ready()
            held = None if roster.reference is None else roster.reference.mean
            if held is not None and held.tobytes() == single.tobytes():
                return
            if roster.begun:
                raise InvalidInput(
                    f"plans of round {roster.round} are told, or payloads came, which go by its reference; call "
                    "refer_to() before these, or after close_round()"
                )
            self._rounds.refer_to(single)

        self._alone(referred)

    @property
    def open_run(self) -> Run:
        """The run that payloads of the open round go by: with ``Auto`` one of the run's ``options``, else the run."""
        return self._ready_alone(lambda rounds: rounds.roster.open_run)

    def why(self) -> Why | None:
        """What ``Auto`` chose for the open round, and from which figures; None where nothing is chosen."""
        return self._ready_alone(lambda rounds: rounds.roster.why)

    def plan(self, node: str) -> bytes:
        """What this node needs to encode its vector in the open round: ``client.encode(vector, round, plan)``.

        It stays the same until the round ends, also after a crash where there is a journal. The first call of ``plan``
        or ``plans`` settles who has a slot in the round: here the nodes that the run lists or, if it lists none, all
        that were heard before, in the first round nobody. Whoever else asks draws independently in this round. Nodes
        that never come again keep their slots idle, which costs balance: ``forget`` them, or ask a cohort with
        ``plans``. With ``Epochs()`` slots are settled when an epoch begins, and stay until the next one does; the plan
        of every round also says where the epoch is. Empty where the scheme needs no plan.
        """
        return self._plans([node], None)[node]

    def plans(self, nodes: Iterable[str] | Mapping[str, Encoder | None]) -> dict[str, bytes]:
        """The plan of each node that is asked to send in the open round; call it once, with all of them.

        The slots of the round are shared out among these nodes, so that the draw is balanced over exactly those who are
        expected. If the slots are settled already (see ``plan``), they stay, and nodes without one draw independently:
        a node that is asked later in place of another has no slot.

        Parameters
        ----------
        nodes : iterable of str, or dict of str and Encoder
            Their names. Where nodes choose among encoders (``OneOf``, ``k=(a, b)``), a dict that says which each node
            uses: the draw is then balanced over those of each encoder by themselves. Of a list of names alone all
            share the slots, and at each encoder the nodes of others count as absent.
        """
        if isinstance(nodes, str) or not isinstance(nodes, Iterable):
            raise InvalidInput(f"plans() takes the names of the nodes that are asked, got {nodes!r:.100}")
        asked = list(dict.fromkeys(map(node_name, nodes)))
        if self.run.planned and len(asked) > MAX_SLOTS:
            raise InvalidInput(f"a draw has up to {MAX_SLOTS} slots, got {len(asked)} nodes; ask fewer in a round")
        cohort: Slots = asked
        if isinstance(nodes, Mapping) and all(isinstance(each, Encoder | None) for each in nodes.values()):
            choices = {node: 0 if (each := nodes[node]) is None else self.run.choice(each) for node in asked}
            if len(self.run.encoders) > 1:
                cohort = [[node for node in asked if choices[node] == c] for c in range(len(self.run.encoders))]
        return self._plans(asked, cohort) if asked else {}

    def _plans(self, nodes: Sequence[str], cohort: Slots | None) -> dict[str, bytes]:
        run, names = self.run, [node_name(node) for node in nodes]
        if not run.planned:
            return dict.fromkeys(names, b"")

        def planned() -> dict[str, bytes]:
            roster = self._rounds.ready()
            if self._undealt(roster):
                self._rounds.deal(roster.next_deal(cohort))
            roster = self._rounds.roster
            terms = {node: roster.plan(node, roster.round) for node in names}
            return {node: pack_plan(run, node, roster.round, plan) for node, plan in terms.items() if plan is not None}

        return self._alone(planned)

    def sketch(self, node: str) -> bytes:
        """What a node with modulo values is told of what is expected of it: ``client.encode(…, sketch=…)``.

        256 bytes for every 4,096 values that it sends, from which it sees how far its vector is from the expectation.
        It stays the same until the round ends, unless the node is forgotten. Empty where the scheme has no use for it.
        """
        name = node_name(node)
        return self._ready_alone(lambda rounds: rounds.sketch(name)) if self.run.sketched else b""

    def accept(self, node: str, blob: Blob, weight: Weight = 1.0) -> Receipt:
        """Take a payload of the open round. Taking the same one again is harmless and gives the same receipt."""
        try:
            if not self._rounds.sound:
                self._alone(self._rounds.ready)
            submission = self._submission(node, blob, weight)
            answer = self._enqueued(submission) or uninterrupted(lambda: self._group(submission))
        except SparseMeanError as refused:
            self._counters.refuse(refused)
            raise
        if isinstance(answer, SparseMeanError):
            raise answer
        return answer

    def _submission(self, node: str, blob: Blob, weight: Weight) -> Submission:
        return submission_of(self.run, self._clip, self._rounds.roster, node, blob, weight, self._secrets)

    def _enqueued(self, submission: Submission) -> Answer | None:
        """Accept a payload that only has to be put into the queue, and answer it; None where there is more to do.

        An interrupt cannot harm that, so it need not be done in another thread.
        """
        with self._lock:
            rounds = self._rounds
            if not rounds.sound or rounds.durable or self._undealt(rounds.roster):
                return None
            (answer,), new = self._judged(rounds.roster, [submission])
            self._came.notify_all()  # who wakes up and looks when this thread lets go of the lock
            if new and not rounds.enqueue(submission):
                return None
        self._count_refusals([answer])
        return answer

    def accept_many(
        self,
        payloads: Iterable[tuple[str, bytes]] | Mapping[str, bytes] | Path | str,
        weights: Mapping[str, Weight] | None = None,
    ) -> list[tuple[str, Answer]]:
        """Take many payloads as they come, with the weight of each node (1 by default); a batch of them is in memory.

        ``payloads`` are pairs of node and bytes, a dict of them, or a folder with a file ``<node>.spmn`` for each.
        Returned is a list of pairs in their order, (node, receipt), or (node, error) where one was refused: an error
        stands there and is not raised, so that the others go on.
        """
        given: Mapping[str, Weight] = {} if weights is None else weights
        if not isinstance(given, Mapping):
            raise InvalidInput("weights are a dict of node and weight")
        answers: list[tuple[str, Answer]] = []
        waiting: list[tuple[int, Submission]] = []
        room = self._batch_bytes
        try:
            for node, submission in self._submissions(payload_pairs(payloads), given):
                if isinstance(submission, SparseMeanError):
                    self._counters.refuse(submission)
                    answers.append((node, submission))
                    continue
                answers.append((node, submission.receipt))  # first, or an interrupt would leave none to replace
                waiting.append((len(answers) - 1, submission))
                room -= len(submission.blob) + (submission.payload.held_bytes if submission.payload is not None else 0)
                if len(waiting) == BATCH or room < 0:
                    self._answer(waiting, answers)
                    room = self._batch_bytes
        finally:
            self._answer(waiting, answers)
        return answers

    def _submissions(
        self, pairs: Iterable[tuple[str, bytes]], weights: Mapping[str, Weight]
    ) -> Iterator[tuple[str, Submission | SparseMeanError]]:
        """Each payload opened, or why it cannot be; large ones as many at a time as there are cores."""

        def opened(pair: tuple[str, bytes]) -> Submission | SparseMeanError:
            try:
                return self._submission(*pair, weights.get(pair[0], 1.0))
            except SparseMeanError as refused:
                return refused

        size = self.run.payload_bytes
        at_once = min(cores(), max(1, self._batch_bytes // size)) if size > WORTH_A_THREAD else 1
        for some in lists_of(at_once, pairs):
            for (node, _), submission in zip(some, parallel_map(opened, some, at_once), strict=True):
                yield node, submission

    def _answer(self, waiting: list[tuple[int, Submission]], answers: list[tuple[str, Answer]]) -> None:
        found = uninterrupted(lambda: self._admit([submission for _, submission in waiting]))
        for (place, submission), answer in zip(waiting, found, strict=True):
            answers[place] = (submission.receipt.node, answer)
        waiting.clear()

    def _admit(self, submissions: Sequence[Submission]) -> list[Answer]:
        """Accept what may be accepted: all of it or, where the journal fails, nothing."""
        with self._lock:
            answers, new = self._judged(self._rounds.settled(), submissions)
            try:
                if new and self._undealt(self._rounds.roster):
                    # The payloads go by the run's list: noted, since after a crash the run may come with another.
                    self._rounds.deal(list(self.run.nodes))
                self._rounds.accept(new.values())
            except JournalError as failure:  # nothing has changed
                answers = [
                    failure if isinstance(answer, Receipt) and answer.node in new else answer for answer in answers
                ]
            self._came.notify_all()
        self._count_refusals(answers)
        return answers

    def _undealt(self, roster: Roster) -> bool:
        return self.run.planned and not roster.begun

    def _judged(
        self, roster: Roster, submissions: Sequence[AnOffer], under_way: int = 0
    ) -> tuple[list[Answer], dict[str, AnOffer]]:
        """An answer to each submission, and those that are new beside so many others; nothing is accepted yet."""
        answers: list[Answer] = []
        new: dict[str, AnOffer] = {}
        for submission in submissions:
            try:
                if roster.is_duplicate(submission, new):
                    self._counters.repeated += 1
                else:
                    roster.check_plan(submission)  # once more: it was read without the lock
                    roster.check_basis(submission)
                    self._check_room(roster.round, len(roster.accepted) + under_way + len(new))
                    new[submission.receipt.node] = submission
                answers.append(submission.receipt)
            except SparseMeanError as refused:
                answers.append(refused)
        return answers, new

    def _count_refusals(self, answers: Iterable[Answer]) -> None:
        for answer in answers:
            if isinstance(answer, SparseMeanError):
                self._counters.refuse(answer)

    def _check_room(self, round: int, nodes: int) -> None:
        if nodes >= self._most_nodes:
            raise RoundFull(f"round {round} has {nodes} nodes, all there is room for; raise memory_bytes")

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
        waited = self._wait(most, deadline) if deadline is not None and not self._undelivered else None
        ended: list[_Ended] = []
        interrupted = threading.Event()
        try:
            self._alone(lambda: ended.append(self._close(least, waited, interrupted)), interrupted)
            self._tell(ended[0])
            return ended[0].estimate  # type: ignore[return-value]  # only a skipped round has none
        except BaseException:
            self._undelivered = ended
            raise

    def _close(self, least: int, waited: int | None, interrupted: threading.Event) -> _Ended:
        roster, undelivered = self._rounds.settled(), self._undelivered
        if undelivered and not roster.accepted:
            return undelivered.pop()
        if waited is not None:  # another thread may have waited for the same round, and ended it first
            _check_open(waited, roster)
        roster.check_enough(least)
        return self._end("close", roster, interrupted)

    def skip_round(self) -> None:
        """End the round without an estimate; what nodes sent is still learnt, since they hold receipts for it."""
        interrupted = threading.Event()
        self._tell(self._alone(lambda: self._end("skip", self._rounds.settled(), interrupted), interrupted))

    def _wait(self, wanted: int, deadline: float) -> int:
        """Wait for nodes of the open round; returns which that is."""
        round, seconds = self.round, min(deadline, threading.TIMEOUT_MAX)
        with self._lock:

            def is_over() -> bool:
                roster = self._rounds.roster
                return roster.round != round or len(roster.accepted) >= wanted

            self._came.wait_for(is_over, seconds)
            _check_open(round, self._rounds.roster)
        return round

    def _end(self, kind: Kind, roster: Roster, interrupted: threading.Event) -> _Ended:
        """End the round; ``server.local`` has the order that makes it safe."""
        rounds, round, came = self._rounds, roster.round, dict(roster.accepted)
        heard = len(roster.known.keys() | came.keys())
        if round == LAST_ROUND:
            raise InvalidInput(f"round {round} is the last that a payload can name; begin a new run")
        self._undelivered = []
        prepared = rounds.prepare(kind)
        if interrupted.is_set():
            raise _Stopped
        estimate, warning = rounds.end(prepared, self._most_nodes)
        self._came.notify_all()
        forgotten = heard - len(rounds.roster.known)
        return _Ended(estimate, self._counters.report(round, came, forgotten, estimate, prepared.unresolved), warning)

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
        """Correlation of the innovations, block by block: all that an adaptive decoder goes by before a round."""
        return self._rounds.beliefs()

    def forget(self, node: str) -> None:
        """Drop all that is remembered of a node, which may come back as a new one."""
        self._alone(lambda: self._forget(node_name(node)))

    def _forget(self, node: str) -> None:
        if node in self._rounds.settled().accepted:
            raise InvalidInput(f"node {node!r} takes part in the open round; forget it after close_round()")
        self._rounds.forget(node)

    def expected(self, node: str) -> Doubles:
        """What the memory puts in place of this node's vector before it hears from it: zeros for one never heard."""
        return self._ready_alone(lambda rounds: rounds.expected(node))

    def last_estimate(self) -> Estimate | None:
        """The estimate of the round that ended last, from the journal: for whoever did not live to get it.

        None before the first round has ended, and after one that was skipped. Without a journal, None but for the round
        whose ``close_round`` was interrupted when it had ended the round, until the next round ends.
        """
        return self._ready_alone(self._last_estimate)

    def _last_estimate(self, rounds: Rounds) -> Estimate | None:
        if rounds.durable:
            return rounds.last_estimate()
        return self._undelivered[0].estimate if self._undelivered else None

    def digest(self) -> str:
        """Changes with any part of the server's state; the same with and without a journal."""
        return self._ready_alone(lambda rounds: rounds.digest())

    def save(self) -> bytes:
        """All state between two rounds as bytes, for ``restore``: to be kept with a model that is trained by the means.

        Not of a server with a journal, which keeps its state by itself.
        """
        told = self._binding()

        def saved(rounds: Rounds) -> bytes:
            from sparsemean.journal.written_tree import written  # a node has no use for a database

            return b"".join(written({"server": told, "state": rounds.saved()}))

        return self._ready_alone(saved)

    def restore(self, saved: bytes) -> None:
        """Go on from what ``save`` returned, to the bit; this server has the same run and settings, and no journal.

        What ``save`` cannot have written is refused with ``InvalidInput``; the server is then as it was.
        """
        from sparsemean.journal.written_tree import read_tree

        try:
            tree = read_tree(bytes(saved))
            told, state = branch(tree, "server"), branch(tree, "state")
        except (JournalError, ValueError, TypeError) as error:
            raise InvalidInput(f"this is not a state written by Server.save: {error}") from None
        if told != self._binding():
            raise InvalidInput(
                "the saved state is of another run, or of a server with other settings; restore it there"
            )
        self._alone(lambda: self._restore(state))

    def _restore(self, state: Tree) -> None:
        if self._rounds.durable:
            raise InvalidInput("this server goes on from its journal; restore into one without")
        before = self._rounds.ready()
        if before.begun:
            raise InvalidInput(f"round {before.round} has begun; restore into a server that is between two rounds")
        kept = self._rounds.saved()
        try:
            self._rounds.restore(state)
        except (SparseMeanError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self._rounds.restore(kept)
            raise InvalidInput(f"this is not a state written by Server.save: {error}") from None
        self._undelivered = []

    def _binding(self) -> str:
        """What a saved state belongs to, as text."""
        return json.dumps(binding(self.run, self.missing, self._clip), sort_keys=True)

    def _ready_alone(self, work: Callable[[Rounds], Result]) -> Result:
        def ready() -> Result:
            self._rounds.ready()
            return work(self._rounds)

        return self._alone(ready)

    def close(self) -> None:
        """Close the journal; a server that has one cannot be used after. A server that is not closed loses nothing."""
        self._alone(self._rounds.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_open(round: int, roster: Roster) -> None:
    if roster.round != round:
        raise WrongRound(f"round {round} was ended by another thread; the open round is {roster.round}")


def check_settings(run: Run, missing: Missing, durability: Durability, clip: Clip | None) -> None:
    """Refuse settings that do not exist, or do not fit the scheme."""
    if missing not in get_args(Missing):
        raise InvalidInput(f'missing is "drop" or "carry", got {missing!r}')
    if missing == "carry" and not run.scheme.memory.facts.stands_in:
        raise InvalidInput('missing="carry" needs a memory that stands in for absent nodes, such as PerNode()')
    if durability not in get_args(Durability):
        raise InvalidInput(f'durability is "accept" or "round", got {durability!r}')
    if clip is not None and run.in_step:
        raise InvalidInput(f"{run.scheme.encoder!r} builds on what the server took, so it cannot be clipped")
    if clip is not None and run.sketched:
        raise InvalidInput(
            f"{run.scheme.values} values are read by what is expected of a node, so they cannot be clipped before; "
            "leave out clip=, or use eden-b values"
        )


def _journal(folder: Path, run: Run, missing: Missing, clip: Clip | None, durability: Durability) -> Journal:
    from sparsemean.journal import Journal  # a node has no use for a database

    return Journal(folder, binding(run, missing, clip), durability == "accept")


def binding(run: Run, missing: Missing, clip: Clip | None) -> dict[str, Any]:
    """What state that outlives a server is bound to, as plain JSON."""
    bounds = None if clip is None else [clip.norm, clip.value]
    return {"run": run.agreed(), "missing": missing, "clip": bounds}
