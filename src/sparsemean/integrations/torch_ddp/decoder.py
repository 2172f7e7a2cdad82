"""Mean and Spatial (``sparsemean.decoding.decoders``) in torch."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from sparsemean import Run, theory
from sparsemean.core import Belief, count_given_sent
from sparsemean.integrations.torch_ddp.news import News


class Decoder(ABC):
    """News of a round → their mean; ``state`` is what it learns, in place."""

    state: dict[str, Tensor]

    @abstractmethod
    def decoded(self, news: News) -> tuple[Tensor, Tensor | None]:
        """The estimated mean of the news, and ``News.quality`` where ranks sample independently."""


class Plain(Decoder):
    """The sum over n, for coordinates that all ranks share."""

    def __init__(self) -> None:
        self.state = {}

    def decoded(self, news: News) -> tuple[Tensor, None]:
        return news.sums / news.n, None


class Weighted(Decoder):
    """Coordinate j times g(M_j)/n."""

    def __init__(self, n: int, share: float, device: torch.device) -> None:
        self.state = {}
        self._share = share
        self._sent = torch.from_numpy(count_given_sent(n, share)).to(device)

    @abstractmethod
    def _gains(self, news: News) -> Tensor:
        """g(0), …, g(n) for this round."""

    def decoded(self, news: News) -> tuple[Tensor, Tensor]:
        gains = self._gains(news)
        return gains[news.counts] * news.sums / news.n, news.quality(gains, self._sent, self._share)


class Fixed(Weighted):
    """T is known beforehand: plain Rand-k, where it is 1, and Spatial."""

    def __init__(self, T: theory.FixedWeighting, n: int, share: float, device: torch.device) -> None:
        super().__init__(n, share, device)
        self._fixed = torch.from_numpy(theory.gains(T, n, share)).to(device)

    def _gains(self, news: News) -> Tensor:
        return self._fixed


class Adaptive(Weighted):
    """T = 1 + L(m − 1), L the likeness that the round before shows, or this one (``now``)."""

    def __init__(self, now: bool, n: int, share: float, device: torch.device) -> None:
        super().__init__(n, share, device)
        self._now = now
        self.state = {"likeness": torch.zeros((), dtype=torch.float64, device=device)}

    def _gains(self, news: News) -> Tensor:
        before = self.state["likeness"].clone()
        shown = self.state["likeness"].copy_(news.likeness(self._share, before))
        others = torch.arange(news.n, dtype=torch.float64, device=shown.device)
        inverse = 1.0 / (1.0 + (shown if self._now else before) * others)
        gains = inverse / (self._sent[1:] * inverse).sum()
        return torch.cat([gains.new_zeros(1), gains])


def decoder_for(run: Run, n: int, device: torch.device) -> Decoder:
    """The decoder of a run's scheme, for n ranks."""
    kind, share = run.scheme.decoder, run.share
    if share is None:
        return Plain()
    if kind.adapts:
        return Adaptive(not kind.unbiased, n, share, device)
    T = kind.T(Belief(), n)
    return Fixed("one" if T is None else T, n, share, device)
