"""How good the plain mean of a round of an epoch is, where nodes are past the epoch's first draw.

Given the past nodes draw independently, and node i sends a coordinate of class c (U or S) with probability π_c. So

    W²·MSE = Σ_i Σ_c (1/π_c − 1) w_i² ‖x_i − b_i‖²_c,

without cross terms between nodes. With y = w (value − expectation)/π and few-bit values of variance σ², it is estimated
without bias by Σ_c [(1 − π_c) Σy² + π_c Σ w²σ²/π²] over what was sent. Nodes of another k that are in their first draw
add, by the same formula with π = k/d, the cross terms (κ − 1) R2 of a balanced draw.

Where all nodes are past their first draw, how certain that is follows from sums over them too (``LaterSpread``). With
V_c the variance of Σy² over what is sent of class c, that of the estimate is Σ_c (1 − π_c)² V_c/W⁴. The actual error
is Σ_j (Σ_i e_ij)², e being (1 − π) y where a coordinate was sent and −πy where not. So what its terms i = l exceed
their estimate by varies as −π Σy² does; the terms i ≠ l have mean 0, and are uncorrelated with those and, up to parts
of 1/|c|, with each other:

    W⁴·Var(actual − estimate) = Σ_c π_c² V_c + 2 Σ_j Σ_{i≠l} Var(e_ij) Var(e_lj).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.decoding.quality import Quality, finite
from sparsemean.decoding.summary import Summary
from sparsemean.results import Correlation
from sparsemean.sampling import Clock
from sparsemean.theory.forms import inverse
from sparsemean.theory.intervals import log_interval

FEW = 10
"""Values that must come, for an interval of the actual error to be stated."""


class Energy(NamedTuple):
    """A row of a summary's squares: what was sent of one class of coordinates.

    Attributes
    ----------
    row : int
        Which of ``Run.class_shares``.
    probability : float
        π.
    nodes : int
        The row of the nodes that sent it.
    """

    row: int
    probability: float
    nodes: int


def later_rows(encoder: int, encoders: int) -> tuple[int, int]:
    """The rows of ``Run.class_shares`` for an encoder's nodes past their first draw: of U, and of S."""
    return 2 * encoders + encoder, 3 * encoders + encoder


def energies(summary: Summary, clocks: Sequence[Clock]) -> Iterator[Energy]:
    """The rows of those who came; ``clocks`` are those of the run's encoders."""
    for s, now in enumerate(clocks):
        of_u, of_s = later_rows(s, len(clocks))
        for row in (s, len(clocks) + s):
            if summary.class_nodes[row].any():
                yield Energy(row, now.k / now.dim, row)
        if summary.class_nodes[of_u].any():
            for row, (sent, of) in zip((of_u, of_s), now.probabilities, strict=True):
                yield Energy(row, sent / of, of_u)


@np.errstate(over="ignore", invalid="ignore")
def epoch_quality(summary: Summary, clocks: Sequence[Clock], weight: Doubles) -> Quality:
    """Quality of the plain mean; ``weight`` is the total each block's mean is divided by."""
    alive, moments = summary.weight > 0, summary.moments
    rows = list(energies(summary, clocks))
    if moments is None or not rows:
        return Quality()
    moments, weight = moments.where(alive), weight[alive]
    here, p = [each.row for each in rows], np.array([each.probability for each in rows])[:, None]
    squares, noise = summary.class_squares[here][:, alive], summary.class_noise[here][:, alive]
    terms, r2 = np.sum((1.0 - p) * squares + p * noise, axis=0), np.asarray(moments.r2)
    bound = False
    for i, (row, share, _) in enumerate(rows):
        slots = int(summary.class_slots[row])
        if not slots:
            continue
        nodes = summary.class_nodes[row][alive].tolist()
        factor = np.array([theory.CountLaw(n, share, slots).pair_factor if n else 1.0 for n in nodes])
        pairs = summary.products[row, row][alive] - squares[i]
        met = np.divide(pairs, factor, out=np.full(factor.shape, math.nan), where=factor > 0)
        bound = bound or bool(np.any(factor == 0))
        # Where nodes never meet, R2 is −R1 at worst.
        terms = terms + np.where(factor > 0, (factor - 1.0) * met, share * (squares[i] - noise[i]))
        r2 = r2 + met - pairs
    norm = (summary.nodes[alive] / summary.weight[alive]) ** 2  # from w_i x_i to y_i = n w_i x_i / Σw
    correlation = None
    if not bound:
        r1 = float(np.sum(norm * np.sum(p * (squares - noise), axis=0)))
        spread = float(np.sqrt(np.sum(norm**2 * theory.r2_variance(moments, float(p.min())))))
        correlation = Correlation(r1, float(np.sum(norm * r2)), spread)
    feedback = (1.0 / float(p.min()) - 1.0) / max(1, int(summary.nodes.max()))
    error, rounding = float(np.sum(terms / weight**2)), float(np.sum(noise / weight**2))
    found = Quality(
        error=finite(error), rounding=finite(rounding), correlation=correlation, feedback=feedback, bound=bound
    )
    if found.error is None or len(summary.later) == 0 or any(each.row < 2 * len(clocks) for each in rows):
        return found
    variances = later_spread(summary, rows, weight)
    found = replace(found, error_se=finite(math.sqrt(variances.of_error)), actual=error)
    values = sum(clocks[row % len(clocks)].k * int(summary.class_nodes[row].max()) for row, _, _ in rows)
    if not (variances.known and values >= FEW and error > 0.0):
        return found
    return replace(found, interval=log_interval(error, variances.of_gap, variances.degrees))


class Spread(NamedTuple):
    """Variances of the estimated error and of the actual error about it, and the degrees of freedom of the latter."""

    of_error: float
    of_gap: float
    degrees: float

    @property
    def known(self) -> bool:
        """Whether no power of a value has overflown."""
        return math.isfinite(self.of_error + self.of_gap)


def later_spread(summary: Summary, rows: Sequence[Energy], weight: Doubles) -> Spread:
    """How certain the error of a round is in which all nodes are past their first draw; ``weight`` as above."""
    later = summary.later[:, summary.weight > 0] / weight**4
    of_class, pairs, fourths = later[:-2], later[-2], later[-1] / weight**4
    of_error = of_gap = 0.0
    for row, p, _ in rows:
        of_sum = (1.0 - p) * float(np.sum(of_class[row]))  # V_c
        of_error, of_gap = of_error + (1.0 - p) ** 2 * of_sum, of_gap + p * p * of_sum
    met = max(float(pairs.sum()), 0.0)
    # The second sum rests on the coordinates whose variances are largest.
    degrees = 2.0 * met**2 * float(inverse(fourths.sum())) or math.inf
    return Spread(of_error, of_gap + 2.0 * met, degrees)
