"""The project's goals for speed and memory, and whether they are reached on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sparsemean.lab.bench.baselines import ARGPARTITION, DENSE, FLOAT32, NUMPY, SHORTER
from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.designed import INDEPENDENT, LaterRounds, designed_rows
from sparsemean.lab.bench.growth import growth_rows
from sparsemean.lab.bench.loops import GATHER, GIVEN, ONE, SUM_ALL, SUM_ONE, loop_rows
from sparsemean.lab.bench.measurement import Measurement, bench, too_large
from sparsemean.lab.bench.player import DECODE, ENCODE, TRIP
from sparsemean.lab.bench.sets import MAIN
from sparsemean.lab.bench.startup import FIRST, IMPORT, IMPORT_NUMPY, startup_rows

ByLabel = dict[str, Measurement]

LARGE = Case(MAIN, 1 << 22, 0.1, 16)
FEW_BITS = [Case(MAIN, 1 << 22, 0.1, 16, values) for values in ("int8", "float16")]
BUSY_SERVER = Case(MAIN, 1_000_000, 0.01, 100)
FOUR, THOUSAND = Case(MAIN, 1_000_000, 0.01, 4), Case(MAIN, 1_000_000, 0.01, 1000)
LARGEST = Case("top-k", 10_000_000, 0.01, 1)
REMEMBERING = [Case(scheme, 1_000_000, 0.01, 1000) for scheme in ("rand-k-temporal", "rand-k-hybrid")]
CASES = [FOUR, BUSY_SERVER, THOUSAND, LARGE, *FEW_BITS, LARGEST]
DESIGNED = (
    Case("rand-k-hybrid", 1 << 22, 0.1, 16),
    Case("rand-k-balanced-hybrid", 1 << 22, 0.1, 16),
    LaterRounds("rand-k-epochs-hybrid", 1 << 22, 0.1, 16),
)
ROWS = 3 * len(CASES) + 4 + len(REMEMBERING) + 2 + 3 * (len(DESIGNED) - 1)


@dataclass(frozen=True)
class Goal:
    """A number that is to be at least, or at most, the bound. ``measured`` finds it among rows, None if not there."""

    name: str
    unit: str
    bound: float
    at_least: bool
    measured: Callable[[ByLabel], float | None]

    @property
    def wanted(self) -> str:
        """The bound in words."""
        return f"{'≥' if self.at_least else '≤'} {self.bound:g} {self.unit}"

    def holds(self, value: float) -> bool:
        """Whether the number is good enough."""
        return value >= self.bound if self.at_least else value <= self.bound


def goal_rows(repeats: int = 7) -> Iterator[Measurement]:
    """All rows that goals look at."""
    yield from loop_rows(LARGE, repeats)
    yield from startup_rows(repeats)
    yield from bench([case for case in CASES if not too_large(case)], repeats)
    yield from growth_rows(REMEMBERING, repeats)
    if not any(too_large(case) for case in DESIGNED):
        yield from designed_rows(DESIGNED, repeats)


def judged(rows: Sequence[Measurement]) -> list[tuple[Goal, float]]:
    """Each goal about which the rows say something, with what they say."""
    found = {row.label: row for row in rows}
    return [(goal, value) for goal in GOALS if (value := goal.measured(found)) is not None]


def _ratio(what: str, case: Case, baseline: str) -> Callable[[ByLabel], float | None]:
    def measured(rows: ByLabel) -> float | None:
        row = rows.get(f"{what}: {case}")
        return row.ratios[baseline].median if row is not None and baseline in row.baselines else None

    return measured


def _slower(what: str, case: Case, baseline: str) -> Callable[[ByLabel], float | None]:
    def measured(rows: ByLabel) -> float | None:
        ratio = _ratio(what, case, baseline)(rows)
        return None if ratio is None else 1.0 / ratio

    return measured


def _growth(case: Case) -> Callable[[ByLabel], float | None]:
    return _slower(DECODE, Case(case.scheme, 2 * case.dim, case.share / 2, case.nodes), SHORTER)


def _payloads(rows: ByLabel) -> float | None:
    row = rows.get(f"{DECODE}: {BUSY_SERVER}")
    return None if row is None else BUSY_SERVER.nodes / row.seconds.median / (os.cpu_count() or 1)


def _peak(case: Case) -> Callable[[ByLabel], float | None]:
    def measured(rows: ByLabel) -> float | None:
        row = rows.get(f"{DECODE}: {case}")
        return None if row is None or row.peak_bytes is None else row.peak_bytes / case.dim

    return measured


def _import(rows: ByLabel) -> float | None:
    row = rows.get(IMPORT)
    return None if row is None else row.seconds.median - row.baselines[IMPORT_NUMPY].median


def _first(rows: ByLabel) -> float | None:
    row = rows.get(f"{FIRST}: {LARGE}")
    return None if row is None else row.seconds.median


_SIZE = "d = 2^22, k = 10 %"

GOALS = (
    Goal(f"draw and gather, {_SIZE}, 1 thread", "× NumPy as one writes it", 15, True, _ratio(GATHER, LARGE, NUMPY)),
    Goal(f"draw and sum with counts, n = 16, {_SIZE}, 1 thread", "× the same", 25, True, _ratio(SUM_ONE, LARGE, NUMPY)),
    Goal("the same", "× dense mean", 1, True, _ratio(SUM_ONE, LARGE, DENSE)),
    Goal("the same, time", "× that with indices given", 1.3, False, _slower(SUM_ONE, LARGE, GIVEN)),
    Goal("the same, 2 threads", "× 1 thread", 1.6, True, _ratio(SUM_ALL, LARGE, ONE)),
    Goal("the same, 2 threads", "× dense mean", 2, True, _ratio(SUM_ALL, LARGE, DENSE)),
    Goal("the whole round (accept, check, decode, spatial)", "× dense mean", 0.7, True, _ratio(DECODE, LARGE, DENSE)),
    Goal("whole rounds, n = 100, d = 10^6, k = 1 %", "payloads/s a core", 1000, True, _payloads),
    *(
        Goal(f"{case.scheme}, n = 1000, k = 10^4, d = 10^6 → 2·10^6, time", "×", 1.3, False, _growth(case))
        for case in REMEMBERING
    ),
    *(
        Goal(
            f"{case.scheme}, {what}, n = 16, {_SIZE}", "× independent draws", 0.8, True, _ratio(what, case, INDEPENDENT)
        )
        for case in DESIGNED[1:]
        for what in (ENCODE, TRIP)
    ),
    *(
        Goal(
            f"memory of a spatial round, n = {case.nodes}, with its result (12·d)",
            "·d bytes",
            32,
            False,
            _peak(case),
        )
        for case in (FOUR, THOUSAND)
    ),
    *(
        Goal(f"{case.values} round, n = 16, {_SIZE}", "× float32", 0.5, True, _ratio(DECODE, case, FLOAT32))
        for case in FEW_BITS
    ),
    Goal("top-k encode, d = 10^7, k = 1 %", "× argpartition", 2, True, _ratio(ENCODE, LARGEST, ARGPARTITION)),
    Goal("import sparsemean, over numpy", "s", 0.15, False, _import),
    Goal("first round of a second process, n = 16, d = 2^22", "s", 1, False, _first),
)
