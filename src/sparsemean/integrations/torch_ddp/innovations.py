"""Innovations of a round, what came less what the memory expected, and their energies, correlation and error."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from sparsemean.decoding.moment_sample import moment_sample
from sparsemean.integrations.torch_ddp.sums import sums_at, total
from sparsemean.payload.blocks import Blocks
from sparsemean.theory.estimated import Moments, error_terms, estimated_r1_r2, rounding_terms, shrunk_correlation


@dataclass(frozen=True)
class Innovations:
    """y = scale · (value − expectation) of n ranks at k coordinates each.

    Parameters
    ----------
    where : Tensor
        (n, k): the coordinates that each rank sent.
    y : Tensor
        (n, k): the innovations there, in float64.
    dim : int
        Length of the whole vector.
    noise : Tensor
        Sum of the variances that the rounding of few-bit values adds to ``y``.
    """

    where: Tensor
    y: Tensor
    dim: int
    noise: Tensor

    @property
    def n(self) -> int:
        """Number of ranks."""
        return len(self.where)

    @cached_property
    def sums(self) -> Tensor:
        """S_j = Σ_i y_ij."""
        return sums_at(self.where, self.y, self.dim)

    @cached_property
    def counts(self) -> Tensor:
        """M_j: how many ranks sent coordinate j."""
        return sums_at(self.where, torch.ones_like(self.where, dtype=torch.int32), self.dim)

    @cached_property
    def energy(self) -> Tensor:
        """Σ_j Q_j, Q_j = Σ_i y_ij²."""
        return total(self.y.square())

    @cached_property
    def energies(self) -> Moments:
        """The moments that R1 and R2 take. The sums of fourth powers, which cost more, are left at 0."""
        sums: tuple[Any, ...] = total(self.sums.square()), self.energy, 0.0, 0.0, 0.0, 0.0, self.noise
        return Moments(*sums)

    def moments(self) -> Moments:
        """All moments. The fourth powers are summed where values are, so only Q is made for every coordinate."""
        sampled = moment_sample(Blocks((self.dim,)))
        y, square, s = self.y, self.y.square(), self.sums[self.where]
        if not sampled.everything:
            begins = torch.from_numpy(sampled.begin >= 0).to(y.device)
            square = square * begins[self.where // sampled.size]
        q = sums_at(self.where, square, self.dim)[self.where]
        products = (square * y * y, square * y * s, square * q, square * s * s)
        powers: tuple[Any, ...] = tuple(total(product) * float(sampled.scale[0]) for product in products)
        p4, sp3, q2, qs2 = powers
        return replace(self.energies, p4=p4, sp3=sp3, q2=q2, qs2=qs2)

    def correlation(self, share: float, before: Tensor, pair_factor: float = 1.0) -> Tensor:
        """ρ̂/(n − 1) as this round shows it (``theory.shrunk_correlation``).

        Parameters
        ----------
        share : float
            p, the share of its coordinates that a rank sends.
        before : Tensor
            Returned instead where no coordinate came from two ranks, or a value is not finite.
        pair_factor : float, default 1.0
            κ of the draw (``theory.CountLaw``).
        """
        energy: Any = share * self.energy
        shown: Any = shrunk_correlation(self.moments(), energy, self.n, share, torch, pair_factor=pair_factor)
        return torch.where((self.counts.amax() > 1) & self.energy.isfinite(), shown, before)

    def quality(self, own: Any, cross: Any, share: float, pair_factor: float = 1.0) -> Tensor:
        """``quality`` of these."""
        return quality(self.energies, self.n, own, cross, share, pair_factor)


def quality(energies: Moments, n: int, own: Any, cross: Any, share: float, pair_factor: float = 1.0) -> Tensor:
    """(error, R1, R2): the estimated error of the mean, the innovations' energy and their correlation.

    The error is (A1 R1 + A2 R2 + (A1 + 1) p · noise)/n² (``theory.estimated_error`` with equal weights). Where no two
    ranks send the same coordinate, κ = 0, R2 counts as 0 and the error is ``theory.error_bound``.

    Parameters
    ----------
    energies : Moments
        ΣS², ΣQ and the noise, as tensors.
    n : int
        Number of ranks.
    own, cross : Tensor or float
        A1 and A2 of ``theory.error_coefficients``.
    share : float
        p, the share of its coordinates that a rank sends.
    pair_factor : float, default 1.0
        κ of the draw (``theory.CountLaw``).
    """
    energy: Any = energies.q
    if pair_factor == 0.0:
        bound = (own + 1.0) * share * energy
        return torch.stack([bound / n**2, share * (energy - energies.noise), torch.zeros_like(energy)])
    r1_r2: tuple[Any, ...] = estimated_r1_r2(energies, share, pair_factor)
    error: Any = error_terms(energies, share, own, cross, pair_factor) + rounding_terms(energies, share, own + 1.0)
    if isinstance(own, float) and math.isinf(own):  # T(n) = 0 with many ranks; ∞ R1 − ∞ |R2| is no number
        error = torch.full_like(error, math.inf)
    return torch.stack([error / n**2, *r1_r2])
