"""RayServer: a Server whose coordinates are shared out among Ray actors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import ray

import sparsemean as sm
from sparsemean.core import Doubles, Rounds, Shelf, Submission, fingerprint, journal_folder
from sparsemean.integrations.ray.front import Front
from sparsemean.integrations.ray.pieces import pieces
from sparsemean.integrations.ray.ranges import Plan
from sparsemean.integrations.ray.shards import Shards
from sparsemean.integrations.ray.usage import Usage


class RayServer(sm.Server):
    """A ``sparsemean.Server`` whose sums, counts and memories are in ``shards`` actors, a range of coordinates each.

    Payloads are opened and checked once, here; a receipt means that all shards have their piece. All else is as there,
    but for this: ``memory_bytes`` is the room of one shard, and ``journal`` a folder that all hosts of the cluster can
    reach, where each shard has a journal of its own. A shard that dies comes back with what its journal holds, and Ray
    asks it again; without a journal its range is lost, and ``ShardLost`` says so.

    ``actor_options`` go to Ray, such as ``{"num_cpus": 4, "memory": 2**33}``; ``timeout`` is how many seconds a shard
    may take to answer, its return included.
    """

    def __init__(
        self,
        run: sm.Run,
        shards: int,
        missing: str = "drop",
        round: int = 0,
        batch_bytes: int = 1 << 24,
        journal: Path | str | None = None,
        durability: str = "accept",
        memory_bytes: int = 1 << 34,
        clip: sm.Clip | None = None,
        on_round: Sequence[Callable[[sm.RoundReport], object]] = (),
        actor_options: Mapping[str, Any] | None = None,
        timeout: float = 600.0,
    ) -> None:
        if not ray.is_initialized():
            raise sm.InvalidInput("Ray is not running here; start or join it first, with ray.init()")
        folder = None if journal is None else str(journal_folder(journal))
        bounds = None if clip is None else (clip.norm, clip.value)
        self._plan = Plan(run, shards, missing, round, batch_bytes, folder, durability == "accept", bounds)
        self._options, self._timeout = dict(actor_options or {}), timeout
        self._shards: Shards | None = None
        try:
            super().__init__(run, missing, round, batch_bytes, None, durability, memory_bytes, clip, on_round)
        except BaseException:
            self.close()
            raise

    def _begun(self, round: int, shelf: Shelf | None = None) -> Rounds:
        self._shards = Shards(self._plan, self._options, self._timeout)
        self._shard_node_bytes = max(state.node_bytes for state in self._shards.agree())
        return self._reminded()

    def _all(self) -> Shards:
        if self._shards is None:
            raise sm.InvalidInput("this server was closed; make a new one")
        return self._shards

    def _reminded(self) -> Front:
        shards = self._all()
        front = Front(self.run, self.missing, self._plan.round, shards)
        front.remind(*shards.roll())
        return front

    def _room(self, memory_bytes: int, journal: bool) -> int:
        return super()._room(memory_bytes, self._plan.journal is not None)

    def _node_bytes(self) -> tuple[int, int]:
        """Of a shard, the largest one."""
        return self._shard_node_bytes, -(-self.run.payload_bytes // self._plan.shards)

    def _write(self, round: int, offers: Collection[Submission]) -> None:
        if offers:
            bounds, rounds = self._plan.bounds, self._rounds
            cut = [pieces(self.run, bounds, *rounds.taken(offer), offer.payload) for offer in offers]
            self._all().accept(round, cut)

    def expected(self, node: str) -> Doubles:
        return self._alone(lambda: self._agreed().remembered(node))

    def last_estimate(self) -> sm.Estimate | None:
        """The estimate of the round that ended last; None without a journal, and as ``Server.last_estimate``."""
        return self._alone(self._last_estimate)

    def _last_estimate(self) -> sm.Estimate | None:
        rounds = self._sound()
        return rounds.last_estimate() if self._plan.journal is not None and isinstance(rounds, Front) else None

    def digest(self) -> str:
        """Changes with any part of the state, here or in a shard; not the digest of a Server."""
        return super().digest()

    def _digest(self) -> str:
        rounds = self._sound()
        return fingerprint([rounds.state(), rounds.accepted, self._all().digests()])

    def usage(self) -> list[Usage]:
        """What each shard takes of its machine's memory."""
        return self._all().usage()

    def _agreed(self) -> Shards:
        """The shards, at one state."""
        self._sound()
        return self._all()

    @property
    def _enqueues(self) -> bool:
        return False

    @property
    def _recovers(self) -> bool:
        return True

    def _sound(self) -> Rounds:
        if self._unsound or not self._all().sound:
            self._recover()
        return self._rounds

    def _recover(self) -> None:
        """Bring the shards to one state again, and know it."""
        shards = self._all()
        if self._unsound or not shards.sound:
            self._unsound = True  # until the front knows what the shards have agreed on
            shards.agree()
            self._rounds, self._unsound = self._reminded(), False

    def close(self) -> None:
        """Let go of the actors and their journals; the server cannot be used after."""
        if self._shards is not None:
            self._shards.stop()
        self._shards = None
