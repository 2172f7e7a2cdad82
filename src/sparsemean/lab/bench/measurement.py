"""Measurements: the time of one operation at one size, beside that of its baselines; and the benchmark itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sparsemean._types import Floats
from sparsemean.lab.bench.baselines import (
    ARGPARTITION,
    DENSE,
    FLOAT32,
    LIMIT,
    copy_of,
    of_decoding,
    of_encoding,
    of_largest,
)
from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.machine import Others, free_memory
from sparsemean.lab.bench.player import DECODE, ENCODE, TRIP, WHATS, Player, vectors_for
from sparsemean.lab.bench.timing import Clock, Timing, clock_of, in_turn

FULL = 0.7  # of the free memory may be used


@dataclass(frozen=True)
class Ratio:
    """How many times as fast as a baseline, and the range of it over the quartiles of both.

    >>> Ratio.of(Timing(1.0, 2.0, 4.0, 3), Timing(8.0, 8.0, 8.0, 3))
    Ratio(low=2.0, median=4.0, high=8.0)
    """

    low: float
    median: float
    high: float

    @staticmethod
    def of(ours: Timing, theirs: Timing) -> Ratio:
        """Of two times of the same run."""
        return Ratio(theirs.low / ours.high, theirs.median / ours.median, theirs.high / ours.low)


@dataclass(frozen=True)
class Measurement:
    """The time of one operation at one size.

    Parameters
    ----------
    what
        The operation.
    case
        Scheme and size; None where they do not matter.
    seconds
        The time it took.
    baselines
        The time of what it is compared with, by name.
    peak_bytes
        Peak memory; None where it was not measured.
    others
        Cores that other processes used meanwhile, on average.
    """

    what: str
    case: Case | None
    seconds: Timing
    baselines: Mapping[str, Timing] = field(default_factory=dict)
    peak_bytes: int | None = None
    others: float = 0.0

    @property
    def label(self) -> str:
        """What was done, and at which size."""
        return self.what if self.case is None else f"{self.what}: {self.case}"

    @property
    def ratios(self) -> dict[str, Ratio]:
        """Above 1 where we are faster."""
        return {name: Ratio.of(self.seconds, theirs) for name, theirs in self.baselines.items()}


def too_large(case: Case, free: int | None = None) -> str:
    """Why a case cannot be measured here; empty where it can."""
    room, needed = FULL * (free_memory() if free is None else free), case.needed_bytes
    return f"needs about {needed / 1e9:.3g} GB of memory, and {room / 1e9:.3g} are free" if needed > room else ""


def bench(cases: Sequence[Case], repeats: int = 7) -> Iterator[Measurement]:
    """Encode, server round and round trip of each case; a case that is ``too_large`` is the caller's to leave out.

    Baselines that depend on the size alone are timed once for all cases of one size that follow each other. The dense
    mean is missing where the table of all vectors is too large.
    """
    size: tuple[int, int, int] | None = None
    known: dict[str, dict[str, Timing]] = {}
    for case in cases:
        others, vectors = Others(), vectors_for(case, free_memory())
        if case.size != size:
            size, known = case.size, _of_size(case, vectors, repeats)
        player = Player(case, vectors)
        peaks, timings = player.peaks(), in_turn(_clocks(case, player), repeats)
        timings[TRIP + LIMIT] = timings[ENCODE + LIMIT].times(case.nodes) + timings[DECODE + LIMIT]
        for what in WHATS:
            own = {name: timings[what + name] for name in (LIMIT, ARGPARTITION, FLOAT32) if what + name in timings}
            yield Measurement(what, case, timings[what], {**known[what], **own}, peaks[what], others.cores())


def _clocks(case: Case, player: Player) -> Iterator[Clock]:
    """The case itself, and what it alone is compared with."""
    yield player.clock()
    yield clock_of(ENCODE + LIMIT, copy_of(case.encode_bytes))
    yield clock_of(DECODE + LIMIT, copy_of(case.decode_bytes))
    if "top-k" in case.scheme:
        yield clock_of(ENCODE + ARGPARTITION, of_largest(case, player.vectors))
    if case.values != "float32":
        yield Player(replace(case, values="float32"), player.vectors).clock(FLOAT32)


def _of_size(case: Case, vectors: Floats, repeats: int) -> dict[str, dict[str, Timing]]:
    encode = in_turn([clock_of(name, work) for name, work in of_encoding(case, vectors).items()], repeats)
    decode = in_turn([clock_of(name, work) for name, work in of_decoding(case, vectors).items()], repeats)
    trip = {name: encode[name].times(case.nodes) + decode[name] for name in encode}
    return {ENCODE: encode, DECODE: decode, TRIP: trip | {name: decode[name] for name in (DENSE,) if name in decode}}
