"""Rand-Proj-Spatial (Jiang, Sharma and Joshi, NeurIPS 2023): Rand-k-Spatial with random projections for coordinates.

Node i sends y_i = G_i x_i, k float32 values. With S = Σ_i G_iᵀG_i the server answers

    x̂ = (β̄/n) T(S)† Σ_i G_iᵀ y_i,    T(λ) = 1 + r(λ − 1) of the eigenvalues λ of S,

r = 0 being Rand-Proj, r = 1 Max, and r = (R2/R1)/(n − 1) the best. Written from the paper's formulas; β̄ and the error
are derived here (``docs/beyond.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.peers.projections import Projections
from sparsemean.wire.frame import HEADER_BYTES

ENOUGH = 1e-7
"""Residual of T(S) z = Σ G_iᵀ y_i, relative to the right-hand side, with which z is taken: that of float32 values."""
PATIENCE = 8
"""Iterations per coordinate after which z is taken as it is; Max at nk ≈ d, the hardest case, needs about one."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class RandProjSpatial:
    """The estimator, as a function of all vectors of a round; it has no wire format, and no server of its own.

    Vectors whose length is no power of two are padded with zeros up to the next one, d'. That costs no byte, since k
    values are sent all the same, but they are k of d' numbers and not of d: identical vectors, for one, are known
    exactly from nk = d' on, and a node that sends k = d values does not send all it knows.

    Parameters
    ----------
    k : int
        Values that a node sends, from 1 to d'.
    weighting : str or float, default "avg"
        "one", "max", "avg", that is R2/R1 = n/2, or the ratio R2/R1 itself, as in ``Spatial``.

    Examples
    --------
    >>> vectors = np.ones((4, 8))
    >>> RandProjSpatial(2, "max").estimate(vectors, np.random.default_rng(0)).round(3)
    array([1., 1., 1., 1., 1., 1., 1., 1.])
    """

    k: int
    weighting: str | float = "avg"

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InvalidInput(f"k is a number of values from 1 on, got {self.k}")

    @property
    def payload_bytes(self) -> int:
        """Bytes of a payload with the library's header; signs and rows follow from a seed, so they take none."""
        return HEADER_BYTES + 4 * self.k

    def r(self, nodes: int) -> float:
        """The slope of T: R2/R1 over n − 1, 0 for a single node."""
        if nodes == 1:
            return 0.0
        named = {"one": 0.0, "max": nodes - 1.0, "avg": nodes / 2.0}
        ratio = named.get(self.weighting, math.nan) if isinstance(self.weighting, str) else float(self.weighting)
        if not -1.0 < ratio <= (nodes - 1) * (1.0 + ROUNDING):
            raise InvalidInput(
                f'weighting is "one", "max", "avg" or R2/R1, which lies above -1 and is n - 1 = {nodes - 1} at most; '
                f"got {self.weighting!r}"
            )
        return min(ratio / (nodes - 1), 1.0)

    def estimate(
        self, vectors: npt.ArrayLike, rng: np.random.Generator, weights: npt.ArrayLike | None = None
    ) -> Doubles:
        """The mean of the rows of an (n, d) array, or their weighted mean.

        Parameters
        ----------
        vectors
            One row per node.
        rng
            Draws the projections.
        weights
            One number per node, by which the server multiplies what it sent.
        """
        given = np.asarray(vectors, np.float64)
        if given.ndim != 2 or given.size == 0:
            raise InvalidInput(f"vectors have shape (n, d), neither of them 0; got {given.shape}")
        nodes, dim = given.shape
        padded = padded_dim(dim)
        if self.k > padded:
            raise InvalidInput(f"k is at most {padded}, the length of the vectors up to a power of two; got {self.k}")
        projections = Projections.drawn(nodes, self.k, padded, rng)
        sent = projections.project(np.pad(given, ((0, 0), (0, padded - dim)))).astype(np.float32).astype(np.float64)
        if weights is not None:
            shares = np.asarray(weights, np.float64)
            sent *= (nodes * shares / shares.sum())[:, None]
        return self.decode(projections, sent)[:dim]

    def decode(self, projections: Projections, sent: Doubles) -> Doubles:
        """The estimate, of d' coordinates, from what all nodes sent, shape (n, k)."""
        nodes, dim = projections.signs.shape
        r = self.r(nodes)
        mean: Doubles = unbiased_scale(nodes, self.k / dim, r) / nodes * _solved(projections, r, projections.back(sent))
        return mean


def padded_dim(dim: int) -> int:
    """The next power of two.

    >>> padded_dim(89), padded_dim(128)
    (128, 128)
    """
    return 1 << (dim - 1).bit_length()


def unbiased_scale(nodes: int, p: float, r: float) -> float:
    """β̄, with which the estimate is unbiased, in the limit of long vectors.

    E[T(S)† G_iᵀG_i] is a multiple of the identity, so β̄ = nd/E[Σ λ/T(λ)] over the eigenvalues λ > 0 of S. They
    follow the free binomial law as d grows, for which β̄ is the larger root of

        β² − (1/p + nr) β + (r/p)(1 + (n − 1)r) = 0.

    It is exact for r = 0 and n = 1, where it is 1/p, and for p = 1, where it is T(n). Otherwise it is too small, and
    the estimate too short, by 1.3/d of itself at most in all cases tried (two nodes that send half of what they know),
    mostly by less than 0.3/d (``scripts/measure_rand_proj.py scale``).

    Parameters
    ----------
    nodes
        n.
    p
        k/d.
    r
        The slope of T.

    Examples
    --------
    >>> unbiased_scale(10, 0.1, 0.0), unbiased_scale(10, 0.05, 1.0), unbiased_scale(10, 1.0, 0.5)
    (10.0, 20.0, 5.5)
    """
    half = (1.0 / p + nodes * r) / 2.0
    return half + math.sqrt(max(half * half - r / p * (1.0 + (nodes - 1) * r), 0.0))


def relative_error(nodes: int, p: float, r: float, true_r: float) -> float:
    """E‖x̂ − x̄‖² over the mean of ‖x_i‖², in the limit of long vectors: (β̄ + β̄′(r)(r* − r) − 1 − (n − 1)r*)/n.

    Parameters
    ----------
    nodes, p, r
        As in ``unbiased_scale``.
    true_r
        r* = (R2/R1)/(n − 1) of the vectors.

    Examples
    --------
    >>> [round(relative_error(10, 0.1, r, r), 3) for r in (0.0, 0.5, 0.9)]
    [0.9, 0.736, 0.329]
    """
    scale = unbiased_scale(nodes, p, r)
    wrong = true_r - r
    if wrong:
        bend = 2.0 * scale - 1.0 / p - nodes * r
        slope = nodes * scale - (1.0 + 2.0 * (nodes - 1) * r) / p
        wrong *= slope / bend if bend else math.copysign(math.inf, slope)
    return (scale + wrong - 1.0 - (nodes - 1) * true_r) / nodes


def _solved(projections: Projections, r: float, target: Doubles) -> Doubles:
    """T(S)† of the target by conjugate gradients, O(nd log d) an iteration; S itself is never formed."""

    def weighed(vector: Doubles) -> Doubles:
        return (1.0 - r) * vector + r * projections.back(projections.project(vector))

    if r == 0.0:
        return target
    solution = np.zeros_like(target)
    residual, direction = target.copy(), target.copy()
    size = first = float(residual @ residual)
    for _ in range(PATIENCE * target.size):
        if size <= ENOUGH**2 * first:
            break
        image = weighed(direction)
        step = size / float(direction @ image)
        solution += step * direction
        residual -= step * image
        size, before = float(residual @ residual), size
        direction = residual + size / before * direction
    return solution
