"""Schemes that are played on the same vectors within the same budget, as often as the answer needs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy.typing as npt

from sparsemean.client import Client
from sparsemean.errors import InvalidInput, SparseMeanError
from sparsemean.lab.byte_budget import finest_whole
from sparsemean.lab.compare.budget import Budget, scheme_within
from sparsemean.lab.compare.comparison import Comparison
from sparsemean.lab.compare.given_vectors import GivenVectors
from sparsemean.lab.compare.playing import Players
from sparsemean.lab.compare.result import WHOLE, Entry, Result, result_of
from sparsemean.lab.trace import Trace
from sparsemean.run import Run
from sparsemean.schemes import AUTO, SIZELESS, names

FIRST, MOST = 3, 80
"""How often each scheme is played, and those whose place matters at the most, unless that is said."""


@dataclass(frozen=True, eq=False)
class Contest:
    """What is to be played.

    Parameters
    ----------
    given
        The vectors.
    budget
        What a node may send in a round.
    schemes
        Names, which may end in the kind of the values: ``"rand-k int8"``; all schemes by default. Whole vectors in
        float32, float16 and int8 are always played as well, and with as many bits as the budget allows.
    seeds
        How often each is played. By default 3 times, and then those that may be the best 6 times and more, until two
        standard errors are 5 % of the error, but not more than 80 times.
    """

    given: GivenVectors
    budget: Budget
    schemes: Sequence[str] = ()
    seeds: int | None = None

    def __post_init__(self) -> None:
        if self.seeds is not None and self.seeds < 1:
            raise InvalidInput(f"seeds is a number from 1 on, got {self.seeds}")

    @cached_property
    def _entries(self) -> tuple[list[Entry], list[tuple[str, Budget]]]:
        whole = [*filter(self._reaches, WHOLE), *self._finest()]
        wanted = dict.fromkeys([*whole, *(self.schemes or (AUTO, *names()))])
        return entries_within(self.given, [(name, self.budget) for name in wanted])

    def _finest(self) -> list[str]:
        """Whole vectors with as many bits a value as the budget of bytes allows, where it is one of bytes."""
        limit, dim = self.budget.bytes, self.given.task.dim
        name = None if limit is None else finest_whole(dim, limit)
        return [name] if name else []

    def _reaches(self, whole: str) -> bool:
        """Whether these values reach as far as the vectors do: float16 ends at 65504."""
        scheme = scheme_within(whole, self.budget, self.given.task.dim, 0.0)
        if scheme is None:
            return False
        try:
            Client(Run(scheme, self.given.task.dim), "0").encode(self.given.largest, 0)
        except SparseMeanError:
            return False
        return True

    def results(
        self, jobs: int | None = None, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> Generator[Result, None, None]:
        """The result of each scheme once it is there; again, with more seeds, of those that are played more often.

        Parameters
        ----------
        jobs
            Number of processes; all cores by default.
        progress
            Called with (done, total), in games of one seed.
        """
        entries, most = self._entries[0], self.seeds or MOST
        traces: dict[str, list[Trace]] = {entry.name: [] for entry in entries}
        found: dict[str, Result] = {}
        done = total = 0

        def after() -> None:
            nonlocal done
            done += 1
            progress(done, total)

        with Players(jobs) as players:
            chosen, often = entries, self.seeds or FIRST
            while chosen:
                wanted = [(entry, range(len(traces[entry.name]), often)) for entry in chosen]
                total += sum(len(seeds) for _, seeds in wanted)
                progress(done, total)
                for entry, more in players.play(self.given, wanted, after):
                    traces[entry.name] += more
                    found[entry.name] = result_of(entry, traces[entry.name], self.given)
                    yield found[entry.name]
                unsettled = {result.scheme for result in self.comparison(found.values()).unsettled}
                chosen = [entry for entry in entries if entry.name in unsettled and len(traces[entry.name]) < most]
                often = min(2 * often, most)

    def comparison(self, results: Iterable[Result]) -> Comparison:
        """The last result of each scheme, sorted; what is missing was not played to its end."""
        entries, left_out = self._entries
        last = {result.scheme: result for result in results}
        k = next((result.k for result in last.values() if result.name == "rand-k" and result.k), 1)
        return Comparison(
            results=tuple(sorted(last.values(), key=lambda result: result.steady)),
            correlation=self.given.correlation,
            rounds=len(self.given.rounds),
            nodes=self.given.task.nodes,
            dim=self.given.task.dim,
            seeds=min((result.seeds for result in last.values()), default=0),
            budget=self.budget,
            left_out=tuple(name for name, _ in left_out),
            warmup=self.given.warmup,
            zero_error=self.given.zero_error,
            steady_zero_error=self.given.steady_zero_error,
            concentration=self.given.concentration(k),
            complete=len(last) == len(entries),
        )


def compare(
    vectors: npt.ArrayLike,
    budget: Budget,
    schemes: Sequence[str] = (),
    weights: npt.ArrayLike | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Comparison:
    """Play each scheme on the vectors.

    Parameters
    ----------
    vectors
        Shape (n, d) or (rounds, n, d).
    budget, schemes, seeds
        As ``Contest`` takes them.
    weights
        One number per node.
    jobs
        Number of processes; all cores by default.
    progress
        Called with (done, total) after every run.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> vectors = rng.normal(size=50) + 0.1 * rng.normal(size=(12, 50))
    >>> found = compare(vectors, Budget(share=0.2), ["rand-k", "rand-k-spatial-max"], seeds=20)
    >>> found.recommended.code
    'sm.named("rand-k-spatial-max", k=10)'
    """
    contest = Contest(GivenVectors(vectors, weights), budget, schemes, seeds)
    return contest.comparison(contest.results(jobs, progress))


def entries_within(
    given: GivenVectors, wanted: Iterable[tuple[str, Budget]]
) -> tuple[list[Entry], list[tuple[str, Budget]]]:
    """Each name with the largest k that its budget allows; and those of which not even one value fits.

    Raises ``InvalidInput`` where nothing fits but schemes that send whole vectors, whatever the budget.
    """
    fitting: list[Entry] = []
    left_out: list[tuple[str, Budget]] = []
    for name, budget in wanted:
        scheme = scheme_within(name, budget, given.task.dim, given.correlation.ratio)
        if scheme is None:
            left_out.append((name, budget))
        else:
            fitting.append(Entry(name, scheme, budget))
    if left_out and {entry.name.partition(" ")[0] for entry in fitting} <= set(SIZELESS):
        largest = max(budget.bytes or 0 for _, budget in left_out)
        raise InvalidInput(
            f"a budget of {largest} bytes is too small for every scheme: "
            "a payload has a header of 64 bytes and one value. Frames for radios have one of 5, "
            'Run(…, frame="compact"), which this does not play (docs/sensors.md)'
        )
    return fitting, left_out
