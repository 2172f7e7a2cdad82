"""Compare all schemes on given vectors at a given budget, through the real bytes, and advise one."""

from sparsemean.lab.compare.advice import advice
from sparsemean.lab.compare.budget import Budget, scheme_within
from sparsemean.lab.compare.comparison import Comparison, Result, compare
from sparsemean.lab.compare.correlation import VectorCorrelation, vector_correlation

__all__ = [
    "Budget",
    "Comparison",
    "Result",
    "VectorCorrelation",
    "advice",
    "compare",
    "scheme_within",
    "vector_correlation",
]
