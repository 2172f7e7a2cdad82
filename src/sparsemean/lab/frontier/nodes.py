"""Error against bytes by what a node may know: power iteration on a set of pictures, whose vectors follow the mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from sparsemean._names import Knowledge
from sparsemean.lab.frontier.pareto import pareto_front
from sparsemean.lab.node_schemes import BY_KNOWLEDGE, EDEN
from sparsemean.lab.numbers import ROUNDING
from sparsemean.lab.tables import TableRow

NODES = 100
SHOWN = (3, 10, 40)
"""Rounds whose errors are told, where there are as many; else the last."""
TASK = "power-iteration"


@dataclass(frozen=True)
class NodePoint:
    """One scheme at one budget.

    Parameters
    ----------
    node
        What nodes know that can run it.
    scheme
        Its name, as in ``node_schemes``.
    budget
        Bytes per node and round, header included, that no payload exceeds.
    bytes_per_node
        As they were sent, on average.
    errors, errors_se
        ‖estimate − mean‖² of each round, and its standard error over seeds.
    """

    node: Knowledge
    scheme: str
    budget: int
    bytes_per_node: float
    errors: tuple[float, ...]
    errors_se: tuple[float, ...]

    def error(self, round: int) -> float:
        """The error of a round, counted from 1."""
        return self.errors[round - 1]


@dataclass(frozen=True, eq=False)
class NodeFrontier:
    """All points of a sweep, and the rows that they are made of.

    Parameters
    ----------
    points
        In the order of the sweep.
    data
        Name of the set of pictures.
    dim, rounds, seeds
        What was played, and how often; 100 nodes, dealt at random.
    budgets
        Bytes per node and round.
    complete
        Whether the sweep ran to its end.
    rows
        One for each round, seed, scheme and budget.
    """

    points: tuple[NodePoint, ...]
    data: str
    dim: int
    rounds: int
    seeds: int
    budgets: tuple[int, ...]
    complete: bool
    rows: tuple[TableRow, ...]

    @cached_property
    def shown(self) -> tuple[int, ...]:
        """The rounds whose errors are told, counted from 1."""
        return tuple(dict.fromkeys(min(round, self.rounds) for round in SHOWN))

    @cached_property
    def fronts(self) -> Mapping[Knowledge, tuple[NodePoint, ...]]:
        """For each kind of node the points in the last round shown that no other beats which it could run."""
        return {node: self._front(node) for node in BY_KNOWLEDGE}

    def _front(self, node: Knowledge) -> tuple[NodePoint, ...]:
        able = [point for point in self.points if point.node in ("stateless", node)]
        return tuple(able[i] for i in pareto_front([(p.budget, self._told(p, self.shown[-1])) for p in able]))

    def gain(self, point: NodePoint, round: int) -> float:
        """How many times lower its error is than that of whole vectors in as many bits as fit; NaN without those.

        Errors below ``ROUNDING`` count as that.
        """
        whole = next((p for p in self.points if (p.scheme, p.budget) == (EDEN, point.budget)), None)
        return math.nan if whole is None else self._told(whole, round) / self._told(point, round)

    def _told(self, point: NodePoint, round: int) -> float:
        return max(point.error(round), ROUNDING)

    def to_json(self) -> dict[str, Any]:
        """As plain data; every point says whether it is on the front of its kind of node."""
        points = [
            {
                **asdict(point),
                "on_front": point in self.fronts[point.node],
                "times_below_eden": {str(round): self.gain(point, round) for round in self.shown},
            }
            for point in self.points
        ]
        told = {name: getattr(self, name) for name in ("data", "dim", "rounds", "seeds", "budgets", "complete")}
        return {"task": TASK, "nodes": NODES, **told, "points": points}
