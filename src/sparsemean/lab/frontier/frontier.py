"""Error against bytes of all schemes, and the two fronts: of the unbiased schemes, and of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from sparsemean.lab.compare.budget import ORACLE
from sparsemean.lab.compare.result import Result
from sparsemean.lab.frontier.pareto import pareto_front
from sparsemean.lab.peers import PEERS
from sparsemean.lab.tables import TableRow


@dataclass(frozen=True)
class Point:
    """One scheme with the k that a budget allows it.

    Parameters
    ----------
    scheme
        Its name and the kind of its values: ``"rand-k float32"``.
    budget
        Bytes per node and round that it was made for; None where whole vectors are sent.
    k
        How many coordinates a payload has; None where that changes (``auto``).
    bytes_per_node
        Bytes per node and round as they were sent, header included.
    nmse, nmse_se
        The measured relative error, and its standard error over seeds.
    exact
        The error predicted by the formulas; None where there is none.
    unbiased, node_state, diverges
        As in ``compare.Result``.
    """

    scheme: str
    budget: int | None
    k: int | None
    bytes_per_node: float
    nmse: float
    nmse_se: float
    exact: float | None
    unbiased: bool
    node_state: bool
    diverges: bool

    @property
    def told(self) -> bool:
        """Whether it was told the true correlation, which nobody knows."""
        return self.scheme.partition(" ")[0] == ORACLE

    @property
    def peer(self) -> bool:
        """Whether it is of an estimator that the library has no server for."""
        return self.scheme.partition(" ")[0] in PEERS

    def row(self) -> TableRow:
        """As a row of a table, from which ``Point(**row)`` makes it again."""
        return asdict(self)

    @staticmethod
    def of(result: Result, budget: int | None) -> Point:
        """The point of a result."""
        same = ("scheme", "bytes_per_node", "nmse", "nmse_se", "exact", "unbiased", "node_state", "diverges")
        return Point(**{name: getattr(result, name) for name in same}, budget=budget, k=result.k)


@dataclass(frozen=True)
class Frontier:
    """All points of a sweep.

    Parameters
    ----------
    points
        In the order in which they were played.
    zero_error
        The relative error of answering 0: points above it are useless.
    nodes, dim, rounds, seeds
        What was played, and how often.
    budgets
        Bytes per node and round.
    left_out
        Names of the schemes that no budget has room for.
    complete
        Whether the sweep ran to its end.
    not_played
        What takes too long on these vectors, as a sentence without a full stop; empty where nothing does.
    """

    points: tuple[Point, ...]
    zero_error: float
    nodes: int
    dim: int
    rounds: int
    seeds: int
    budgets: tuple[int, ...]
    left_out: tuple[str, ...] = ()
    complete: bool = True
    not_played: str = ""

    @cached_property
    def unbiased_front(self) -> tuple[Point, ...]:
        """The main front, by ascending bytes: of schemes whose errors cancel over rounds."""
        return self._front(lambda point: point.unbiased)

    @cached_property
    def front(self) -> tuple[Point, ...]:
        """The front of all schemes, biased ones included."""
        return self._front(lambda point: True)

    @cached_property
    def marked(self) -> tuple[tuple[Point, ...], ...]:
        """The points on either front by ascending bytes; those with the same bytes and error are one entry.

        Unbiased ones stand first in an entry, then what was played first, as the dense means were.
        """
        places = {point: place for place, point in enumerate(self.points)}
        ties: dict[tuple[float, float], list[Point]] = {}
        for point in sorted({*self.unbiased_front, *self.front}, key=lambda each: (not each.unbiased, places[each])):
            ties.setdefault((point.bytes_per_node, point.nmse), []).append(point)
        return tuple(tuple(ties[cost]) for cost in sorted(ties, key=lambda cost: (cost[0], -cost[1])))

    def _front(self, chosen: Callable[[Point], bool]) -> tuple[Point, ...]:
        able = [each for each in self.points if chosen(each) and not (each.diverges or each.told or each.peer)]
        return tuple(able[i] for i in pareto_front([(point.bytes_per_node, point.nmse) for point in able]))

    def to_json(self) -> dict[str, Any]:
        """As plain data; every point says on which fronts it is."""
        main, of_all = set(self.unbiased_front), set(self.front)
        points = [
            {
                **asdict(point),
                "told": point.told,
                "peer": point.peer,
                "on_unbiased_front": point in main,
                "on_front": point in of_all,
            }
            for point in self.points
        ]
        return {**asdict(self), "points": points}
