"""How the coordinates of a run are shared out, and what all shards are told about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import sparsemean as sm
from sparsemean._names import Missing
from sparsemean.sampling import tile_size


class ShardLost(sm.SparseMeanError):
    """A shard is gone, does not answer, or answers what no shard can; without a journal what it held may be lost."""


@dataclass(frozen=True)
class Sharding:
    """What makes a shard: the run, which of so many ranges it has, and where its journal lies."""

    run: sm.Run
    shards: int
    missing: Missing
    round: int
    batch_bytes: int
    journal: str | None
    durable_accepts: bool
    clip: tuple[float | None, float | None] | None

    def __post_init__(self) -> None:
        if self.run.auto:
            raise sm.InvalidInput(
                f"{self.run.scheme.encoder!r} is chosen by what whole vectors show, and RayServer has them in ranges; "
                "use a Server, or take the scheme that its why() names"
            )
        if self.run.scheme.encoder.facts.remembered:
            raise sm.InvalidInput(
                f"{self.run.scheme.encoder!r} needs the whole row of a node to read its payloads, and RayServer has it "
                "in shards; use a Server, or Difference with memory=Offset()"
            )
        if self.run.sketched:
            raise sm.InvalidInput(
                f"{self.run.scheme.values} values are read by the whole row of a node, and RayServer has it in shards; "
                "use a Server, or eden-b values"
            )
        if self.run.relative:
            raise sm.InvalidInput(
                f"{self.run.scheme.encoder!r} needs the whole last mean to read payloads, and RayServer has it "
                "in shards; use a Server, or the encoder without Relative"
            )
        if self.run.compact is not None:
            raise sm.InvalidInput(
                'compact frames are for radios, and RayServer keeps no secrets; use a Server, or Run(…, frame="full")'
            )
        if isinstance(self.shards, bool) or not isinstance(self.shards, int) or not 1 <= self.shards <= self._tiles:
            raise sm.InvalidInput(
                f"shards is {self.shards!r}; a vector of {self.run.dim} has tiles of {self._size} coordinates, "
                f"which stay together: give 1 to {self._tiles} shards"
            )

    @property
    def _size(self) -> int:
        return tile_size(self.run.dim)

    @property
    def _tiles(self) -> int:
        return -(-self.run.dim // self._size)

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """Where ranges begin and end: multiples of a tile, so that a range can draw its own samples.

        >>> Sharding(sm.Run(sm.named("rand-k", k=0.1), dim=20_000), 2, "drop", 0, 0, None, True, None).bounds
        (0, 8192, 20000)
        """
        cuts = (self._tiles * shard // self.shards * self._size for shard in range(self.shards))
        return (*cuts, self.run.dim)

    def range(self, shard: int) -> tuple[int, int]:
        """[lo, hi) of a shard."""
        return self.bounds[shard], self.bounds[shard + 1]

    def folder(self, shard: int) -> Path | None:
        """Where its journal lies."""
        return None if self.journal is None else Path(self.journal) / f"shard-{shard:03}"

    def binding(self, shard: int, run: Any) -> dict[str, Any]:
        """What its journal belongs to."""
        clip = None if self.clip is None else list(self.clip)
        return {"run": run, "missing": self.missing, "clip": clip, "shards": self.shards, "shard": shard}
