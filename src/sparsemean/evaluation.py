"""Truth to compare with: the true mean and correlation of vectors, and the exact expected error of their estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsemean import codec, theory
from sparsemean._types import Doubles, Floats, Ints
from sparsemean.payload.blocks import Blocks
from sparsemean.run import Run
from sparsemean.sampling import clock, unscheduled
from sparsemean.server import Server


@dataclass(frozen=True, eq=False)
class Truth:
    """Per block b, of y_i = n_b w_i x_i / Σw over the n_b nodes with weight there: R1, R2, and the mean.

    ``energy`` is the weighted mean of ‖x_i‖², what an NMSE is relative to. A block without weight counts nothing, and
    the mean is 0 there.
    """

    mean: Doubles
    nodes: Ints
    r1: Doubles
    r2: Doubles
    energy: float

    @property
    def ratio(self) -> float:
        """R2/R1 over all blocks; 0 where all vectors are 0."""
        return float(self.r2.sum() / self.r1.sum()) if self.r1.any() else 0.0


def truth(vectors: Floats, weights: Doubles | None, blocks: Blocks) -> Truth:
    """The truth about (n, d) vectors with weights (n,), (n, blocks) or None for equal ones.

    >>> found = truth(np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([3.0, 1.0]), Blocks((1, 1)))
    >>> found.mean, found.energy
    (array([1.5, 1. ]), 7.0)
    """
    x, shape = vectors.astype(np.float64), (len(vectors), len(blocks.sizes))
    w = np.ones(shape) if weights is None else np.broadcast_to(weights.reshape(len(x), -1), shape)
    total, nodes = w.sum(axis=0), np.count_nonzero(w, axis=0)
    share = np.divide(w, total, out=np.zeros(shape), where=total > 0)  # w_i/Σw
    squares = np.add.reduceat(x * x, np.cumsum((0, *blocks.sizes[:-1])), axis=1)
    mean = share[:, 0] @ x if shape[1] == 1 else np.sum(np.repeat(share, blocks.sizes, axis=1) * x, axis=0)
    r1 = nodes**2 * np.sum(share**2 * squares, axis=0)
    r2 = nodes**2 * blocks.sums(mean * mean) - r1
    return Truth(mean, nodes, r1, r2, float(np.sum(share * squares)))


def exact_error(
    server: Server, nodes: Sequence[str], vectors: Floats, weights: Doubles | None = None, classes: Ints | None = None
) -> float | None:
    """E‖estimate − mean‖² of the coming round, given what the server remembers (Theorems 1 and 3).

    Over the draw of coordinates alone: what few-bit values add is ``Estimate.rounding``. ``classes`` says which of the
    run's shares each node has; in a balanced draw those of one share have the slots. None where no formula holds.
    With epochs it depends on what each node has sent already: the plans of the round are settled with it, as if
    ``server.plans`` were asked for those of these nodes.
    """
    run = server.open_run
    sends, (layout, *_), decoder = run.scheme.encoder.facts, run.layout, run.scheme.decoder
    one_sample = layout.where == "shared" and sends.raw and sends.unbiased and len(run.encoders) == 1
    if not run.shares and not one_sample:
        return None
    unexpected = vectors - np.array([server.expected(node) for node in nodes])
    own = np.zeros(len(nodes), np.int64) if classes is None else classes
    if run.epochs is not None:
        return _epoch_error(server, nodes, unexpected, weights, own)
    innovation = truth(unexpected, weights, run.ranges)
    T = [decoder.T(known, n) for known, n in zip(server.beliefs(), innovation.nodes.tolist(), strict=True)]
    if any(n and t is None for n, t in zip(innovation.nodes.tolist(), T, strict=True)):
        return None
    if not run.shares:
        return theory.shared_sample_mse(float(innovation.mean @ innovation.mean), layout.count / run.dim)
    if len(run.shares) > 1:
        return _mixed_error(run, unexpected, weights, own, T)
    sums = zip(innovation.r1.tolist(), innovation.r2.tolist(), innovation.nodes.tolist(), T, strict=True)
    p, slots = run.shares[0], len(nodes) if run.planned else None
    return sum(theory.spatial_mse(r1, r2, n, p, t, slots=slots) for r1, r2, n, t in sums if n and t is not None)


def _mixed_error(
    run: Run, innovation: Floats, weights: Doubles | None, classes: Ints, T: Sequence[theory.FixedWeighting | None]
) -> float:
    shape = (len(innovation), len(run.blocks))
    by_block = np.ones(shape) if weights is None else np.broadcast_to(weights.reshape(len(innovation), -1), shape)
    error, start = 0.0, 0
    for block, (size, t) in enumerate(zip(run.blocks, T, strict=True)):
        here, start = innovation[:, start : start + size], start + size
        w = by_block[:, block]
        counts = np.bincount(classes[w > 0], minlength=len(run.shares)).tolist()
        if sum(counts) and t is not None:
            y = (sum(counts) * w / w.sum())[:, None] * here
            r1, r2 = theory.mixed_correlation(y[w > 0], classes[w > 0], len(run.shares))
            asked = np.bincount(classes, minlength=len(counts)).tolist()
            slots = [max(count, 1) if run.planned else None for count in asked]
            error += theory.mixed_mse(r1, r2, counts, run.shares, t, slots=slots)
    return error


def _epoch_error(
    server: Server, nodes: Sequence[str], innovation: Floats, weights: Doubles | None, classes: Ints
) -> float:
    """The formula of ``decoding.epoch_error``, with the nodes in their first draw, where it is balanced."""
    run, shape = server.open_run, (len(nodes), len(server.run.blocks))
    w = np.ones(shape) if weights is None else np.broadcast_to(weights.reshape(len(nodes), -1), shape)
    share = np.divide(w, w.sum(axis=0), out=np.zeros(shape), where=w.sum(axis=0) > 0)
    every = server.run.encoders
    plans = server.plans({node: every[choice] for node, choice in zip(nodes, classes.tolist(), strict=True)})
    error, together = 0.0, dict[tuple[int, int], list[Doubles]]()
    for node, choice, y in zip(nodes, classes, np.repeat(share, run.blocks, axis=1) * innovation, strict=True):
        (layout, *_), plan = run.layouts[choice], codec.unpack_plan(server.run, node, server.round, plans[node])
        now = clock(run.dim, layout.count, plan.ratios)
        of_u = unscheduled(run.key(node, server.round, plan).child(layout.part), run.dim, layout.count, plan)
        squares = float(y[of_u] @ y[of_u]), float(y @ y - y[of_u] @ y[of_u])
        error += sum((of / sent - 1.0) * square for (sent, of), square in zip(now.probabilities, squares, strict=False))
        if not now.scheduled and plan.slot is not None:
            together.setdefault((layout.count, plan.slots), []).append(y)
    for (k, slots), rows in together.items():
        r2 = float(np.sum(np.sum(rows, axis=0) ** 2) - np.sum(np.square(rows)))
        error += theory.CountLaw(len(rows), k / run.dim, slots).pair_excess * r2
    return error
