"""Error against bytes for all schemes on given vectors: a sweep over byte budgets, and its Pareto fronts."""

from sparsemean.lab.frontier.frontier import Frontier, Point
from sparsemean.lab.frontier.kept import KeptPoints
from sparsemean.lab.frontier.pareto import pareto_front
from sparsemean.lab.frontier.sweep import Sweep, default_budgets
from sparsemean.lab.frontier.trade import trade

__all__ = ["Frontier", "KeptPoints", "Point", "Sweep", "default_budgets", "pareto_front", "trade"]
