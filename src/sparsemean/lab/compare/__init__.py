"""Which scheme for these vectors at this budget? Every scheme through the real bytes, and one sentence of advice."""

from sparsemean.lab.compare.advice import advice
from sparsemean.lab.compare.budget import Budget, scheme_within
from sparsemean.lab.compare.comparison import Comparison, Result, compare
from sparsemean.lab.compare.likeness import Likeness, likeness

__all__ = ["Budget", "Comparison", "Likeness", "Result", "advice", "compare", "likeness", "scheme_within"]
