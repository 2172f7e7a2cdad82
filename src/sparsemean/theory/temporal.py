"""The exact error of estimators whose only correction is a memory, or a sample all nodes share."""

from __future__ import annotations

from .arguments import energy as sum_of_squares
from .arguments import unit_share
from .spatial import rand_k_mse


def temporal_mse(energy: float, n: int, share: float) -> float:
    """(1/n²)(1/p − 1) Σ_i ‖x_i − b_i‖² for any b fixed before the round (Theorem 3).

    ``energy`` is the sum over the nodes of the squared distance to what the server expected.

    >>> temporal_mse(1.0, 10, 0.5)
    0.01
    """
    return rand_k_mse(sum_of_squares(energy, "energy"), n, share)


def shared_sample_mse(mean_energy: float, share: float) -> float:
    """(1/p − 1)‖mean‖² when all nodes send the same coordinates: more nodes then do not help.

    >>> shared_sample_mse(1.0, 0.25)
    3.0
    """
    p = unit_share(share)
    return (1.0 - p) / p * sum_of_squares(mean_energy, "mean_energy")
