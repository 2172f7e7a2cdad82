"""The paper's formulas, each once and exact: scales, errors, bounds, and the share a wanted error takes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from .budget import share_for_error
from .convergence import distance_bound, learning_rate_limit
from .correlation import correlation, ratio_range
from .counts import CountLaw
from .dither import rank_covariance, shared_dither_bound, shared_dither_variance
from .eden import eden_error
from .estimated import Moments, error_bound, estimated_error, estimated_r1_r2, r2_variance, shrunk_correlation
from .mixed import meeting_shares, mixed_coefficients, mixed_correlation, mixed_feedback, mixed_gains, mixed_mse
from .proportional import sizes_for_weights
from .quantisers import qsgd_bound, rotated_bound, terngrad_bound
from .scaling import beta_bar, fill_gains, gains
from .spatial import constants, error_coefficients, feedback_factor, first_ratio, optimal_ratio, rand_k_mse, spatial_mse
from .temporal import shared_sample_mse, temporal_mse
from .weighting import FixedWeighting, Weighting, weights
from .within import within_coefficients

__all__ = [
    "CountLaw",
    "FixedWeighting",
    "Moments",
    "Weighting",
    "beta_bar",
    "constants",
    "correlation",
    "distance_bound",
    "eden_error",
    "error_bound",
    "error_coefficients",
    "estimated_error",
    "estimated_r1_r2",
    "feedback_factor",
    "fill_gains",
    "first_ratio",
    "gains",
    "learning_rate_limit",
    "meeting_shares",
    "mixed_coefficients",
    "mixed_correlation",
    "mixed_feedback",
    "mixed_gains",
    "mixed_mse",
    "optimal_ratio",
    "qsgd_bound",
    "r2_variance",
    "rand_k_mse",
    "rank_covariance",
    "ratio_range",
    "rotated_bound",
    "share_for_error",
    "shared_dither_bound",
    "shared_dither_variance",
    "shared_sample_mse",
    "shrunk_correlation",
    "sizes_for_weights",
    "spatial_mse",
    "temporal_mse",
    "terngrad_bound",
    "weights",
    "within_coefficients",
]


def __dir__() -> list[str]:
    """The formulas, and their types."""
    return sorted(__all__)


if not TYPE_CHECKING:  # or every name would seem to be there

    def __getattr__(name: str) -> object:
        """Former names, for programs written before."""
        if name == "shrunk_likeness":
            warnings.warn("theory.shrunk_likeness is now theory.shrunk_correlation", DeprecationWarning, stacklevel=2)
            return shrunk_correlation
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
