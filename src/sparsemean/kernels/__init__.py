"""Inner loops: each a NumPy function, and a numba twin of the same signature that serves where numba is installed."""

from sparsemean.kernels.fold import Batch, Totals, fold, threads_for
from sparsemean.kernels.gather import gather, gathered
from sparsemean.kernels.power_sums import power_sums
from sparsemean.kernels.restore import restore
from sparsemean.kernels.reweigh import reweigh
from sparsemean.kernels.sample import Sample, draw
from sparsemean.kernels.scatter import scatter

__all__ = [
    "Batch",
    "Sample",
    "Totals",
    "draw",
    "fold",
    "gather",
    "gathered",
    "power_sums",
    "restore",
    "reweigh",
    "scatter",
    "threads_for",
]
