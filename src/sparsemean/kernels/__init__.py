"""Inner loops, each a pair: a readable NumPy function, and a numba twin that is called where numba is installed."""

from sparsemean.kernels.arrays import add_scaled, largest, power_sums, reweigh, scatter
from sparsemean.kernels.carry import Changes, Columns, carry, check_of, put
from sparsemean.kernels.fit_sums import Fit, fit_sums
from sparsemean.kernels.fold import Batch, Blend, Totals, fold, threads_for
from sparsemean.kernels.parallel_map import cores, parallel_map
from sparsemean.kernels.restore import restore
from sparsemean.kernels.sample import Sample, draw, gather, gathered

__all__ = [
    "Batch",
    "Blend",
    "Changes",
    "Columns",
    "Fit",
    "Sample",
    "Totals",
    "add_scaled",
    "carry",
    "check_of",
    "cores",
    "draw",
    "fit_sums",
    "fold",
    "gather",
    "gathered",
    "largest",
    "parallel_map",
    "power_sums",
    "put",
    "restore",
    "reweigh",
    "scatter",
    "threads_for",
]
