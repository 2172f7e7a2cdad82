"""What is known of rounds that ended: a line of JSON for each, in memory and in a file."""

from __future__ import annotations

import json
import logging
import math
import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from sparsemean.errors import InvalidInput
from sparsemean.results import Estimate
from sparsemean.run import Run
from sparsemean.schemes import outline
from sparsemean.server import RoundReport
from sparsemean.server.option_control import Why

Row: TypeAlias = dict[str, Any]
KEPT = 1000
LONGEST_LINE = 1 << 20

log = logging.getLogger("sparsemean.http")


def row_of(
    run: Run, report: RoundReport, estimate: Estimate | None, why: Why | None, refused: Mapping[str, int]
) -> Row:
    """A round as plain JSON; ``run`` is the one that its payloads went by, ``refused`` counts by the error's name."""
    row = {
        "round": report.round,
        "closed": datetime.now(UTC).isoformat(timespec="seconds"),
        "skipped": report.skipped,
        "nodes": report.nodes,
        "who": [] if estimate is None else list(estimate.nodes),
        "bytes": report.bytes,
        "dense_bytes": 4 * run.dim * report.nodes,
        "seconds": report.seconds,
        "repeated": report.repeated,
        "refused": dict(refused),
        "forgotten": report.forgotten,
        "error": report.error,
        "error_se": report.error_se,
        "error_is_bound": estimate is not None and estimate.error_is_bound,
        "interval": None if estimate is None else estimate.actual_error_interval,
        "relative_error": None if estimate is None else estimate.relative_error,
        "ratio": report.ratio,
        "scheme": outline(run.scheme),
        "why": None if why is None else why_json(why),
    }
    return _finite(row)  # type: ignore[no-any-return]


def why_json(why: Why) -> Row:
    """What ``auto`` chose, as plain JSON; the best three of the others."""
    told = {name: getattr(why, name) for name in ("encoder", "values", "expected", "energy", "residual", "correlation")}
    return _finite({**told, "drift": why.drift, "others": why.others[:4]})  # type: ignore[no-any-return]


class History:
    """The last rounds; with a file, also those of services before this one.

    Parameters
    ----------
    path : Path, optional
        Lines of JSON, one a round. A line that a crash cut off is dropped.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.rows: deque[Row] = deque(maxlen=KEPT)
        self._path = path
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        whole = 0
        try:
            with path.open("rb") as file:
                for line in file:
                    if line.endswith(b"\n"):
                        self.rows.append(_row(line))
                        whole += len(line)
            os.truncate(path, whole)
        except (OSError, ValueError) as error:
            raise InvalidInput(f"{path} is not a history of rounds: {error}; move it away to begin a new one") from None

    def add(self, row: Row) -> None:
        """Keep a round. A full disk costs the line, not the service."""
        if self.rows and self.rows[-1]["round"] == row["round"]:  # told once more after an interrupt
            return
        self.rows.append(row)
        if self._path is not None:
            try:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, allow_nan=False) + "\n")
            except OSError as error:
                log.error("round %d is not in the history file: %s", row["round"], error)

    def last(self, most: int) -> list[Row]:
        """Up to so many, the oldest first."""
        rows: Sequence[Row] = list(self.rows)
        return list(rows[-most:]) if most > 0 else []


def _row(line: bytes) -> Row:
    row = json.loads(line)
    if not isinstance(row, dict) or type(row.get("round")) is not int:
        raise ValueError("a line is no round")
    return row


def _finite(content: Any) -> Any:
    """The same with null for what JSON cannot say."""
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    with suppress(TypeError):
        if not math.isfinite(content):
            return None
    return float(content) if hasattr(content, "dtype") else content
