"""Assessment: how good an estimate is, and the correlation that earlier rounds showed, block by block."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.epoch_error import epoch_quality
from sparsemean.decoding.quality import Quality, innovation_correlation, quality
from sparsemean.decoding.shrunk import shrink
from sparsemean.decoding.summary import Summary
from sparsemean.run import Run
from sparsemean.sampling import Clock
from sparsemean.state_tree import Tree, array_in, branch
from sparsemean.theory import FixedWeighting


class Assessment:
    """What a round's summary says, given what earlier rounds showed. Holds a few numbers, however long vectors are."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._correlation = np.full(len(run.blocks), math.nan)  # not known yet
        self._warned = False

    def beliefs(self, summary: Summary | None = None) -> tuple[Belief, ...]:
        """What a decoder may go by: the correlation of each block before a round and, given its summary, in it."""
        if summary is None:
            return tuple(map(Belief, _known(self._correlation)))
        return tuple(map(Belief, _known(self._correlation), self._shown(summary).tolist()))

    def _shown(self, summary: Summary) -> Doubles:
        """The correlation that this round shows; as before where it does not tell."""
        shown = innovation_correlation(summary, self.run.class_shares)
        return self._correlation if shown is None else np.where(np.isnan(shown), self._correlation, shown)

    def assess(
        self, summary: Summary, weight: Doubles, clocks: tuple[Clock, ...] = ()
    ) -> tuple[tuple[Belief, ...], Quality]:
        """What a decoder may go by at the end of a round, and how good its estimate is.

        ``weight`` is the total that each block's mean is divided by; ``clocks`` are those of the encoders in an epoch.
        """
        beliefs, decoder = self.beliefs(summary), self.run.scheme.decoder
        if any(now.scheduled for now in clocks):
            return beliefs, epoch_quality(summary, clocks, weight)
        as_it_is = decoder.shrinks or decoder
        T = [as_it_is.T(known, n) for known, n in zip(beliefs, summary.nodes.tolist(), strict=True)]
        before = [known.before for known in beliefs]
        found = quality(summary, self.run.class_shares, T, before, weight, self.run.dim)
        return (beliefs, found) if decoder.shrinks is None else self._shrunk(summary, weight, beliefs, T, found)

    def _shrunk(
        self,
        summary: Summary,
        weight: Doubles,
        beliefs: tuple[Belief, ...],
        T: list[FixedWeighting | None],
        found: Quality,
    ) -> tuple[tuple[Belief, ...], Quality]:
        """The same once each block is shrunk by itself (``decoding.Shrunk``)."""
        known, parts, before = list(beliefs), [], [each.before for each in beliefs]
        for block in np.flatnonzero(summary.weight > 0).tolist():
            alone = np.where(np.arange(len(weight)) == block, summary.weight, 0.0)  # of no other block
            own = quality(replace(summary, weight=alone), self.run.class_shares, T, before, weight, self.run.dim)
            factor = summary.weight[block] / (weight[block] * summary.nodes[block])
            signal, part = shrink(own, float(factor) ** 2)
            known[block] = replace(known[block], signal=signal)
            parts.append(part)
        errors, roundings = ([getattr(part, name) for part in parts] for name in ("error", "rounding"))
        error, rounding = (None if None in each else sum(each) for each in (errors, roundings))
        return tuple(known), replace(found, error=error, error_se=None, actual=None, interval=None, rounding=rounding)

    def learn(self, beliefs: tuple[Belief, ...]) -> None:
        """The round is over: the correlation that it showed is what later rounds go by."""
        self._correlation = np.array([known.now for known in beliefs])

    def divergence(self, found: Quality) -> str | None:
        """A warning, once, where a shared memory feeds its own error back faster than it learns."""
        feedback = self.run.scheme.memory.facts.feedback * found.feedback
        if self._warned or feedback < 1:
            return None
        self._warned = True
        return (
            f"the shared memory multiplies its own error by {feedback:.3g} each round and will diverge; "
            "use memory=SharedStable(), a larger k, or more nodes"
        )

    def state(self) -> dict[str, Tree]:
        """All of it."""
        return {"warned": self._warned, "likeness": self._correlation}  # the name in journals

    def restore(self, state: Tree) -> None:
        """Restore what ``state()`` returned."""
        self._warned = bool(branch(state, "warned"))
        self._correlation = array_in(state, "likeness")


def _known(correlation: Doubles) -> list[float | None]:
    return [None if math.isnan(each) else each for each in correlation.tolist()]
