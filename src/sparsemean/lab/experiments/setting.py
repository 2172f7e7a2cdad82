"""One run of one experiment, as a value: what is run, on which data, with which scheme and seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from sparsemean.errors import InvalidInput, SparseMeanError

Option: TypeAlias = int | float | str
Cell: TypeAlias = int | float | str | None
Row: TypeAlias = dict[str, Cell]

EXACT = "exact"
"""The scheme that is none: the server is given the true mean."""


class SettingFailed(SparseMeanError):
    """A setting could not be run; the message names it."""


@dataclass(frozen=True)
class Setting:
    """``share`` is k/d and None where nothing is sent; ``options`` are whatever else the task wants to know.

    A scheme may end in the kind of its values: ``"rand-k int8"``.

    >>> setting = Setting("kmeans", "kmeans", "digits", "rand-k", share=0.1, split="iid", nodes=40, rounds=20)
    >>> setting.label
    'kmeans · kmeans · digits iid · 40 nodes · rand-k · k/d = 0.1 · seed 0'
    >>> Setting.from_json(setting.canonical) == setting
    True
    """

    figure: str
    task: str
    data: str
    scheme: str
    share: float | None = None
    seed: int = 0
    rounds: int = 1
    split: str = ""
    nodes: int = 0
    options: tuple[tuple[str, Option], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    @property
    def canonical(self) -> str:
        """All of it as JSON, the same text for equal settings."""
        return _canonical({f.name: getattr(self, f.name) for f in fields(self)})

    @property
    def run_text(self) -> str:
        """The same without the figure: what the numbers depend on."""
        return _canonical({f.name: getattr(self, f.name) for f in fields(self) if f.name != "figure"})

    @property
    def key(self) -> str:
        """A hash of all but the figure: two figures that show the same run share it."""
        return hashlib.blake2b(self.run_text.encode(), digest_size=16).hexdigest()

    @property
    def label(self) -> str:
        """For people."""
        where = f"{self.data} {self.split}".strip()
        nodes = f"{self.nodes} nodes" if self.nodes else ""
        share = "" if self.share is None else f"k/d = {self.share:g}"
        more = ", ".join(f"{name} = {value}" for name, value in self.options)
        parts = (self.figure, self.task, where, nodes, self.scheme, share, more, f"seed {self.seed}")
        return " · ".join(part for part in parts if part)

    @property
    def columns(self) -> Row:
        """What identifies its rows in a table."""
        names = ("figure", "task", "data", "split", "nodes", "share", "scheme", "seed")
        own: Row = {name: getattr(self, name) for name in names}
        return {**own, "nodes": self.nodes or None, **dict(self.options)}

    def option(self, name: str, default: Option) -> Option:
        """The option of that name."""
        return dict(self.options).get(name, default)

    @staticmethod
    def from_json(text: str) -> Setting:
        """The setting whose ``canonical`` this is."""
        try:
            content: dict[str, Any] = json.loads(text)
            options = tuple((str(name), value) for name, value in content.pop("options"))
            return Setting(**content, options=options)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidInput(f"this is not a setting written by Setting.canonical: {error}") from None


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
