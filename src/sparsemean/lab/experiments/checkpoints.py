"""Finished settings on disk, one JSON file each, so that an interrupted reproduction can continue."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsemean._version import __version__
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.tables import TableRow, write_whole


@dataclass(frozen=True)
class Checkpoints:
    """A folder of ``<key>.json``. A file of another version of the library counts as missing, as does a damaged one."""

    folder: Path

    def path(self, setting: Setting) -> Path:
        """The file of the setting, whether it is there or not."""
        return self.folder / f"{setting.key}.json"

    def write(self, setting: Setting, rows: list[TableRow]) -> None:
        """Store the rows of a finished setting."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {"setting": json.loads(setting.run_text), "version": __version__, "rows": encoded(rows)}
        write_whole(self.path(setting), json.dumps(content, allow_nan=False))

    def read(self, setting: Setting) -> list[TableRow] | None:
        """The rows of the setting; None where it is not finished."""
        try:
            content: dict[str, Any] = json.loads(self.path(setting).read_text(encoding="utf-8"))
            return decoded(content["rows"]) if content["version"] == __version__ else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


def encoded(rows: list[TableRow]) -> list[dict[str, Any]]:
    """The rows as JSON can hold them: a number that is not finite becomes {"float": its name}.

    >>> encoded([{"mse": float("inf"), "k": 3}])
    [{'mse': {'float': 'inf'}, 'k': 3}]
    """
    return [{name: _encoded(value) for name, value in row.items()} for row in rows]


def decoded(rows: list[dict[str, Any]]) -> list[TableRow]:
    """The inverse of ``encoded``."""
    return [
        {name: float(value["float"]) if isinstance(value, dict) else value for name, value in row.items()}
        for row in rows
    ]


def _encoded(value: Any) -> Any:
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return {"float": str(value)}
    return value
