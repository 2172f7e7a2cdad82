"""Estimators of other papers that do not fit the library's server, to compare with."""

from sparsemean.lab.peers.projections import Projections
from sparsemean.lab.peers.rand_proj_spatial import RandProjSpatial, relative_error, unbiased_scale

PEERS = ("rand-proj-spatial-avg",)
"""Names under which ``sparsemean frontier`` plays them."""

__all__ = ["PEERS", "Projections", "RandProjSpatial", "relative_error", "unbiased_scale"]
