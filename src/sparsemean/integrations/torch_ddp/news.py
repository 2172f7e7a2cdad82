"""What a round tells that was not expected, and what can be said of it: energies, correlation, error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from sparsemean.core import LEAST_RATIO, Blocks, moment_sample
from sparsemean.integrations.torch_ddp.sums import added, total


@dataclass(frozen=True)
class News:
    """y = scale · (value − expectation) of n ranks at k coordinates each, in a vector of ``dim``.

    ``noise`` is the sum of the variances of y that the rounding of few-bit values adds.
    """

    where: Tensor
    y: Tensor
    dim: int
    noise: Tensor

    @property
    def n(self) -> int:
        """How many ranks there are."""
        return len(self.where)

    @cached_property
    def sums(self) -> Tensor:
        """S_j = Σ_i y_ij."""
        return added(self.where, self.y, self.dim)

    @cached_property
    def counts(self) -> Tensor:
        """M_j: how many ranks sent coordinate j."""
        return added(self.where, torch.ones_like(self.where, dtype=torch.int32), self.dim)

    @cached_property
    def energy(self) -> Tensor:
        """Σ_j Q_j, Q_j = Σ_i y_ij²."""
        return total(self.y.square())

    @cached_property
    def r2(self) -> Tensor:
        """Σ_j (S_j² − Q_j): unbiased for R2 (``theory.estimated_r1_r2``)."""
        return total(self.sums.square()) - self.energy

    def r2_variance(self, share: float) -> Tensor:
        """``theory.r2_variance``; the sums over coordinates are taken where values stand, so Q alone is spread out."""
        held = moment_sample(Blocks((self.dim,)))
        y, square, s = self.y, self.y.square(), self.sums[self.where]
        if not held.everything:
            begins = torch.from_numpy(held.begin >= 0).to(y.device)
            square = square * begins[self.where // held.size]
        q = added(self.where, square, self.dim)[self.where]
        products = (square * y * y, square * y * s, square * q, square * s * s)
        p4, sp3, q2, qs2 = (total(product) * float(held.scale[0]) for product in products)
        certain = share * (1.0 - _ratio(self.noise, self.energy))
        pairs, triples = (q2 - p4) / 2.0, (qs2 - q2 - 2.0 * sp3 + 2.0 * p4) / 2.0
        return ((1.0 - certain) * 4.0 * ((1.0 + certain) * pairs + 2.0 * triples)).clamp(min=0.0)

    def likeness(self, share: float, before: Tensor) -> Tensor:
        """ρ̂/(n − 1) (``theory.shrunk_correlation``); as before where no coordinate came from two ranks."""
        others = max(self.n - 1, 1)
        certain = _ratio(self.r2.square(), self.r2.square() + self.r2_variance(share))
        ratio = _ratio(self.r2, share * self.energy) * certain
        tells = (self.counts.amax() > 1) & self.energy.isfinite()
        return torch.where(tells, ratio.clamp(LEAST_RATIO, others) / others, before)

    def quality(self, gains: Tensor, sent: Tensor, share: float) -> Tensor:
        """(error, R1, R2): the error of the mean with these gains (``theory.error_coefficients``), for equal weights.

        ``sent`` is b_m = P(M = m | a given rank sent).
        """
        n = self.n
        off = torch.where(sent > 0.0, gains - 1.0, 0.0)
        others = torch.arange(-1.0, n, dtype=torch.float64, device=sent.device) / (max(n - 1, 1) * share)
        own = (1.0 - share) / share + (sent * off * off).sum() / share
        cross = (sent * off * (others * off + 2.0 * (others - 1.0))).sum() if n > 1 else torch.zeros_like(own)
        r1 = share * (self.energy - self.noise)
        error = (own * r1 + cross * self.r2 + (own + 1.0) * share * self.noise) / n**2
        return torch.stack([error, r1, self.r2])


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    """part/whole, 0 where that is 0/0 or no number."""
    return (part / whole).nan_to_num(0.0, 0.0, 0.0)
