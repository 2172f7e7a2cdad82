"""Shrinking: the mean innovation times the factor that gives it the least error, at the price of a bias."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief, Decoder, Shares
from sparsemean.decoding.quality import Quality
from sparsemean.decoding.totals import RoundTotals
from sparsemean.errors import IncompatibleScheme, InvalidInput


@dataclass(frozen=True)
class Shrunk(Decoder):
    """The mean innovation of another decoder times s = B/(B + V), block by block.

    V is that decoder's expected error and B = ‖mean innovation‖², both estimated without bias from the round itself
    (``Estimate.error`` and (R1 + R2)/n²); B is taken as 0 where its estimate is below. Of all factors s gives the least
    error, s²V + (1 − s)²B: the less a round tells, the closer the estimate stays to what the memory expects, or to 0.
    What a memory learns are the values that came, which are not shrunk.

    It is biased, for monitoring and not for training: a descent that follows it takes too short a step in whatever
    direction the memory has not learnt. Where a balanced draw leaves R2 unknown (np ≤ 1) nothing is shrunk.

    ``Estimate.error`` is that of the shrunk estimate: s²V + (1 − s)²(B + 2 Var(B)/(B + V)), B clipped only in the
    denominator. With an s fixed before the round s²V + (1 − s)²B would be unbiased; s is fitted to the same values, and
    the last term is, to first order, what that makes it too small by. Var(B) is that of R2 for independent draws.
    ``Estimate.error_se`` is None.

    Parameters
    ----------
    decoder : Decoder
        An unbiased one: ``Mean()``, or ``Spatial`` of any weighting but "estimated".

    >>> from sparsemean.decoding.decoders import Spatial
    >>> Shrunk(Spatial("learned")).unbiased
    False
    """

    decoder: Decoder

    def __post_init__(self) -> None:
        if not isinstance(self.decoder, Decoder):
            raise InvalidInput(f'Shrunk takes a decoder, such as Spatial("learned"), not {self.decoder!r}')
        if not self.decoder.unbiased:
            raise IncompatibleScheme(f"{self.decoder!r} is biased, so that Shrunk cannot know its error; use Mean()")

    @property
    def reweights(self) -> bool:
        return self.decoder.reweights

    @property
    def adapts(self) -> bool:
        return True

    @property
    def shrinks(self) -> Decoder:
        return self.decoder

    @property
    def unbiased(self) -> bool:
        return False

    def T(self, belief: Belief, n: int) -> None:
        return None

    def innovation(self, totals: RoundTotals, shares: Shares, beliefs: tuple[Belief, ...]) -> Doubles:
        innovation = self.decoder.innovation(totals, shares, beliefs)
        innovation *= totals.blocks.expand(np.array([known.signal for known in beliefs]))
        return innovation


def shrink(found: Quality, factor: float) -> tuple[float, Quality]:
    """(s, how good the estimate is once it is multiplied by s) of a block.

    Parameters
    ----------
    found : Quality
        Of the estimate as it is, in this block alone.
    factor : float
        What R1 + R2 is multiplied by to give B.

    >>> from sparsemean.results import Correlation
    >>> s, shrunk = shrink(Quality(error=3.0, correlation=Correlation(2.0, 7.0, 0.0)), 1.0)
    >>> s, shrunk.error
    (0.75, 2.25)
    """
    if found.error is None or found.correlation is None:
        return 1.0, found
    energy, own = (found.correlation.r1 + found.correlation.r2) * factor, found.error
    if own <= 0.0:
        return 1.0, replace(found, error_se=None)
    whole = max(energy, 0.0) + own
    s = max(energy, 0.0) / whole
    fitted = 2.0 * (factor * found.correlation.r2_se) ** 2 / whole
    error = s**2 * own + (1.0 - s) ** 2 * (energy + fitted)
    rounding = None if found.rounding is None else s**2 * found.rounding
    return s, replace(found, error=error if math.isfinite(error) else None, error_se=None, rounding=rounding)
