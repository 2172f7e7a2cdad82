"""The ratio estimator: at each coordinate the weighted mean of those who sent it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief, Decoder, Shares
from sparsemean.decoding.totals import RoundTotals


@dataclass(frozen=True)
class Ratio(Decoder):
    """Σ ξ w x/p / Σ ξ w/p at each coordinate (Hájek's estimator), 0 where nobody sent it; ξ says who did.

    For nodes of unequal weight. ``Mean`` divides by the weight of all nodes, so that a coordinate comes out too large
    whenever a heavy node sends it, however similar the nodes are; ``Spatial`` sees how many sent it, not how heavy they
    are. Here vectors that are equal are recovered exactly wherever anybody sent. With a memory it is the ratio of
    residuals: the memory's expectation stands where nobody sent.

    It is biased: towards 0 at coordinates that nobody may send, and towards the light nodes, since a heavy one weighs
    less where it sends than it is missed where it does not. Its error depends on how weights and vectors go together,
    which what arrives does not tell, so that ``Estimate.error`` is None.

    >>> Ratio().unbiased
    False
    """

    @property
    def reweights(self) -> bool:
        return True

    @property
    def weighs(self) -> bool:
        return True

    @property
    def unbiased(self) -> bool:
        return False

    def T(self, belief: Belief, n: int) -> None:
        return None

    def innovation(self, totals: RoundTotals, shares: Shares, beliefs: tuple[Belief, ...]) -> Doubles:
        sums, weight = totals.sums, totals.sent_weight
        return np.divide(sums, weight, out=np.zeros(totals.blocks.dim), where=weight > 0)
