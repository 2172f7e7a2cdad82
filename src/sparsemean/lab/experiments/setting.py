"""One run of one experiment, as a value: what is run, on which data, with which scheme and seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from sparsemean.errors import InvalidInput, SparseMeanError
from sparsemean.lab.tables import TableRow

Option: TypeAlias = int | float | str

EXACT = "exact"
"""In place of a scheme: the server is given the true mean."""


class SettingFailed(SparseMeanError):
    """A setting could not be run; the message names it."""


@dataclass(frozen=True)
class Setting:
    """What one run depends on, and the figure that shows it.

    Parameters
    ----------
    figure
        Name of the figure. The numbers do not depend on it.
    task, data
        Names of the task and of its data set.
    scheme
        Name of the scheme, which may end in the kind of its values: ``"rand-k int8"``; ``"exact"`` for the true mean.
    share
        k/d; None where nothing is sent.
    seed
        Of the split of the data, of the start and of the samples.
    rounds
        Number of rounds.
    split
        How rows are dealt to the nodes: ``"iid"`` or ``"non-iid"``; empty where there is nothing to split.
    nodes
        Number of nodes; 0 where the task decides.
    options
        Whatever else the task or the measure takes, as (name, value).

    Examples
    --------
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
        """All fields as JSON, the same text for equal settings."""
        return _canonical({f.name: getattr(self, f.name) for f in fields(self)})

    @property
    def run_text(self) -> str:
        """The same without the figure: all that the numbers depend on."""
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
    def columns(self) -> TableRow:
        """What identifies its rows in a table."""
        names = ("figure", "task", "data", "split", "nodes", "share", "scheme", "seed")
        own: TableRow = {name: getattr(self, name) for name in names}
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
