"""When epochs begin and by which ratio they go on, learnt from the rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.decoding.epoch_error import energies, later_rows
from sparsemean.decoding.summary import Summary
from sparsemean.run import Run
from sparsemean.sampling import Clock, clock
from sparsemean.sampling.clock import LEAST_RATIO, MOST_RATIO, MOST_RATIOS, SIXTEENTHS
from sparsemean.server.epoch_forecast import Residuals, forecast
from sparsemean.state_tree import Tree, array_in

LEAST_VALUES = 16
"""A ratio is learnt where so many values of either class came; in a first round, of what was sent in the last one."""


class EpochControl:
    """The ratio of the next round, and whether that round should rather begin an epoch.

    Any rule that goes by earlier rounds alone keeps the estimate unbiased. The ratio λ that makes the error least is
    the root mean square residual of U over that of S. A new epoch is worth it where nodes' residuals are alike, so that
    a balanced draw errs less (``forecast``). While every round begins an epoch, U and S are known all the same: what a
    node sent in the last round is what S would be, and some of it is sent again by chance (``Summary.repeats``).
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        given = run.epochs.ratio if run.epochs is not None else None
        self.ratio = LEAST_RATIO if given is None else round(given * SIXTEENTHS)
        self.restart = False
        self._correlation = math.nan  # R2/R1 of the last round that told

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
        found = [self._residuals(summary, clocks, s) for s in range(len(clocks))]
        if settings.ratio is None:
            self._learn_ratio(summary, clocks, found)
        if settings.restart:
            self.restart = self._fresh_is_better(clocks, found)
            if self.restart and settings.ratio is None and any(now.scheduled for now in clocks):
                self.ratio = LEAST_RATIO  # until repeats tell what the next S is like

    def _residuals(self, summary: Summary, clocks: Sequence[Clock], s: int) -> Residuals:
        """Of an encoder's nodes."""
        per_weight = _per_weight(summary)
        found, nodes, now = {}, 0, clocks[s]
        rows = later_rows(s, len(clocks))
        for row, p, who in energies(summary, clocks):
            if row % len(clocks) == s:
                found[row] = p * float(summary.class_squares[row] @ per_weight)
                nodes += int(summary.class_nodes[who].max()) if row == who else 0
        if not nodes:
            return Residuals(math.nan, math.nan, 0)
        if rows[0] in found:
            u, of_s = now.unscheduled, now.dim - now.unscheduled
            return Residuals(found[rows[0]] / (nodes * u), found[rows[1]] / (nodes * of_s), nodes)
        mean = sum(found.values()) / (nodes * now.dim)
        part = _repeated(summary, s)
        if part is None:  # as the ratio of earlier rounds has it
            return Residuals(mean, mean * (SIXTEENTHS / self.ratio) ** 2, nodes)
        part = min(part, 1.0)
        return Residuals(mean * (now.dim - now.k * part) / max(now.dim - now.k, 1), mean * part, nodes)

    def _learn_ratio(self, summary: Summary, clocks: Sequence[Clock], found: Sequence[Residuals]) -> None:
        u = s = 0.0
        for number, (now, (of_u, of_s, nodes)) in enumerate(zip(clocks, found, strict=True)):
            if now.scheduled:
                told = nodes * min(now.scheduled[-1], now.k - now.scheduled[-1]) >= LEAST_VALUES
            else:
                told = _repeated(summary, number) is not None
            if nodes and told:
                u, s = u + nodes * of_u, s + nodes * of_s
        if u > 0 and math.isfinite(u + s):
            ratio = SIXTEENTHS * math.sqrt(u / s) if s > 0 else MOST_RATIO
            self.ratio = round(min(max(ratio, LEAST_RATIO), MOST_RATIO))

    def _fresh_is_better(self, clocks: Sequence[Clock], found: Sequence[Residuals]) -> bool:
        """Whether balanced draws promise less than the rest of this epoch; False where R2 is not known yet."""
        fresh = going = 0.0
        for now, residuals in zip(clocks, found, strict=True):
            if residuals.nodes and now.left:  # else these begin again in either case
                balanced, on = forecast(now, self.ratio, residuals, self._correlation)
                fresh, going = fresh + balanced, going + on
        return fresh < going

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
        return np.array([self.ratio, self.restart, self._correlation])

    def restore(self, state: Tree, name: str) -> None:
        """Restore what ``state()`` returned, which stands under this name."""
        ratio, restart, self._correlation = array_in(state, name)[:3].tolist()  # there were six numbers once
        self.ratio, self.restart = int(ratio), bool(restart)
        if not LEAST_RATIO <= self.ratio <= MOST_RATIO:
            raise ValueError("the ratio of an epoch is out of range")


def _repeated(summary: Summary, s: int) -> float | None:
    """Mean square residual of what an encoder's nodes sent in two rounds running over that of all they sent.

    None where too little was sent twice, or nothing tells it apart.
    """
    per_weight = _per_weight(summary)
    again, number, squares, sent = summary.repeats[:, s]
    repeats, whole = float(number @ (per_weight > 0)), float(squares @ per_weight)
    if repeats < LEAST_VALUES or not whole > 0:
        return None
    return float(again @ per_weight) / repeats * float(sent @ (per_weight > 0)) / whole


def _per_weight(summary: Summary) -> Doubles:
    """1/W² of each block, 0 where nobody has weight: sums times it add up to the error."""
    weight = summary.weight
    return np.divide(1.0, weight**2, out=np.zeros_like(weight), where=weight > 0)
