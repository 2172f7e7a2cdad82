"""A sweep over byte budgets by what a node may know, in worker processes, finished settings kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets import PICTURES
from sparsemean.lab.experiments.catalogue.frontier import WHOLE_BITS, node_settings, whole_bytes
from sparsemean.lab.experiments.checkpoints import Checkpoints
from sparsemean.lab.experiments.cost import longest_first
from sparsemean.lab.experiments.reproduction import affordable_jobs, check_data
from sparsemean.lab.experiments.setting import Setting, SettingFailed
from sparsemean.lab.experiments.setting_rows import labelled
from sparsemean.lab.experiments.worker_pool import run_all
from sparsemean.lab.frontier.kept import claimed
from sparsemean.lab.frontier.nodes import NODES, NodeFrontier, NodePoint
from sparsemean.lab.node_schemes import BY_KNOWLEDGE, node_scheme
from sparsemean.lab.tables import TableRow

ROUNDS = 41


@dataclass(frozen=True, eq=False)
class NodeSweep:
    """What is to be played: every scheme of every kind of node at every budget.

    Parameters
    ----------
    data
        Name of a set of pictures, ``datasets.PICTURES``; they are dealt to 100 nodes at random.
    budgets
        Bytes per node and round, header included; by default those of whole vectors with 1, 2, 3 and 4 bits a value.
    rounds
        How many.
    seeds
        How often each is played: other nodes, another start and other draws.
    """

    data: str
    budgets: Sequence[int] = ()
    rounds: int = ROUNDS
    seeds: int = 3

    @property
    def dim(self) -> int:
        """How many numbers a picture has."""
        return PICTURES[self.data]

    @cached_property
    def limits(self) -> tuple[int, ...]:
        """The budgets in ascending order."""
        return tuple(sorted({*(self.budgets or (whole_bytes(self.dim, values) for values in WHOLE_BITS))}))

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """One for each point and seed."""
        for budget in self.limits:
            for schemes in BY_KNOWLEDGE.values():
                for scheme in schemes:
                    node_scheme(scheme, self.dim, budget)  # refuses what does not fit
        return tuple(
            setting
            for seed in range(self.seeds)
            for setting in node_settings(self.data, NODES, self.rounds, self.limits, seed)
        )

    def played(
        self,
        keep: Path | None = None,
        jobs: int | None = None,
        progress: Callable[[int, int, str], None] = lambda done, total, label: None,
    ) -> Generator[tuple[Setting, list[TableRow]], None, None]:
        """The rows of each setting once they are there, first what is kept from before; closing it ends all processes.

        Parameters
        ----------
        keep
            Folder where finished settings are kept; without it nothing is.
        jobs
            Number of processes; as many as cores and memory allow by default.
        progress
            Called with (done, total, label) after every setting.
        """
        kept = None if keep is None else self._kept(keep)
        before = {setting: rows for setting in self.settings if kept and (rows := kept.read(setting)) is not None}
        total = len(self.settings)
        progress(len(before), total, "reading")
        yield from before.items()
        missing = longest_first(setting for setting in self.settings if setting not in before)
        check_data(missing, None)
        with closing(run_all(missing, jobs or affordable_jobs(missing), None)) as outcomes:
            for done, outcome in enumerate(outcomes, start=len(before) + 1):
                if outcome.error is not None:
                    raise SettingFailed(outcome.error)
                if kept:
                    kept.write(outcome.setting, outcome.rows)
                progress(done, total, f"{outcome.setting.scheme}, {outcome.setting.option('bytes', 0)} bytes")
                yield outcome.setting, outcome.rows

    def _kept(self, folder: Path) -> Checkpoints:
        if claimed(folder, {"pictures": self.data}).get("pictures") != self.data:
            raise InvalidInput(f"{folder} keeps points of something else than {self.data}; name another folder")
        return Checkpoints(folder)

    def frontier(self, found: Mapping[Setting, list[TableRow]]) -> NodeFrontier:
        """The points of which all seeds are there, and their fronts."""
        points, rows = [], list[TableRow]()
        known = {scheme: node for node, schemes in BY_KNOWLEDGE.items() for scheme in schemes}
        groups: dict[tuple[int, str], list[Setting]] = {}
        for setting in self.settings:
            groups.setdefault((int(setting.option("bytes", 0)), setting.scheme), []).append(setting)
        for (budget, scheme), settings in groups.items():
            if not all(setting in found for setting in settings):
                continue
            errors = np.array([[row["mse"] for row in found[setting]] for setting in settings], np.float64)
            sent = np.array([[row["bytes_per_node"] for row in found[setting]] for setting in settings], np.float64)
            spread = errors.std(axis=0, ddof=1) / math.sqrt(self.seeds) if self.seeds > 1 else errors[0] * math.nan
            means = tuple(errors.mean(axis=0).tolist()), tuple(spread.tolist())
            points.append(NodePoint(known[scheme], scheme, budget, float(np.nanmean(sent)), *means))
            rows += [row for setting in settings for row in labelled(setting, found[setting])]
        return NodeFrontier(
            points=tuple(points),
            data=self.data,
            dim=self.dim,
            rounds=self.rounds,
            seeds=self.seeds,
            budgets=self.limits,
            complete=len(found) == len(self.settings),
            rows=tuple(rows),
        )
