"""Reports of rounds, and writers that keep them: CSV, Prometheus, TensorBoard."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

from sparsemean.errors import InvalidInput

SUMMED = {
    "rounds": "Rounds that ended.",
    "skipped": "Rounds that ended without an estimate.",
    "nodes": "Payloads accepted.",
    "repeated": "Payloads that had been accepted before.",
    "forgotten": "Nodes forgotten for want of room.",
    "unresolved": "Tiles of modulo values that count as expected.",
    "bytes": "Bytes accepted.",
    "seconds": "Seconds that rounds took.",
}
LATEST = {
    "round": "Number of the last round.",
    "error": "Estimated squared error of the last mean.",
    "error_se": "Standard error of that estimate.",
    "ratio": "Correlation R2/R1 of the nodes' innovations.",
}


@dataclass(frozen=True, slots=True)
class RoundReport:
    """One round: who came, what was refused and why, what it cost, and how good the estimate is.

    Attributes
    ----------
    round : int
    skipped : bool
        Whether it ended without an estimate.
    nodes : int
        Payloads accepted.
    repeated : int
        Duplicates of accepted payloads.
    refused : dict
        Payloads refused, by the name of the error.
    forgotten : int
        Nodes forgotten for want of room.
    bytes : int
        Length of the accepted payloads.
    seconds : float
        Since the end of the round before.
    error, error_se : float or None
        Estimated squared error of the mean, and its standard error. None where the server cannot tell, or the round was
        skipped.
    ratio : float or None
        Correlation R2/R1 of the innovations; None likewise.
    unresolved : int
        Tiles of modulo values that contradicted their checksum, and count as what was expected there.
    """

    round: int
    skipped: bool
    nodes: int
    repeated: int
    refused: Mapping[str, int]
    forgotten: int
    bytes: int
    seconds: float
    error: float | None = None
    error_se: float | None = None
    ratio: float | None = None
    unresolved: int = 0

    def numbers(self) -> dict[str, float]:
        """All that is a number, by name; refusals together."""
        plain = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "refused"}
        plain["refused"] = sum(self.refused.values())
        return {name: float(value) for name, value in plain.items() if value is not None}


class CsvReports:
    """Appends a line for each round to a file, which gets its heading when it is new."""

    LAST = ("refused", "unresolved")
    NAMES = (*(each.name for each in fields(RoundReport) if each.name not in ("refused", "unresolved")), *LAST)

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def __call__(self, report: RoundReport) -> None:
        new = not self._path.exists() or self._path.stat().st_size == 0
        refused = " ".join(f"{reason}={count}" for reason, count in sorted(report.refused.items()))
        with self._path.open("a", newline="") as file:
            lines = csv.writer(file)
            if new:
                lines.writerow(self.NAMES)
            lines.writerow([refused if name == "refused" else getattr(report, name) for name in self.NAMES])


class _SummaryWriter(Protocol):
    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> Any: ...


class TensorBoardReports:
    """Hands the numbers of each round to a ``SummaryWriter``, of torch.utils.tensorboard or tensorboardX."""

    def __init__(self, writer: _SummaryWriter, prefix: str = "sparsemean") -> None:
        if not callable(getattr(writer, "add_scalar", None)):
            raise InvalidInput("TensorBoardReports takes a SummaryWriter, such as torch.utils.tensorboard's")
        self._writer, self._prefix = writer, prefix

    def __call__(self, report: RoundReport) -> None:
        for name, value in report.numbers().items():
            if name != "round" and math.isfinite(value):
                self._writer.add_scalar(f"{self._prefix}/{name}", value, report.round)


@dataclass
class PrometheusReports:
    """Sums over rounds, and the last round, as the text that Prometheus reads from /metrics.

    >>> reports = PrometheusReports()
    >>> reports(RoundReport(3, False, 10, 0, {"WrongRound": 2}, 0, 400, 1.5, error=0.25))
    >>> print(reports.text())  # doctest: +ELLIPSIS
    # HELP sparsemean_rounds_total Rounds that ended.
    # TYPE sparsemean_rounds_total counter
    sparsemean_rounds_total 1
    ...
    sparsemean_refused_total{reason="WrongRound"} 2
    ...
    sparsemean_error 0.25
    ...
    """

    totals: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SUMMED, 0))
    refused: dict[str, int] = field(default_factory=dict)
    last: RoundReport | None = None

    def __call__(self, report: RoundReport) -> None:
        numbers = {**report.numbers(), "rounds": 1}
        self.totals = {name: total + numbers[name] for name, total in self.totals.items()}
        for reason, count in report.refused.items():
            self.refused[reason] = self.refused.get(reason, 0) + count
        self.last = report

    def text(self) -> str:
        """The exposition format, version 0.0.4."""
        lines = []
        for name, what in SUMMED.items():
            lines += _metric(f"{name}_total", "counter", what, {"": self.totals[name]})
        by_reason = {f'{{reason="{reason}"}}': count for reason, count in sorted(self.refused.items())}
        lines += _metric("refused_total", "counter", "Payloads refused.", by_reason)
        now = self.last.numbers() if self.last else {}
        for name, what in LATEST.items():
            lines += _metric(name, "gauge", what, {"": now[name]} if name in now else {})
        return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, what: str, values: Mapping[str, float]) -> list[str]:
    full = f"sparsemean_{name}"
    return [
        f"# HELP {full} {what}",
        f"# TYPE {full} {kind}",
        *(f"{full}{by} {repr(float(value)).removesuffix('.0')}" for by, value in values.items()),
    ]
