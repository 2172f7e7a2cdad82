"""Decoders for gradients on the CPU: the factors of sums, and what tells the quality of a mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparsemean import Run, theory
from sparsemean._types import Doubles
from sparsemean.decoding import Mean
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.moment_sample import moment_sample
from sparsemean.integrations.torch_ddp.innovations import quality
from sparsemean.kernels.one_pass import PassSums, Powers
from sparsemean.payload.blocks import Blocks
from sparsemean.theory.estimated import Moments, shrunk_correlation


class HostDecoder:
    """Factors for the sum of each coordinate by the number of ranks that sent it, as ``Decoder.innovation`` has them.

    Parameters
    ----------
    run : Run
        Of the tensor.
    n : int
        Number of ranks.

    Attributes
    ----------
    state : dict of str to Tensor
        ``likeness``: ρ/(n − 1) as the last round showed it, NaN before; empty where it does not adapt.
    bound : bool
        As in ``TensorDecoder``.
    powers : Powers
        Which power sums it needs: all where it adapts, else those for ``quality`` alone.
    """

    def __init__(self, run: Run, n: int) -> None:
        self._kind, self.n = run.scheme.decoder, n
        self.law = None if run.share is None else theory.CountLaw(n, run.share, n if run.planned else None)
        self.bound = self.law is not None and self.law.pair_factor == 0.0
        held = moment_sample(Blocks((run.dim,)))
        self._scale = float(held.scale[0])
        self.state = {"likeness": torch.full((), math.nan, dtype=torch.float64)} if self._kind.adapts else {}
        self.powers = Powers(held.begin if self._kind.adapts else np.full(held.begin.size, -1), held.size)
        self._now: float | None = None
        self._fixed: tuple[Doubles, float] | None = None

    @property
    def looks_first(self) -> bool:
        """Whether it goes by what the round itself shows."""
        return self._kind.adapts and not self._kind.unbiased

    @property
    def T(self) -> theory.FixedWeighting:
        """The T of the round."""
        before = self.state["likeness"].item() if self.state else math.nan
        T = self._kind.T(Belief(None if math.isnan(before) else before, self._now), self.n)
        return "one" if T is None else T

    def factors(self, T: theory.FixedWeighting) -> tuple[Doubles, float]:
        """The factors for 0, …, n ranks, and what is added to each product (``one_pass``)."""
        if self._fixed is not None:
            return self._fixed
        factors = self._factors(T)
        if not self._kind.adapts:
            self._fixed = factors
        return factors

    def _factors(self, T: theory.FixedWeighting) -> tuple[Doubles, float]:
        if isinstance(self._kind, Mean):
            return np.full(self.n + 1, 1.0 / self.n), -0.0
        if self.law is None:
            return theory.fill_gains(T, self.n) / float(self.n), 0.0
        return theory.gains(T, self.n, self.law.share, slots=self.law.slots) / float(self.n), 0.0

    def show(self, moments: Moments, most: int) -> None:
        """What the round shows of the correlation; ``most`` ranks sent a coordinate."""
        if not self.state:
            return
        assert self.law is not None
        before, factor = self.state["likeness"].item(), np.array([self.law.pair_factor])
        s2, q, noise = (np.array([each]) for each in (moments.s2, moments.q, moments.noise))
        p4, sp3, q2, qs2 = (
            self._scale * np.array([each]) for each in (moments.p4, moments.sp3, moments.q2, moments.qs2)
        )
        scaled, energy = Moments(s2, q, p4, sp3, q2, qs2, noise), self.law.share * q
        with np.errstate(over="ignore", invalid="ignore"):
            shown = shrunk_correlation(scaled, energy, np.array([float(self.n)]), self.law.share, pair_factor=factor)
        known = most > 1 and self.law.pair_factor > 0.0
        now = float(np.asarray(shown)[0]) if known else math.nan
        self._now = before if math.isnan(now) else now

    def learn(self) -> None:
        """The round is over."""
        if self.state and self._now is not None:
            self.state["likeness"].fill_(self._now)
        self._now = None


class Seen:
    """What tells the quality of the last mean, once somebody asks for it."""

    def __init__(self, moments: Moments, T: theory.FixedWeighting) -> None:
        self._moments, self._T = moments, T

    def quality(self, decoder: HostDecoder) -> Tensor | None:
        """``innovations.quality``; None where ranks share their coordinates."""
        law = decoder.law
        if law is None:
            return None
        sums: list[Any] = [torch.tensor(each, dtype=torch.float64) for each in vars(self._moments).values()]
        energies = Moments(*sums)
        own, cross = theory.error_coefficients(self._T, law.n, law.share, slots=law.slots)
        return quality(energies, law.n, own, cross, law.share, law.pair_factor)


def moments_of(found: PassSums, noise: float) -> Moments:
    """Sums over the coordinates; node after node, as ``fold`` adds them."""
    q = p4 = 0.0
    for energy, fourth in zip(found.energy.tolist(), found.fourths.tolist(), strict=True):
        q, p4 = q + energy, p4 + fourth
    s2, sp3, q2, qs2 = found.powers.tolist()
    return Moments(s2, q, p4, sp3, q2, qs2, noise)
