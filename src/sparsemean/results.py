"""What the server hands back: a receipt for each payload, an estimate for each round."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles


@dataclass(frozen=True, slots=True)
class Receipt:
    """The server has accepted this payload, so the node may move its state on. Plain text and numbers, fit for JSON.

    Attributes
    ----------
    node : str
        Who sent it.
    round : int
        The round it counts in.
    digest : str
        Of its bytes, in hexadecimal.
    """

    node: str
    round: int
    digest: str


@dataclass(frozen=True, slots=True)
class Correlation:
    """R1 = Σ‖y_i‖² and R2 = ‖Σ y_i‖² − R1, estimated from what arrived.

    Attributes
    ----------
    r1, r2 : float
        R1 and R2; y_i is the weighted innovation of node i, x_i less what the memory expected of it.
    r2_se : float
        Standard error of R2.
    """

    r1: float
    r2: float
    r2_se: float

    @property
    def ratio(self) -> float:
        """R2/R1, what Spatial's T wants to know; it can leave [−1, n − 1] by chance. 0 where nothing arrived."""
        return self.r2 / self.r1 if self.r1 > 0 else 0.0

    @property
    def ratio_se(self) -> float:
        """Standard error of the ratio, taking R1 as known (its own error is far smaller)."""
        return self.r2_se / self.r1 if self.r1 > 0 else math.inf


@dataclass(frozen=True, slots=True, repr=False)
class Estimate:
    """The mean of a round and how good it is. Printed, it is one line, however long the mean and the list of nodes.

    The truth that ``error`` refers to is the mean of the nodes in the round; with ``missing="carry"``, of these and of
    what is remembered of the absent ones, since nobody can tell how far those have moved.

    Attributes
    ----------
    mean : (d,) array
        The estimate.
    round : int
    nodes : tuple of str
        Who came, in order of acceptance.
    counts : (d,) array
        How many nodes sent each coordinate.
    bytes : int
        What their payloads took on the wire.
    error : float or None
        Estimate of the *expected* squared error E‖mean − truth‖² from what arrived, without bias, so that it can be
        negative. With a decoder that adapts to the round itself (``Spatial("estimated")``) it is a little low. None
        where no formula holds (biased or pre-scaled encoders, ``Ratio``).
    error_se : float or None
        Standard error of ``error``, as an estimate of the expected squared error: ``error`` ± ``error_se``. How far the
        round itself is off, ``actual_error_interval`` tells. None where it is not known: for
        bounds, where a single value was sent, for balanced draws of nodes with several k, and in rounds of epochs in
        which only some nodes are in the first draw.
    correlation : Correlation or None
        R1, R2 and their ratio, estimated from what arrived.
    rounding : float or None
        The part of ``error`` that few-bit values add.
    error_is_bound : bool
        Whether ``error`` estimates an upper bound of the expected squared error and not the error itself: with a
        balanced draw of np ≤ 1 no two nodes send the same coordinate, so that nobody can tell how similar they are.
        The bound is (1/p) R1/n², far too large for similar nodes. Likewise where few-bit values have a common scale,
        and rounding is over 5 % of the error: nodes share out their dither, and the more alike they are, the less of
        ``rounding`` is left in the mean.
    actual_error : float or None
        Prediction of the *actual* squared error ‖mean − truth‖² of this round, given how many nodes sent each
        coordinate; at least 0. None with nodes of several k (but for later rounds of an epoch), for bounds, and where
        nothing came of some block.
    actual_error_interval : (float, float) or None
        A 95 % interval for the actual squared error. None likewise, and where fewer than about ten coordinates were
        expected from two nodes or more (but for a single node), where a single value was sent, and where the error is
        that of rounding.
    """

    mean: Doubles
    round: int
    nodes: tuple[str, ...]
    counts: npt.NDArray[np.int32]
    bytes: int
    error: float | None
    error_se: float | None
    correlation: Correlation | None
    rounding: float | None = None
    error_is_bound: bool = False
    actual_error: float | None = None
    actual_error_interval: tuple[float, float] | None = None

    @property
    def relative_error(self) -> float | None:
        """``error`` relative to the squared norm of the truth, which is estimated by ‖mean‖² − ``error``.

        The latter is unbiased where the estimate is, since E‖mean‖² = ‖truth‖² + E‖mean − truth‖². A negative ``error``
        counts as 0. None where ``error`` is None or a bound, and where ‖mean‖² is not above it, so that the truth may
        as well be 0.
        """
        if self.error is None or self.error_is_bound:
            return None
        norm = float(np.dot(self.mean, self.mean)) - self.error
        return max(self.error, 0.0) / norm if 0.0 < norm < math.inf else None

    def __repr__(self) -> str:
        error = "unknown" if self.error is None else f"{'at most about ' * self.error_is_bound}{self.error:.4g}"
        if self.error is not None and self.error_se is not None:
            error += f" ± {self.error_se:.2g}"
        if self.actual_error_interval is not None:
            error += ", actual {:.3g} to {:.3g}".format(*self.actual_error_interval)
        return (
            f"Estimate(round={self.round}, mean=array of {len(self.mean)}, nodes={len(self.nodes)}, "
            f"bytes={self.bytes}, error={error})"
        )
