"""RayServer: a Server whose coordinates are shared out among Ray actors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

import sparsemean as sm
from sparsemean._names import Durability, Missing
from sparsemean.inputs import journal_folder, lists_of, payload_pairs, round_number
from sparsemean.integrations.ray.fronts import Fronts
from sparsemean.integrations.ray.offers import (
    Admitted,
    Answered,
    Ask,
    Asks,
    Delivered,
    Failed,
    Offer,
    Refused,
    Standing,
    Verdict,
    View,
)
from sparsemean.integrations.ray.ranges import Sharding, ShardLost
from sparsemean.integrations.ray.sharded import ShardedRounds
from sparsemean.integrations.ray.shards import Shards
from sparsemean.integrations.ray.usage import Usage
from sparsemean.server.roster import Roster
from sparsemean.server.server import BATCH, Answer, check_settings
from sparsemean.server.submissions import Weight
from sparsemean.theory.arguments import whole

PATIENCE = 0.05  # seconds until a front is told nothing for now, since a round ends or the like


class RayServer(sm.Server):
    """A ``sparsemean.Server`` whose sums, counts and memories are in actors, a range of coordinates each.

    Payloads are opened and checked once, here; a receipt means that all shards have their piece. A shard that dies
    comes back with what its journal holds, and Ray asks it again; without a journal its range is lost, and
    ``ShardLost`` says so. ``digest()`` covers the shards too, and is not that of a ``Server``.

    Parameters
    ----------
    run, missing, round, batch_bytes, durability, clip, on_round
        As for ``sparsemean.Server``.
    shards : int
        How many actors there are.
    journal : path, optional
        A folder that all hosts of the cluster can reach, where each shard has a journal of its own.
    memory_bytes : int, default 2**34
        The room of one shard.
    actor_options : dict, optional
        Go to Ray, such as ``{"num_cpus": 4, "memory": 2**33}``.
    timeout : float, default 600
        How many seconds a shard may take to answer, its return after a crash included; and for how long payloads that
        a front handed over may be under way.
    fronts : int, default 0
        How many actors take payloads beside this process (``RayServer.fronts``). They open, check and cut payloads,
        which then do not pass through this process; it gives out the order in which shards add them.
    """

    def __init__(
        self,
        run: sm.Run,
        shards: int,
        missing: Missing = "drop",
        round: int = 0,
        batch_bytes: int = 1 << 24,
        journal: Path | str | None = None,
        durability: Durability = "accept",
        memory_bytes: int = 1 << 34,
        clip: sm.Clip | None = None,
        on_round: Sequence[Callable[[sm.RoundReport], object]] = (),
        actor_options: Mapping[str, Any] | None = None,
        timeout: float = 600.0,
        fronts: int = 0,
    ) -> None:
        if not ray.is_initialized():
            raise sm.InvalidInput("Ray is not running here; start or join it first, with ray.init()")
        check_settings(run, missing, durability, clip)
        folder = None if journal is None else str(journal_folder(journal))
        bounds = None if clip is None else (clip.norm, clip.value)
        durable = durability == "accept"
        sharding = Sharding(run, shards, missing, round_number(round), batch_bytes, folder, durable, bounds)
        actors = Shards(sharding, dict(actor_options or {}), timeout)
        self._fronts: Fronts | None = None
        try:
            self._sharded = ShardedRounds(sharding, actors, timeout)
            self._serve(run, missing, self._sharded, batch_bytes, folder, memory_bytes, clip, on_round)
            if whole(fronts, "fronts", 0):
                lost = self._sharded.front_lost
                self._fronts = Fronts(fronts, sharding, clip, timeout, self._answered, lost)
        except BaseException:
            actors.stop()
            raise

    @property
    def fronts(self) -> tuple[Any, ...]:
        """Handles of the fronts, for any process of the cluster: ``ray.get(front.accept_many.remote(payloads))``.

        It takes and returns what ``accept_many`` does. Any front takes payloads of any node.
        """
        return () if self._fronts is None else self._fronts.actors

    def front_of(self, node: str) -> Any:
        """The front that this process would hand payloads of the node to, so that each gets as many nodes."""
        digest = hashlib.blake2b(str(node).encode(errors="replace"), key=self.run.run_digest, digest_size=8)
        return self.fronts[int.from_bytes(digest.digest(), "little") % len(self.fronts)]

    def accept_many(
        self,
        payloads: Iterable[tuple[str, bytes]] | Mapping[str, bytes] | Path | str,
        weights: Mapping[str, Weight] | None = None,
    ) -> list[tuple[str, Answer]]:
        """As ``Server.accept_many``; the fronts open and check the payloads, where there are any."""
        if self._fronts is None:
            return super().accept_many(payloads, weights)
        answers: list[tuple[str, Answer]] = []
        for some in lists_of(BATCH * len(self.fronts), payload_pairs(payloads)):
            answers.extend(self._by_fronts(some, weights))
        return answers

    def _by_fronts(
        self, pairs: Sequence[tuple[str, bytes]], weights: Mapping[str, Weight] | None
    ) -> list[tuple[str, Answer]]:
        """Hand each payload to the front of its node, and wait for all answers."""
        places: dict[Any, list[int]] = {}
        for place, (node, _) in enumerate(pairs):
            places.setdefault(self.front_of(node), []).append(place)
        calls = []
        for front, here in places.items():
            given = weights
            if isinstance(weights, Mapping):
                given = {pairs[i][0]: weights[pairs[i][0]] for i in here if pairs[i][0] in weights}
            calls.append((here, front.accept_many.remote([pairs[i] for i in here], given)))
        answers: list[tuple[str, Answer]] = list(pairs)  # type: ignore[arg-type]  # all are replaced
        for here, call in calls:
            try:
                found = ray.get(call)
            except RayTaskError as failed:
                raise failed.cause if isinstance(failed.cause, sm.SparseMeanError) else failed from None
            except RayError as gone:
                found = [(pairs[i][0], ShardLost(f"a front is gone: {gone!s:.200}; make the call again")) for i in here]
            for place, answer in zip(here, found, strict=True):
                answers[place] = answer
        return answers

    def _answered(self, front: int, asks: Asks) -> dict[str, Answered]:
        """What a front is to be told by now; it asks again for the rest."""
        sharded = self._sharded
        for ask in asks.open.values():
            if isinstance(ask, Delivered | Failed):
                sharded.note(ask)  # first: whoever holds the lock may wait for it, to end the round
        if not self._lock.acquire(timeout=PATIENCE):
            return {}
        try:
            answers = {key: self._answer_to(front, ask) for key, ask in asks.open.items()}
            self._came.notify_all()
        finally:
            self._lock.release()
        return {key: answer for key, answer in answers.items() if answer is not None}

    def _answer_to(self, front: int, ask: Ask) -> Answered | None:
        try:
            roster = self._sharded.ready()
            if isinstance(ask, Delivered | Failed):
                return self._sharded.outcome(ask.ticket)
            if isinstance(ask, Refused):
                self._count_refusals(ask.errors)
                return View(self._sharded.version, roster.terms_alone(), self._sharded.shards.actors)
            return self._admitted(front, roster, ask)
        except sm.SparseMeanError as failure:
            return failure

    def _admitted(self, front: int, roster: Roster, offers: Sequence[Offer]) -> Admitted:
        """Judge payloads as those are that come here, and give a ticket to those that are in."""
        under_way = self._sharded.under_way
        free = [offer for offer in offers if offer.receipt.node not in under_way]
        answers, new = self._judged(roster, free, len(under_way))
        self._count_refusals(answers)
        judged = iter(answers)
        verdicts: list[Verdict] = []
        for offer in offers:
            node = offer.receipt.node
            answer = Standing.LATER if node in under_way else next(judged)
            twice = node in new and isinstance(answer, sm.Receipt)  # the same payload again, which has no receipt yet
            verdicts.append(Standing.IN if new.get(node) is offer else Standing.LATER if twice else answer)
        if new and self._undealt(roster):
            self._sharded.deal(list(self.run.nodes))  # as in a Server: the payloads go by the run's list
        ticket = self._sharded.issue(front, list(new.values())) if new else None
        return Admitted(verdicts, ticket)

    def close(self) -> None:
        """Close journals and end all actors."""
        if self._fronts is not None:
            self._fronts.stop()
        super().close()

    def usage(self) -> list[Usage]:
        """What each shard takes of its machine's memory."""
        return self._sharded.shards.usage()
