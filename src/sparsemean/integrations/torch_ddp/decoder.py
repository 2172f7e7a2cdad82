"""The decoders Mean and Spatial (``sparsemean.decoding.decoders``) on tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from sparsemean import Run, theory
from sparsemean.decoding.decoders import Belief
from sparsemean.integrations.torch_ddp.innovations import Innovations
from sparsemean.theory.binomial import count_given_sent
from sparsemean.theory.estimated import LEAST_RATIO
from sparsemean.theory.scaling import likeliest_count, mean_and_deviations, scaled_inverse
from sparsemean.theory.spatial import coefficients_of, constants_of, pair_ratios
from sparsemean.theory.weighting import linear_weights


class TensorDecoder(ABC):
    """Innovations of a round → their estimated mean. ``state`` is what it learns, updated in place."""

    state: dict[str, Tensor]

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
    n : int
        Number of ranks.
    share : float
        p, the share of its coordinates that a rank sends.
    device : torch.device
        Where gradients are.
    """

    def __init__(self, T: theory.FixedWeighting, n: int, share: float, device: torch.device) -> None:
        self.state = {}
        self._share = share
        self._gains = torch.from_numpy(theory.gains(T, n, share)).to(device)
        self._own, self._cross = theory.error_coefficients(T, n, share)

    def decoded(self, innovations: Innovations) -> tuple[Tensor, Tensor]:
        mean = _reweighted(innovations, self._gains)
        return mean, innovations.quality(self._own, self._cross, self._share)


class TensorAdaptiveSpatial(TensorDecoder):
    """g(M_j) Σ_i y_ij / n with T(m) = 1 + ρ(m − 1)/(n − 1), ρ estimated from what arrives.

    ``state["likeness"]`` is ρ/(n − 1) as the last round showed it; checkpoints know it by this name.

    Parameters
    ----------
    now : bool
        Whether ρ is that of the round itself (``Spatial("estimated")``, biased) or of the one before
        (``Spatial("learned")``, unbiased).
    n, share, device
        As in ``TensorSpatial``.
    """

    def __init__(self, now: bool, n: int, share: float, device: torch.device) -> None:
        sent = count_given_sent(n, share)
        self.state = {"likeness": torch.zeros((), dtype=torch.float64, device=device)}
        self._now, self._share = now, share
        self._likeliest, self._mode = likeliest_count(n, share), int(sent.argmax())
        self._others = torch.arange(n, dtype=torch.float64, device=device)
        self._sent, self._ratios = (torch.from_numpy(table).to(device) for table in (sent, pair_ratios(n, share)))

    def decoded(self, innovations: Innovations) -> tuple[Tensor, Tensor]:
        before = self.state["likeness"].clone()
        shown = self.state["likeness"].copy_(innovations.correlation(self._share, before))
        ratio = ((shown if self._now else before) * (innovations.n - 1)).clamp(min=LEAST_RATIO)
        inverse = scaled_inverse(linear_weights(ratio, self._others), self._likeliest, xp=torch)
        mean, excess = mean_and_deviations(inverse, self._sent, self._mode, torch)
        own, cross = coefficients_of(*constants_of(excess, self._sent, self._ratios, self._share), self._share)
        return _reweighted(innovations, inverse / mean), innovations.quality(own, cross, self._share)


def _reweighted(innovations: Innovations, gains: Tensor) -> Tensor:
    """g(M_j) Σ_i y_ij / n, from g(0), …, g(n)."""
    return gains[innovations.counts] * innovations.sums / innovations.n


def decoder_for(run: Run, n: int, device: torch.device) -> TensorDecoder:
    """The decoder of a run's scheme, for n ranks."""
    kind, share = run.scheme.decoder, run.share
    if share is None:
        return TensorSharedMean()
    if kind.adapts:
        return TensorAdaptiveSpatial(not kind.unbiased, n, share, device)
    T = kind.T(Belief(), n)
    return TensorSpatial("one" if T is None else T, n, share, device)
