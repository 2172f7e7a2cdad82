"""The DDP hook against dense all-reduce and PyTorch's own hooks: ranks as processes on loopback, one thread each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sparsemean.encoders import RandK
from sparsemean.errors import InvalidInput
from sparsemean.lab.bench.link import even_bits
from sparsemean.lab.bench.machine import Machine, Others, machine
from sparsemean.lab.bench.timing import Timing
from sparsemean.lab.optional_modules import require
from sparsemean.schemes import Scheme, named

DENSE, FP16, POWER = "dense", "fp16", "PowerSGD, rank 4"
SCHEMES: dict[str, Scheme] = {
    "rand-k shared, float32, k = 5 %": Scheme(RandK(0.05, shared=True)),
    "rand-k-spatial-avg, float32, k = 5 %": named("rand-k-spatial-avg", k=0.05),
    "rand-k-spatial-avg, int8, k = 20 %": named("rand-k-spatial-avg", k=0.2, values="int8"),
    "rand-k-spatial-avg, int4, k = 35 %": named("rand-k-spatial-avg", k=0.35, values="int4"),
    "rand-k-spatial-avg, eden-4, k = 20 %": named("rand-k-spatial-avg", k=0.2, values="eden-4"),
    "rand-k-balanced, int8, k = 20 %": named("rand-k-balanced", k=0.2, values="int8"),
    "rand-k-hybrid, int8, k = 20 %": named("rand-k-hybrid", k=0.2, values="int8"),
    "identity, eden-1": named("identity", values="eden-1"),
}
METHODS = (DENSE, FP16, POWER, *SCHEMES)
RANKS = 2
PARAMETERS = 1 << 24
LEAST = 1 << 14
"""Parameters of the smallest model, whose layers are then just long enough to be compressed."""
LONGEST = 3600.0
"""Seconds after which ranks that have not come to an end are stopped."""


@dataclass(frozen=True)
class DdpRow:
    """One way to average gradients.

    Parameters
    ----------
    method
        Its name.
    seconds
        Of ``loss.backward()`` in the slower of the ranks.
    processor
        Processor time of that, of the rank that needed most.
    bytes_sent
        Size of the tensors that a rank hands to collectives in a step.
    bytes_moved
        What passes over a rank's link with that: of an all-reduce 2(n − 1)/n as much, of an all-gather n − 1 times.
    peak_bytes
        By how much the resident memory of a rank rises in ``backward()``, at most.
    ratio
        ``seconds`` over those of dense gradients, both as medians.
    pays_below
        Bits a second of the links below which a step is faster than with dense gradients; 0 for never, infinite for
        always.
    """

    method: str
    seconds: Timing
    processor: Timing
    bytes_sent: int
    bytes_moved: int
    peak_bytes: int | None
    ratio: float
    pays_below: float


@dataclass(frozen=True)
class DdpRecord:
    """All rows of one run, with what they were measured on.

    Parameters
    ----------
    machine
        The machine.
    parameters, ranks
        Size of the model, and number of processes.
    others
        Cores that other processes had meanwhile.
    rows
        A row a method, the dense one first.
    """

    machine: Machine
    parameters: int
    ranks: int
    others: float
    rows: tuple[DdpRow, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def ddp_record(parameters: int = PARAMETERS, repeats: int = 7, methods: Sequence[str] = METHODS) -> DdpRecord:
    """Measure all methods in turn, ``repeats`` times each, in one run.

    Parameters
    ----------
    parameters : int
        Of the model, about: four linear layers of equal size, with biases.
    repeats : int
        How often each method takes a step; the medians count.
    methods : sequence of str
        Which of ``METHODS``; dense gradients come first in any case.
    """
    require("torch", "the benchmark of the DDP hook", "torch")
    if parameters < LEAST:
        raise InvalidInput(f"the model has {LEAST:,} parameters or more, not {parameters:,}")
    if unknown := [name for name in methods if name not in METHODS]:
        raise InvalidInput(f"{unknown[0]!r} is not measured; use {', '.join(METHODS)}")
    chosen = (DENSE, *(name for name in methods if name != DENSE))
    others = Others()
    found = _played(RANKS, {"parameters": parameters, "repeats": repeats, "methods": chosen})
    return DdpRecord(machine(), found[0]["parameters"], RANKS, others.cores(), tuple(_rows(chosen, found)))


def _rows(methods: Sequence[str], found: list[dict[str, Any]]) -> Iterator[DdpRow]:
    of = {name: [rank["methods"][name] for rank in found] for name in methods}
    seconds = {name: Timing.of(_slower(each["seconds"] for each in ranks)) for name, ranks in of.items()}
    dense, moved = seconds[DENSE].median, of[DENSE][0]["moved"]
    for name, ranks in of.items():
        peaks = [each["peak"] for each in ranks if each["peak"] is not None]
        yield DdpRow(
            name,
            seconds[name],
            Timing.of(_slower(each["processor"] for each in ranks)),
            ranks[0]["bytes"],
            ranks[0]["moved"],
            max(peaks) if peaks else None,
            seconds[name].median / dense,
            even_bits(seconds[name].median, dense, ranks[0]["moved"], moved),
        )


def _slower(ranks: Iterator[list[float]]) -> list[float]:
    """Step by step what the slower rank took."""
    return [max(each) for each in zip(*ranks, strict=True)]


def _played(ranks: int, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """What every rank found; none of them outlives this."""
    with tempfile.TemporaryDirectory() as folder:
        told = json.dumps({**settings, "ranks": ranks})
        command = [sys.executable, "-m", "sparsemean.lab.bench.ddp_rank", folder, told]
        loopback = "lo0" if sys.platform == "darwin" else "lo"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": loopback}
        started: list[subprocess.Popen[bytes]] = []
        try:
            for rank in range(ranks):
                with Path(folder, f"{rank}.txt").open("wb") as said:
                    started.append(subprocess.Popen([*command, str(rank)], env=environment, stdout=said, stderr=said))
            _wait(started)
        finally:
            for process in started:
                process.kill()
                process.wait()
        for rank, process in enumerate(started):
            if process.returncode > 0:
                said_last = Path(folder, f"{rank}.txt").read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"rank {rank} of the benchmark ended with {process.returncode}:\n{said_last}")
        return [json.loads(Path(folder, f"{rank}.json").read_text(encoding="utf-8")) for rank in range(ranks)]


def _wait(started: list[subprocess.Popen[bytes]]) -> None:
    """Until all have ended, or one with an error, for which the others would wait for long."""
    end = time.monotonic() + LONGEST
    while any(process.poll() is None for process in started) and not any(process.poll() for process in started):
        if time.monotonic() > end:
            raise TimeoutError(f"the ranks of the benchmark have not come to an end in {LONGEST:.0f} s")
        time.sleep(0.05)
