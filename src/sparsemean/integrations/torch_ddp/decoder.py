"""The decoders Mean and Spatial (``sparsemean.decoding.decoders``) on tensors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from sparsemean import Run, theory
from sparsemean.decoding.decoders import Belief
from sparsemean.integrations.torch_ddp.innovations import Innovations
from sparsemean.theory.estimated import LEAST_RATIO
from sparsemean.theory.scaling import likeliest_count, mean_and_deviations, scaled_inverse
from sparsemean.theory.spatial import coefficients_of, constants_of, pair_ratios
from sparsemean.theory.weighting import linear_weights


class TensorDecoder(ABC):
    """Innovations of a round → their estimated mean.

    Attributes
    ----------
    state : dict of str to Tensor
        What it learns, updated in place.
    bound : bool
        Whether the error in ``Innovations.quality`` is an upper bound (``Estimate.error_is_bound``): no two ranks send
        the same coordinate.
    """

    state: dict[str, Tensor]
    bound: bool = False

    @abstractmethod
    def decoded(self, innovations: Innovations) -> tuple[Tensor, Tensor | None]:
        """The estimated mean, and ``Innovations.quality`` where ranks sample independently."""


class TensorSharedMean(TensorDecoder):
    """Σ_i y_ij / n, for coordinates that all ranks share."""

    def __init__(self) -> None:
        self.state = {}

    def decoded(self, innovations: Innovations) -> tuple[Tensor, None]:
        return innovations.sums / innovations.n, None


class TensorSpatial(TensorDecoder):
    """g(M_j) Σ_i y_ij / n with T fixed beforehand: Spatial, and plain Rand-k, where T = 1.

    Parameters
    ----------
    T : FixedWeighting
        The T of ``theory.weights``.
    law : CountLaw
        How many ranks send a coordinate.
    device : torch.device
        Where gradients are.
    """

    def __init__(self, T: theory.FixedWeighting, law: theory.CountLaw, device: torch.device) -> None:
        self.state, self.bound = {}, law.pair_factor == 0.0
        self._law = law
        self._gains = torch.from_numpy(theory.gains(T, law.n, law.share, slots=law.slots)).to(device)
        self._own, self._cross = theory.error_coefficients(T, law.n, law.share, slots=law.slots)

    def decoded(self, innovations: Innovations) -> tuple[Tensor, Tensor]:
        mean = _reweighted(innovations, self._gains)
        return mean, innovations.quality(self._own, self._cross, self._law.share, self._law.pair_factor)


class TensorAdaptiveSpatial(TensorDecoder):
    """g(M_j) Σ_i y_ij / n with T(m) = 1 + ρ(m − 1)/(n − 1), ρ estimated from what arrives.

    ``state["likeness"]`` is ρ/(n − 1) as the last round showed it, NaN before; checkpoints know it by this name.

    Parameters
    ----------
    now : bool
        Whether ρ is that of the round itself (``Spatial("estimated")``, biased) or of the one before
        (``Spatial("learned")``, unbiased).
    law, device
        As in ``TensorSpatial``.
    """

    def __init__(self, now: bool, law: theory.CountLaw, device: torch.device) -> None:
        n, share, sent = law.n, law.share, law.given_sent.copy()
        self.state = {"likeness": torch.full((), math.nan, dtype=torch.float64, device=device)}
        self._first = theory.first_ratio(n)
        self._now, self._law, self.bound = now, law, law.pair_factor == 0.0
        self._likeliest, self._mode = likeliest_count(n, share, slots=law.slots), int(sent.argmax())
        self._others = torch.arange(n, dtype=torch.float64, device=device)
        self._sent, self._ratios = (torch.from_numpy(table).to(device) for table in (sent, pair_ratios(n, share)))

    def decoded(self, innovations: Innovations) -> tuple[Tensor, Tensor]:
        before, law = self.state["likeness"].clone(), self._law
        shown = self.state["likeness"].copy_(innovations.correlation(law.share, before, law.pair_factor))
        found = shown if self._now else before
        learnt = (found * (innovations.n - 1)).clamp(min=LEAST_RATIO)
        ratio = torch.where(found.isnan(), 0.0 if self._now else self._first, learnt)
        inverse = scaled_inverse(linear_weights(ratio, self._others), self._likeliest, xp=torch)
        mean, excess = mean_and_deviations(inverse, self._sent, self._mode, torch)
        constants = constants_of(excess, self._sent, self._ratios, law.share, law.pair_factor)
        own, cross = coefficients_of(*constants, law.share, law.pair_excess)
        return _reweighted(innovations, inverse / mean), innovations.quality(own, cross, law.share, law.pair_factor)


def _reweighted(innovations: Innovations, gains: Tensor) -> Tensor:
    """g(M_j) Σ_i y_ij / n, from g(0), …, g(n)."""
    return gains[innovations.counts] * innovations.sums / innovations.n


def decoder_for(run: Run, n: int, device: torch.device) -> TensorDecoder:
    """The decoder of a run's scheme, for n ranks."""
    kind, share = run.scheme.decoder, run.share
    if share is None:
        return TensorSharedMean()
    law = theory.CountLaw(n, share, n if run.planned else None)
    if kind.adapts:
        return TensorAdaptiveSpatial(not kind.unbiased, law, device)
    T = kind.T(Belief(), n)
    return TensorSpatial("one" if T is None else T, law, device)
