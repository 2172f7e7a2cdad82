"""Inner loops: each a NumPy function, and a numba twin of the same signature that serves where numba is installed."""

from sparsemean.kernels.add_scaled import add_scaled
from sparsemean.kernels.carry import Changes, Columns, carry, put
from sparsemean.kernels.fit_sums import Fit, fit_sums
from sparsemean.kernels.fold import Batch, Blend, Totals, fold, threads_for
from sparsemean.kernels.gather import gather, gathered
from sparsemean.kernels.largest import largest
from sparsemean.kernels.parallel_map import cores, parallel_map
from sparsemean.kernels.power_sums import power_sums
from sparsemean.kernels.restore import restore
from sparsemean.kernels.reweigh import reweigh
from sparsemean.kernels.row_check import check_of
from sparsemean.kernels.sample import Sample, draw
from sparsemean.kernels.scatter import scatter

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
