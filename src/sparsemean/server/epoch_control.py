"""When epochs begin and by which ratio they go on, learnt from the rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.decoding.epoch_error import energies, later_rows
from sparsemean.decoding.summary import Summary
from sparsemean.run import Run
from sparsemean.sampling import Clock, clock
from sparsemean.sampling.clock import LEAST_RATIO, MOST_RATIO, MOST_RATIOS, SIXTEENTHS, rest
from sparsemean.state_tree import Tree, array_in

LEAST_SENT = 2  # a ratio is learnt where more of either class were sent
LEAST_PATIENCE, MOST_PATIENCE = 2, 128
WORTH_A_TRY = 0.6

Means: TypeAlias = tuple[float, float, int]
"""Mean square residual of U and of S, and how many nodes it is of."""


class EpochControl:
    """The ratio of the next round, and whether that round should rather begin an epoch.

    Any rule that goes by earlier rounds alone keeps the estimate unbiased. The ratio λ that makes the error least is
    the root mean square residual of U over that of S. A new epoch is worth it where nodes' residuals are alike: a
    balanced draw has the error (1/p − 1) R1 + (κ − 1) R2, going on has (1/π_c − 1) times the energy of each class.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        given = run.epochs.ratio if run.epochs is not None else None
        self.ratio = LEAST_RATIO if given is None else round(given * SIXTEENTHS)
        self.restart = False
        self._correlation = math.nan  # R2/R1 of the last round that told
        self._begun = 0  # rounds in a row that began an epoch
        self._patience = LEAST_PATIENCE  # how many of them to wait before one goes on
        self._tries = False  # whether this is the one

    def clocks(self, ratios: bytes) -> tuple[Clock, ...]:
        """The clock of each encoder's nodes after these ratios."""
        return tuple(clock(self._run.dim, parts[0].count, ratios) for parts in self._run.layouts)

    def goes_on(self, ratios: bytes) -> bool:
        """Whether the epoch with these ratios so far has a next round."""
        over = all(now.left == 0 or now.began for now in self.clocks(ratios))
        return not (over or self.restart or len(ratios) == MOST_RATIOS)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def learn(self, summary: Summary, ratios: bytes) -> None:
        """The round with these ratios is over."""
        settings, clocks = self._run.epochs, self.clocks(ratios)
        if settings is None or summary.moments is None or not summary.nodes.any():
            return
        told = self._r2_over_r1(summary, clocks)
        self._correlation = self._correlation if math.isnan(told) else told
        means = [self._means(summary, clocks, s) for s in range(len(clocks))]
        if settings.ratio is None:
            self._learn_ratio(clocks, means)
        if settings.restart:
            self._choose(clocks, means)

    def _choose(self, clocks: Sequence[Clock], means: Sequence[Means]) -> None:
        """Whether to begin an epoch in the next round.

        Rounds that only begin epochs tell nothing of the ratio. So after some of them one goes on, where the largest
        ratio would make the error less by far: after two, and after 16 times as many each time that it was in vain.
        """
        if any(now.scheduled for now in clocks):
            self._begun, self._patience = 0, self._patience if self._tries else LEAST_PATIENCE
            self.restart = self._fresh_is_better(clocks, means, self.ratio)
            if self._tries and self.restart:
                self._patience = min(16 * self._patience, MOST_PATIENCE)
            self._tries = False
            return
        self._begun += 1
        best = [(of_u, of_u * (SIXTEENTHS / MOST_RATIO) ** 2, nodes) for of_u, _, nodes in means]
        self._tries = self._begun >= self._patience and not self._fresh_is_better(clocks, best, MOST_RATIO, WORTH_A_TRY)
        self.restart = not self._tries and self._fresh_is_better(clocks, means, self.ratio)

    def _means(self, summary: Summary, clocks: Sequence[Clock], s: int) -> Means:
        """Mean square residual, weighted as the error is, of U and of S of an encoder's nodes; and how many came."""
        per_weight = _per_weight(summary)
        found, nodes, now = {}, 0, clocks[s]
        rows = later_rows(s, len(clocks))
        for row, p, who in energies(summary, clocks):
            if row % len(clocks) == s:
                found[row] = p * float(summary.class_squares[row] @ per_weight)
                nodes += int(summary.class_nodes[who].max()) if row == who else 0
        if not nodes:
            return math.nan, math.nan, 0
        if rows[0] in found:
            u, of_s = now.unscheduled, now.dim - now.unscheduled
            return found[rows[0]] / (nodes * u), found[rows[1]] / (nodes * of_s), nodes
        mean = sum(found.values()) / (nodes * now.dim)
        return mean, mean * (SIXTEENTHS / self.ratio) ** 2, nodes  # of S, as the ratio of earlier rounds has it

    def _learn_ratio(self, clocks: Sequence[Clock], means: Sequence[Means]) -> None:
        u = s = 0.0
        for now, (of_u, of_s, nodes) in zip(clocks, means, strict=True):
            if nodes and now.scheduled and LEAST_SENT < now.scheduled[-1] < now.k - LEAST_SENT:
                u, s = u + nodes * of_u, s + nodes * of_s
        if u > 0 and math.isfinite(u + s):
            ratio = SIXTEENTHS * math.sqrt(u / s) if s > 0 else MOST_RATIO
            self.ratio = round(min(max(ratio, LEAST_RATIO), MOST_RATIO))

    def _fresh_is_better(
        self, clocks: Sequence[Clock], means: Sequence[Means], ratio: int, factor: float = 1.0
    ) -> bool:
        """Whether a balanced draw of all, its error times ``factor``, promises less than the rest of this epoch."""
        fresh = going = 0.0
        for now, (of_u, of_s, nodes) in zip(clocks, means, strict=True):
            later = list(rest(now, ratio))
            if not nodes or not later:  # these begin again in either case
                continue
            share, r1 = now.k / now.dim, nodes * (now.left * of_u + (now.dim - now.left) * of_s)
            excess = theory.CountLaw(nodes, share, nodes).pair_excess
            fresh += (1.0 / share - 1.0 + excess * self._correlation) * r1
            for then in later:
                sizes = then.unscheduled * of_u, (then.dim - then.unscheduled) * of_s
                for size, (sent, of) in zip(sizes, then.probabilities, strict=True):
                    going += (of / sent - 1.0) * nodes * size / len(later)
        return factor * fresh < going  # False where R2 is not known yet

    @staticmethod
    def _r2_over_r1(summary: Summary, clocks: Sequence[Clock]) -> float:
        """R2/R1 of the residuals in this round, towards 0 as far as it may be noise; NaN where no two nodes meet."""
        moments, per_weight = summary.moments, _per_weight(summary)
        assert moments is not None
        r1, r2, least = 0.0, float(np.asarray(moments.r2) @ per_weight), 1.0
        for row, p, _ in energies(summary, clocks):
            r1 += p * float((summary.class_squares[row] - summary.class_noise[row]) @ per_weight)
            least, slots = min(least, p), int(summary.class_slots[row])
            if slots:
                nodes = int(summary.class_nodes[row].max())
                factor = theory.CountLaw(nodes, p, slots).pair_factor
                pairs = float((summary.products[row, row] - summary.class_squares[row]) @ per_weight)
                if factor == 0.0:
                    return math.nan
                r2 += pairs / factor - pairs
        variance = float(np.asarray(theory.r2_variance(moments, least)) @ per_weight**2)
        certain = r2 * r2 / (r2 * r2 + variance) if r2 else 0.0
        return r2 / r1 * certain if r1 > 0 and math.isfinite(r2) else math.nan

    def state(self) -> Tree:
        """All of it."""
        return np.array([self.ratio, self.restart, self._correlation, self._begun, self._patience, self._tries])

    def restore(self, state: Tree, name: str) -> None:
        """Restore what ``state()`` returned, which stands under this name."""
        ratio, restart, self._correlation, begun, patience, tries = array_in(state, name).tolist()
        self.ratio, self.restart, self._tries = int(ratio), bool(restart), bool(tries)
        self._begun, self._patience = int(begun), int(patience)
        if not LEAST_RATIO <= self.ratio <= MOST_RATIO:
            raise ValueError("the ratio of an epoch is out of range")


def _per_weight(summary: Summary) -> Doubles:
    """1/W² of each block, 0 where nobody has weight: sums times it add up to the error."""
    weight = summary.weight
    return np.divide(1.0, weight**2, out=np.zeros_like(weight), where=weight > 0)
