"""How good the plain mean of a round of an epoch is, where nodes are past the epoch's first draw.

Given the past nodes draw independently, and node i sends a coordinate of class c (U or S) with probability π_c. So

    W²·MSE = Σ_i Σ_c (1/π_c − 1) w_i² ‖x_i − b_i‖²_c,

without cross terms between nodes. With y = w (value − expectation)/π and few-bit values of variance σ², it is estimated
without bias by Σ_c [(1 − π_c) Σy² + π_c Σ w²σ²/π²] over what was sent. Nodes of another k that are in their first draw
add, by the same formula with π = k/d, the cross terms (κ − 1) R2 of a balanced draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.decoding.quality import Quality
from sparsemean.decoding.summary import Summary
from sparsemean.results import Correlation
from sparsemean.sampling import Clock


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
    finite = [number if math.isfinite(number) else None for number in (error, rounding)]
    return Quality(error=finite[0], rounding=finite[1], correlation=correlation, feedback=feedback, bound=bound)
