"""Finished settings on disk, one file each: what is there need not be run again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsemean._version import __version__
from sparsemean.lab.experiments.setting import Row, Setting
from sparsemean.lab.experiments.tables import write_whole


@dataclass(frozen=True)
class Parts:
    """A folder of ``<key>.json``. A part of another version of the library counts as missing, as does a damaged one."""

    folder: Path

    def path(self, setting: Setting) -> Path:
        """Where its part is, or will be."""
        return self.folder / f"{setting.key}.json"

    def write(self, setting: Setting, rows: list[Row]) -> None:
        """Keep what was measured."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {"setting": json.loads(setting.run_text), "version": __version__, "rows": encoded(rows)}
        write_whole(self.path(setting), json.dumps(content, allow_nan=False))

    def read(self, setting: Setting) -> list[Row] | None:
        """What was measured; None where it is still to do."""
        try:
            content: dict[str, Any] = json.loads(self.path(setting).read_text(encoding="utf-8"))
            return decoded(content["rows"]) if content["version"] == __version__ else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


def encoded(rows: list[Row]) -> list[dict[str, Any]]:
    """Rows that JSON can hold: a number that is not finite becomes {"float": its name}.

    >>> encoded([{"mse": float("inf"), "k": 3}])
    [{'mse': {'float': 'inf'}, 'k': 3}]
    """
    return [{name: _encoded(value) for name, value in row.items()} for row in rows]


def decoded(rows: list[dict[str, Any]]) -> list[Row]:
    """The rows that were encoded."""
    return [
        {name: float(value["float"]) if isinstance(value, dict) else value for name, value in row.items()}
        for row in rows
    ]


def _encoded(value: Any) -> Any:
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return {"float": str(value)}
    return value
