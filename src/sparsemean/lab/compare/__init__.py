"""Compare all schemes on given vectors at a given budget, through the real bytes, and advise one."""

from sparsemean.lab.compare.advice import advice
from sparsemean.lab.compare.budget import Budget, scheme_within
from sparsemean.lab.compare.comparison import Comparison
from sparsemean.lab.compare.contest import Contest, compare, entries_within
from sparsemean.lab.compare.correlation import VectorCorrelation, vector_correlation
from sparsemean.lab.compare.given_vectors import GivenVectors
from sparsemean.lab.compare.playing import played
from sparsemean.lab.compare.result import Entry, Result

__all__ = [
    "Budget",
    "Comparison",
    "Contest",
    "Entry",
    "GivenVectors",
    "Result",
    "VectorCorrelation",
    "advice",
    "compare",
    "entries_within",
    "played",
    "scheme_within",
    "vector_correlation",
]
