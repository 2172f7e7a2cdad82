"""RayServer: a Server whose coordinates are shared out among Ray actors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ray

import sparsemean as sm
from sparsemean._names import Durability, Missing
from sparsemean.inputs import journal_folder, round_number
from sparsemean.integrations.ray.ranges import Sharding
from sparsemean.integrations.ray.sharded import ShardedRounds
from sparsemean.integrations.ray.shards import Shards
from sparsemean.integrations.ray.usage import Usage
from sparsemean.server.server import check_settings


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
        How many seconds a shard may take to answer, its return after a crash included.
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
    ) -> None:
        if not ray.is_initialized():
            raise sm.InvalidInput("Ray is not running here; start or join it first, with ray.init()")
        check_settings(run, missing, durability, clip)
        folder = None if journal is None else str(journal_folder(journal))
        bounds = None if clip is None else (clip.norm, clip.value)
        durable = durability == "accept"
        sharding = Sharding(run, shards, missing, round_number(round), batch_bytes, folder, durable, bounds)
        actors = Shards(sharding, dict(actor_options or {}), timeout)
        try:
            self._sharded = ShardedRounds(sharding, actors)
            self._serve(run, missing, self._sharded, batch_bytes, folder, memory_bytes, clip, on_round)
        except BaseException:
            actors.stop()
            raise

    def usage(self) -> list[Usage]:
        """What each shard takes of its machine's memory."""
        return self._sharded.shards.usage()
