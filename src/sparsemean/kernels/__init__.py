"""Inner loops: each a NumPy function, and a numba twin of the same signature that serves where numba is installed."""

from sparsemean.kernels.scatter import scatter

__all__ = ["scatter"]
