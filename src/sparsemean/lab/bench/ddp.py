"""The DDP hook against dense all-reduce and PyTorch's own hooks: ranks as processes on loopback, one thread each."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sparsemean.errors import InvalidInput
from sparsemean.lab.bench.machine import Machine, Others, machine
from sparsemean.lab.bench.timing import Timing
from sparsemean.lab.optional_modules import require
from sparsemean.sampling import Balanced
from sparsemean.decoding import Spatial
from sparsemean.encoders import RandK
from sparsemean.schemes import Scheme, named

DENSE, FP16, POWER = "dense", "fp16", "PowerSGD, rank 4"
SCHEMES: dict[str, Scheme] = {
    "rand-k shared, float32, k = 5 %": Scheme(RandK(0.05, shared=True)),
    "rand-k-spatial-avg, float32, k = 5 %": named("rand-k-spatial-avg", k=0.05),
    "rand-k-spatial-avg, int8, k = 20 %": named("rand-k-spatial-avg", k=0.2, values="int8"),
    "rand-k-spatial-avg, int4, k = 35 %": named("rand-k-spatial-avg", k=0.35, values="int4"),
    "balanced spatial-avg, int8, k = 20 %": Scheme(RandK(0.2, draw=Balanced()), Spatial("avg"), values="int8"),
    "rand-k-balanced, int8, k = 20 %": named("rand-k-balanced", k=0.2, values="int8"),
    "rand-k-hybrid, int8, k = 20 %": named("rand-k-hybrid", k=0.2, values="int8"),
    "rand-k-spatial-avg, eden-4, k = 20 %": named("rand-k-spatial-avg", k=0.2, values="eden-4"),
    "identity, eden-1": named("identity", values="eden-1"),
}
METHODS = (DENSE, FP16, POWER, *SCHEMES)
RANKS = 2
PARAMETERS = 1 << 24
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
        What passes over a rank's link with that: 2(n − 1)/n of it in an all-reduce, n − 1 times as much in an all-gather.
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
    rows: tuple[DdpRow, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def ddp_record(parameters: int = PARAMETERS, repeats: int = 7, methods: tuple[str, ...] = METHODS) -> DdpRecord:
    """Measure all methods in turn, ``repeats`` times each, in one run.

    Parameters
    ----------
    parameters : int
        Of the model, about: linear layers of equal size with biases.
    repeats : int
        How often each method takes a step; the medians count.
    methods : tuple of str
        Which of ``METHODS``; dense gradients come first in any case.
    """
    require("torch", "the benchmark of the DDP hook", "torch")
    if unknown := [name for name in methods if name not in METHODS]:
        raise InvalidInput(f"{unknown[0]!r} is not measured; use {', '.join(METHODS)}")
    chosen = (DENSE, *(name for name in methods if name != DENSE))
    others = Others()
    found = _played(RANKS, {"parameters": parameters, "repeats": repeats, "methods": chosen})
    record = DdpRecord(machine(), found[0]["parameters"], RANKS, others.cores())
    return DdpRecord(**{**vars(record), "rows": tuple(_rows(chosen, found))})


def _rows(methods: tuple[str, ...], found: list[dict[str, Any]]) -> Iterator[DdpRow]:
    of = {name: [rank["methods"][name] for rank in found] for name in methods}
    seconds = {name: Timing.of([max(pair) for pair in zip(*(each["seconds"] for each in all_), strict=True)]) for name, all_ in of.items()}
    moved = {name: max(each["moved"] for each in all_) for name, all_ in of.items()}
    for name, ranks in of.items():
        peaks = [peak for each in ranks if (peak := each["peak"]) is not None]
        lost, gained = seconds[name].median - seconds[DENSE].median, moved[DENSE] - moved[name]
        yield DdpRow(
            name,
            seconds[name],
            max((Timing.of(each["processor"]) for each in ranks), key=lambda timing: timing.median),
            max(each["bytes"] for each in ranks),
            moved[name],
            max(peaks) if peaks else None,
            seconds[name].median / seconds[DENSE].median,
            0.0 if gained <= 0 else 8.0 * gained / lost if lost > 0 else math.inf,
        )


def _played(ranks: int, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """What every rank found; none of them outlives this."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "sparsemean.lab.bench.ddp_rank", folder, json.dumps({**settings, "ranks": ranks})]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": _loopback()}
        started = [
            subprocess.Popen([*command, str(rank)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for rank in range(ranks)
        ]
        try:
            said = [process.communicate(timeout=LONGEST)[1].decode(errors="replace") for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait()
        for process, text in zip(started, said, strict=True):
            if process.returncode:
                raise RuntimeError(f"a rank of the benchmark ended with {process.returncode}:\n{text}")
        return [json.loads(Path(folder, f"{rank}.json").read_text(encoding="utf-8")) for rank in range(ranks)]


def _loopback() -> str:
    return "lo0" if sys.platform == "darwin" else "lo"
