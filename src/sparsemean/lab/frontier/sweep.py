"""Sweep over byte budgets: every scheme and kind of values at every budget, through the real bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from sparsemean.lab.byte_budget import finest_whole
from sparsemean.lab.compare import Budget, Entry, GivenVectors, entries_within, played
from sparsemean.lab.frontier.frontier import Frontier, Point
from sparsemean.lab.frontier.kept import KeptPoints
from sparsemean.lab.frontier.peer_points import PeerEntry, peer_entries
from sparsemean.lab.peers import PEERS
from sparsemean.run import Run
from sparsemean.schemes import AUTO, SIZELESS, named, names
from sparsemean.wire.values import value_kind

DENSE = ("identity float32", "identity float16", "identity int8")
"""The dense means that every sweep has among its points."""
BUDGETS = 6
FEWEST = 4  # values in a payload of the smallest default budget
WHOLE = Budget(share=1.0)


@dataclass(frozen=True, eq=False)
class Sweep:
    """What is to be played.

    Parameters
    ----------
    given
        The vectors.
    budgets
        Bytes per node and round, header included; refused where one is too small for every scheme. By default
        ``default_budgets`` of the vectors' length. Whole vectors with as many bits as each allows are always played.
    schemes
        Names; all by default, those of ``peers.PEERS`` included, which are played in this process and in float32 alone.
        Those that send whole vectors are played once for each kind of values, not per budget.
    values
        Kinds of values, by name.
    seeds
        How often each point is played.
    """

    given: GivenVectors
    budgets: Sequence[int] = ()
    schemes: Sequence[str] = ()
    values: Sequence[str] = ("float32", "int8")
    seeds: int = 3

    @cached_property
    def limits(self) -> tuple[int, ...]:
        """The budgets in ascending order."""
        return tuple(sorted(set(self.budgets))) or default_budgets(self.given.task.dim)

    def points(
        self,
        kept: KeptPoints | None = None,
        jobs: int | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Iterator[Point]:
        """Every point as soon as it is there: first what is kept from before, then what is played now.

        Parameters
        ----------
        kept
            Where finished points are kept; without it nothing is.
        jobs
            Number of processes; all cores by default.
        progress
            Called with (done, total), in runs of one seed.
        """
        entries, peers = self._entries[0], self._peers[0]
        every: list[Entry | PeerEntry] = [*entries, *peers]
        before = {each: kept.read(each.name, each.budget.bytes) for each in every} if kept else {}
        finished = {each: point for each, point in before.items() if point is not None}
        yield from finished.values()
        done, total = self.seeds * len(finished), self.seeds * len(every)
        progress(done, total)

        def played_one(*_: int) -> None:
            nonlocal done
            done += 1
            progress(done, total)

        missing = [entry for entry in entries if entry not in finished]
        results = played(self.given, missing, self.seeds, jobs, played_one)
        made = (Point.of(result, entry.budget.bytes) for entry, result in zip(missing, results, strict=True))
        others = (peer.point(self.given, self.seeds, played_one) for peer in peers if peer not in finished)
        for point in chain(made, others):
            if kept:
                kept.write(point)
            yield point

    def frontier(self, points: Sequence[Point]) -> Frontier:
        """These points, in the order of the sweep, and their fronts."""
        (entries, left_out), (peers, not_played) = self._entries, self._peers
        every: list[Entry | PeerEntry] = [*entries, *peers]
        order = {(entry.name, entry.budget.bytes): place for place, entry in enumerate(every)}
        return Frontier(
            points=tuple(sorted(points, key=lambda point: order[point.scheme, point.budget])),
            zero_error=self.given.zero_error,
            nodes=self.given.task.nodes,
            dim=self.given.task.dim,
            rounds=len(self.given.rounds),
            seeds=self.seeds,
            budgets=self.limits,
            left_out=left_out,
            complete=len(points) == len(every),
            not_played=not_played,
        )

    @cached_property
    def _peers(self) -> tuple[list[PeerEntry], str]:
        """Points to compare with, and why there are none."""
        if self.schemes and not set(PEERS) & set(self.schemes):
            return [], ""
        return peer_entries(self.given, self.limits, self.seeds)

    @cached_property
    def _entries(self) -> tuple[list[Entry], tuple[str, ...]]:
        """What is played, whole vectors first, then by budget; and the names of those that no budget has room for.

        Where a larger budget allows no larger k, as where all coordinates are sent already, it has no point.
        """
        kinds = [value_kind(kind).name for kind in self.values]
        every = [name for name in self.schemes if name not in PEERS] if self.schemes else [*names(), AUTO]
        chosen = [f"{name} {kind}" for kind in kinds for name in every if name != AUTO]
        chosen += [AUTO] if AUTO in every else []
        whole = [name for name in chosen if name.partition(" ")[0] in SIZELESS]
        sized = [name for name in chosen if name not in whole]
        finest = [name for limit in self.limits if (name := finest_whole(self.given.task.dim, limit))]
        dense = dict.fromkeys([*DENSE, *finest, *whole])
        whole_entries, _ = entries_within(self.given, [(name, WHOLE) for name in dense])
        wanted = [[(name, Budget(bytes=limit)) for name in sized] for limit in self.limits]
        together = wanted if self.budgets else [[pair for pairs in wanted for pair in pairs]]
        fitting = [entry for pairs in together if pairs for entry in entries_within(self.given, pairs)[0]]
        first = {(entry.name, entry.scheme): entry for entry in reversed(fitting)}
        sized_entries = [entry for entry in fitting if first[entry.name, entry.scheme] is entry]
        there = {entry.name for entry in fitting}
        return [*whole_entries, *sized_entries], tuple(name for name in sized if name not in there)


def default_budgets(dim: int, count: int = BUDGETS) -> tuple[int, ...]:
    """Budgets in geometric progression, from a few float32 values to the dense float32 mean, header included.

    >>> default_budgets(1000)
    (80, 175, 385, 845, 1853, 4064)
    """
    least, most = (Run(named("rand-k", k), dim).payload_bytes for k in (min(FEWEST, dim), dim))
    whole = np.rint(np.geomspace(least, most, count)).astype(int)
    return tuple(sorted({least, *(int(each) for each in whole), most}))
