"""Rounds without anybody who calls ``close_round``: opened, filled and closed by a policy."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from sparsemean.errors import BrokenServer, InvalidInput, SparseMeanError, TooFewNodes
from sparsemean.integrations.http.broadcast import Broadcast, broadcast_of
from sparsemean.integrations.http.messages import OpenRound
from sparsemean.integrations.http.service.batches import Batches, Waiting
from sparsemean.integrations.http.service.history import History, row_of, why_json
from sparsemean.integrations.http.service.means import Means
from sparsemean.results import Estimate, Receipt
from sparsemean.run import Run
from sparsemean.sampling import MAX_SLOTS
from sparsemean.schemes import outline
from sparsemean.server import RoundReport, Server
from sparsemean.server.option_control import Why
from sparsemean.server.server import Answer
from sparsemean.theory.arguments import whole

Result = TypeVar("Result")
Opened: TypeAlias = tuple[int, Sequence[str]]  # a round, and who is in it already
EXPECTED = 3
"""A node is dealt a slot if it came in one of so many rounds."""
AGAIN = 1.0
"""Seconds after which a round is closed again that could not be closed."""
LOOK = 5.0
"""Seconds after which it is looked again who may come: tokens expire, and files of them are read again."""

log = logging.getLogger("sparsemean.http")


@dataclass(frozen=True, slots=True)
class Policy:
    """When a round is over.

    Attributes
    ----------
    minimum : int
        Fewer nodes never make a mean: the round stays open, whatever the deadline says.
    wanted : int, optional
        With so many it is over. Without, once all came who may.
    deadline : float, optional
        Seconds from its opening (after a restart, from that) when it is over with those who came.
    grace : float, default 0
        Seconds that it stays open once it has as many as wanted, while others may come. Without any, a node that hears
        of rounds a little later than the rest comes too late for every one.
    """

    minimum: int = 1
    wanted: int | None = None
    deadline: float | None = None
    grace: float = 0.0

    def __post_init__(self) -> None:
        whole(self.minimum, "minimum", 1)
        if self.wanted is not None:
            whole(self.wanted, "wanted", self.minimum)
        if self.deadline is not None and not 0 < self.deadline < 10**9:
            raise InvalidInput(f"a deadline is a number of seconds above 0, got {self.deadline!r}")
        if not 0 <= self.grace < 10**9:
            raise InvalidInput(f"a grace is a number of seconds from 0 on, got {self.grace!r}")

    def enough(self, came: int, waiting: int) -> bool:
        """Whether no more nodes are wanted than came, where so many more may come."""
        return came >= self.minimum and (waiting == 0 if self.wanted is None else came >= self.wanted)

    def left(self, came: int, waiting: int, age: float, enough: float | None) -> float | None:
        """Seconds until the round is over if nobody comes any more: 0 if it is, None if it never will be.

        Parameters
        ----------
        came, waiting
            How many nodes are in it, and how many others may come.
        age, enough
            Seconds since it was opened, and since it has had enough nodes; None where it has not.
        """
        if came < self.minimum:
            return None
        ends = [] if enough is None else [self.grace - enough if waiting else 0.0]
        ends += [] if self.deadline is None else [self.deadline - age]
        return max(0.0, min(ends)) if ends else None


class Signal:
    """Wakes all who wait for it, each time it is given."""

    def __init__(self) -> None:
        self.times = 0  # that it was given
        self._event = asyncio.Event()

    def give(self) -> None:
        self.times += 1
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float, times: int | None = None) -> None:
        """Return when it is given next, or the time is over.

        With ``times``, a count from before, return at once if it was given since then.
        """
        if times is not None and times != self.times:
            return
        event = self._event
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()


class Conductor:
    """Plays the rounds of a server. Its methods belong to one event loop; the server works in one thread of its own.

    Parameters
    ----------
    server : Server
    policy : Policy
    invited : callable
        The names of all who may come: the draw is balanced over them until it is known who does come.
    broadcast : Run
        The run of the frames in which the means go back, as by ``broadcast_run``.
    history : History
    on_estimate : callable, optional
        Is called with every estimate, in the server's thread.
    means : Means, optional
        Where past means are kept; by default in memory.
    """

    def __init__(
        self,
        server: Server,
        policy: Policy,
        invited: Callable[[], Sequence[str]],
        broadcast: Run,
        history: History,
        on_estimate: Callable[[Estimate], object] | None = None,
        means: Means | None = None,
    ) -> None:
        self.means = Means() if means is None else means
        self.server, self.policy, self.history = server, policy, history
        self.run, self.broadcast_run = server.run, broadcast
        self.failure: str | None = None  # why the open round cannot be closed now
        self.paused = self.stopping = False
        self.round = 0
        self.came: set[str] = set()
        self.refused: Counter[str] = Counter()  # in the open round, by the error's name
        self.estimate: Estimate | None = None
        self.broadcast: Broadcast | None = None
        self._invited, self._on_estimate = invited, on_estimate
        self._reports: list[RoundReport] = []
        self._reference = ""
        self._plans: dict[str, bytes] = {}
        self._why: Why | None = None
        self._open_run = self.run
        self._opened = time.monotonic()
        self._enough: float | None = None  # when it had enough nodes
        self._thread = ThreadPoolExecutor(1, "sparsemean-server")
        self._between = False  # one round has ended, the next one could not be opened yet
        self.opened = Signal()  # a round was opened, or the service stops
        self.changed = Signal()  # that, or anything else that may end the round
        self.shown = Signal()  # that, or a refusal: what the page shows
        self._batches = Batches(self._accept)
        self._play: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the round where the journal left it, and play from there on."""
        last = await self._do(self.server.last_estimate)
        if last is not None:
            await self._do(self._take, last)
        await self._open()
        self._play = asyncio.get_running_loop().create_task(self._rounds(), name="rounds")

    async def stop(self) -> None:
        """End; the open round stays in the journal."""
        if self._play is not None:
            self._play.cancel()
            await asyncio.wait([self._play])
        await self._do(self.server.close)
        self._thread.shutdown()

    def on_death(self, told: Callable[[], object]) -> None:
        """Call this where rounds have become impossible."""
        assert self._play is not None
        self._play.add_done_callback(lambda play: None if play.cancelled() else told())

    def raise_failure(self) -> None:
        """Raise what has made rounds impossible, if anything has."""
        if self._play is not None and self._play.done() and not self._play.cancelled():
            self._play.result()

    @property
    def sound(self) -> bool:
        """Whether rounds are being played."""
        return self.failure is None and self._play is not None and not self._play.done()

    @property
    def age(self) -> float:
        """Seconds since the round was opened here."""
        return time.monotonic() - self._opened

    def left(self) -> float | None:
        """Seconds until the round is over if nobody comes any more; None if it never will be."""
        if self.paused or len(self.came) < self.policy.minimum:
            return None
        now, came = time.monotonic(), len(self.came)
        waiting = sum(node not in self.came for node in self._invited())
        if not self.policy.enough(came, waiting):
            self._enough = None
        elif self._enough is None:
            self._enough = now
        return self.policy.left(came, waiting, self.age, None if self._enough is None else now - self._enough)

    async def accept(self, node: str, blob: bytes, weight: float) -> Receipt:
        """Take a payload, in one batch with others that arrive now; a refusal is counted."""
        try:
            return await self._batches.add(node, blob, weight)
        except SparseMeanError as refused:
            self.refuse(type(refused).__name__)
            raise

    def refuse(self, reason: str) -> None:
        """Count a refusal of the open round."""
        self.refused[reason] += 1
        self.shown.give()  # and not what decides about the round, which would look at all tokens for each

    async def told(self, node: str) -> OpenRound:
        """The open round for this node."""
        round = self.round
        if self.run.planned and node not in self._plans:
            plan = await self._do(self.server.plan, node)
            if round == self.round:
                self._plans[node] = plan
        sketch = await self._do(self.server.sketch, node) if self.run.sketched else b""
        if round != self.round:  # it ended meanwhile
            return await self.told(node)
        plan = self._plans.get(node, b"")
        return OpenRound(round, self.run.digest, plan, sketch, self._reference, node in self.came, self.paused)

    async def turn(self, after: int, seconds: float) -> None:
        """Wait for another open round than this one while rounds go on, but no longer than this."""
        until = time.monotonic() + seconds
        while (self.round == after or self.paused) and not self.stopping and (left := until - time.monotonic()) > 0:
            await self.opened.wait(left)

    def end(self) -> None:
        """Let nobody wait any longer: the service stops."""
        self.stopping = True
        self.tell()

    def tell(self) -> None:
        """Wake everybody who waits for anything."""
        self.opened.give()
        self.changed.give()
        self.shown.give()

    def pause(self, paused: bool) -> None:
        """Close no round and take no payload until told otherwise."""
        self.paused = paused
        self.tell()

    async def close(self) -> None:
        """Close the open round now, with at least the policy's minimum; ``TooFewNodes`` with fewer."""
        await self._end(lambda: self.server.close_round(self.policy.minimum))

    async def skip(self) -> None:
        """End the open round without a mean."""
        await self._end(self.server.skip_round)

    async def forget(self, node: str) -> None:
        """Drop what is remembered of a node."""
        await self._do(self.server.forget, node)

    def snapshot(self) -> dict[str, Any]:
        """All that the live page shows of the open round, as plain JSON."""
        return {
            "round": self.round,
            "came": sorted(self.came),
            "age": self.age,
            "paused": self.paused,
            "failure": self.failure,
            "policy": {name: getattr(self.policy, name) for name in ("minimum", "wanted", "deadline")},
            "left": self.left(),
            "refused": dict(self.refused),
            "scheme": outline(self._open_run.scheme),
            "payload_bytes": self._open_run.payload_bytes,
            "dim": self.run.dim,
            "why": None if self._why is None else why_json(self._why),
            "invited": len(self._invited()),
        }

    async def _rounds(self) -> None:
        """Close rounds as they are over, for ever."""
        while True:
            await self._until_over()
            try:
                await (self._open() if self._between else self.close())
                self.failure = None
            except TooFewNodes as refused:  # no weight at all
                log.warning("round %d: %s", self.round, refused)
                await asyncio.sleep(AGAIN)
            except BrokenServer:
                raise
            except SparseMeanError as failure:
                self.failure = str(failure)
                log.error("round %d cannot be closed: %s", self.round, failure)
                await asyncio.sleep(AGAIN)

    async def _until_over(self) -> None:
        while not self._between:
            left = self.left()
            if left == 0.0:
                return
            await self.changed.wait(LOOK if left is None else min(left, LOOK))

    async def _end(self, end: Callable[[], object]) -> None:
        """End the round by this and open the next one; nothing else is done in between."""
        round = self.round

        def turned() -> Opened:
            if self.server.round == round:  # else somebody was faster
                self._ended(end)
            return self._opening()

        self._begin(await self._do(turned))

    def _ended(self, end: Callable[[], object]) -> None:
        """In the server's thread: end the round, and keep what is known of it."""
        run, why = self._open_run, self._why
        self._reports.clear()
        estimate = end()
        self._between = True
        found = estimate if isinstance(estimate, Estimate) else None
        if found is not None:
            self._take(found)
        refused, self.refused = self.refused, Counter()
        for report in self._reports:
            self.history.add(row_of(run, report, found, why, refused))
            if report.skipped:
                log.info("round %d was skipped", report.round)
            else:
                log.info("round %d ended with %d nodes", report.round, report.nodes)
        if found is not None and self._on_estimate is not None:
            self._on_estimate(found)

    def report(self, report: RoundReport) -> None:
        """What the server calls after each round: one of its ``on_round``."""
        self._reports.append(report)

    def _take(self, estimate: Estimate) -> None:
        self.estimate, self.broadcast = estimate, broadcast_of(self.broadcast_run, estimate)
        self.means.add(estimate.round, self.broadcast.frame)

    async def _open(self) -> None:
        self._begin(await self._do(self._opening))

    def _begin(self, opened: Opened) -> None:
        self.round, came = opened
        self.came = set(came)
        self._opened, self._enough = time.monotonic(), None
        self.tell()

    def _opening(self) -> Opened:
        """In the server's thread: settle what the nodes of the open round go by."""
        server, run = self.server, self.run
        self._reference = ""
        if run.relative and self.broadcast is not None:
            try:
                server.refer_to(self.broadcast.heard.mean)
                self._reference = self.broadcast.heard.etag
            except InvalidInput as begun:  # by a service before this one, which broadcast otherwise
                log.warning("round %d goes without a reference: %s", server.round, begun)
        self._plans = server.plans(self._expected()) if run.planned else {}
        self._open_run, self._why = server.open_run, server.why()
        self._between = False
        return server.round, server.came

    def _expected(self) -> list[str]:
        """Who is dealt a slot: who came lately and may still come, or all who may."""
        invited = self._invited()
        lately = {node for row in self.history.last(EXPECTED) for node in row["who"]}
        return [node for node in invited if node in lately or not lately][:MAX_SLOTS]

    async def _accept(self, batch: list[Waiting]) -> list[Answer]:
        weights = {waiting.node: waiting.weight for waiting in batch}
        pairs = [(waiting.node, waiting.blob) for waiting in batch]
        answers = await self._do(self.server.accept_many, pairs, weights)
        came = {answer.node for _, answer in answers if isinstance(answer, Receipt) and answer.round == self.round}
        if not came <= self.came:
            self.came |= came
            self.changed.give()
            self.shown.give()
        return [answer for _, answer in answers]

    async def _do(self, work: Callable[..., Result], *arguments: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
