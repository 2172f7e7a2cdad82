"""One parameter tensor in a collective: what a rank sends of its gradient, and the mean of what all ranks sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from sparsemean import Run
from sparsemean.integrations.torch_ddp.decoder import decoder_for
from sparsemean.integrations.torch_ddp.draw import coordinates
from sparsemean.integrations.torch_ddp.innovations import Innovations
from sparsemean.integrations.torch_ddp.kinds import tensor_values
from sparsemean.integrations.torch_ddp.memory import memory_for
from sparsemean.integrations.torch_ddp.sums import total
from sparsemean.kernels import Sample
from sparsemean.payload import Layout
from sparsemean.sampling import Key, Plan, stream_of
from sparsemean.wire.values.dither import LABEL as DITHER


class Exchange(ABC):
    """How the ranks' gradients of one parameter tensor become their mean.

    Attributes
    ----------
    run : Run, optional
        What it is compressed by; None for a tensor that is sent whole.
    state : dict of str to Tensor
        What it remembers from step to step, updated in place; it goes into checkpoints.
    bound : bool
        Whether the error in it is an upper bound.
    """

    run: Run | None = None
    state: dict[str, Tensor]
    bound: bool = False

    @property
    def quality(self) -> Tensor | None:
        """``innovations.quality`` of the last step, where it is known."""
        return None

    @abstractmethod
    def sent(self, gradient: Tensor, rank: int, step: int) -> Tensor:
        """What this rank sends for its flat gradient."""

    @abstractmethod
    def mean(self, received: Tensor, step: int) -> Tensor:
        """The estimated mean of the ranks' gradients.

        ``received`` is the sum of what the ranks sent, or has a row for each of them.
        """

    def write_mean(self, received: Tensor, step: int, gradient: Tensor) -> None:
        """Put the mean in place of this rank's flat gradient."""
        gradient.copy_(self.mean(received, step))

    def restore(self, saved: Mapping[str, Tensor]) -> None:
        """Take the state of a checkpoint."""
        for name, tensor in self.state.items():
            tensor.copy_(saved[name])


class GatheredWhole(Exchange):
    """All-gather of whole tensors, in their own type."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.state = {}
        self._dtype = dtype

    def sent(self, gradient: Tensor, rank: int, step: int) -> Tensor:
        return gradient.view(torch.uint8)

    def mean(self, received: Tensor, step: int) -> Tensor:
        values = received.clone(memory_format=torch.contiguous_format).view(self._dtype)
        return values.sum(dim=0, dtype=torch.float64) / received.shape[0]


class ReducedWhole(Exchange):
    """All-reduce of whole tensors, in the type of the values."""

    def __init__(self, n: int, dtype: torch.dtype) -> None:
        self.state = {}
        self._n, self._dtype = n, dtype

    def sent(self, gradient: Tensor, rank: int, step: int) -> Tensor:
        return gradient.to(self._dtype)

    def mean(self, received: Tensor, step: int) -> Tensor:
        return received / self._n


def coordinates_of(run: Run, ranks: range, n: int, step: int, device: torch.device) -> Tensor:
    """(ranks, k): the coordinates that each of these ranks sends; its number is its slot among all n of them."""
    (layout,) = run.layout
    if layout.where == "all":
        return torch.arange(run.dim, device=device).expand(len(ranks), -1)
    keys = [run.key(str(rank), step, Plan(rank, n) if run.planned else None) for rank in ranks]
    if layout.where == "shared":
        return coordinates([_sample(layout, keys[0], run.dim)], device).expand(len(keys), -1)
    return coordinates([_sample(layout, key, run.dim) for key in keys], device)


def _sample(layout: Layout, key: Key, dim: int) -> Sample:
    ((where, *_),) = layout.drawn(key, dim)
    assert isinstance(where, Sample)  # a State refuses other draws
    return where


def packed(run: Run, gradient: Tensor, rank: int, n: int, step: int) -> Tensor:
    """The bytes of a rank's payload."""
    kind = tensor_values(run.scheme.values)
    where = coordinates_of(run, range(rank, rank + 1), n, step, gradient.device)[0]
    return kind.pack(gradient[where].to(kind.dtype), _stream(run, rank, step))


def _stream(run: Run, rank: int, step: int) -> list[int]:
    return stream_of(run.key(str(rank), step), DITHER)


class ReducedSample(Exchange):
    """All-reduce of the values at coordinates that all ranks share."""

    run: Run

    def __init__(self, run: Run, n: int, device: torch.device) -> None:
        self.state = {}
        self.run, self._n, self._device = run, n, device
        self._dtype = tensor_values(run.scheme.values).dtype

    def sent(self, gradient: Tensor, rank: int, step: int) -> Tensor:
        return gradient[self._places(step)].to(self._dtype)

    def mean(self, received: Tensor, step: int) -> Tensor:
        scaled = received * (self.run.layout[0].scale / self._n)
        return received.new_zeros(self.run.dim).scatter_(0, self._places(step), scaled)

    def _places(self, step: int) -> Tensor:
        return coordinates_of(self.run, range(1), self._n, step, self._device)[0]


class GatheredPayloads(Exchange):
    """All-gather of the ranks' payloads, decoded as ``sparsemean.Server`` does: torch operations, on any device."""

    run: Run

    def __init__(self, run: Run, n: int, device: torch.device) -> None:
        self.run, self._n, self._device = run, n, device
        self._values = tensor_values(run.scheme.values)
        self._memory = memory_for(run.scheme.memory, n, run.dim, self._values.dtype, device)
        self._decoder = decoder_for(run, n, device)
        self.state, self.bound = {**self._memory.state, **self._decoder.state}, self._decoder.bound
        self._quality: Tensor | None = None

    @property
    def quality(self) -> Tensor | None:
        return self._quality

    def sent(self, gradient: Tensor, rank: int, step: int) -> Tensor:
        return packed(self.run, gradient, rank, self._n, step)

    def mean(self, received: Tensor, step: int) -> Tensor:
        ranks, layout = range(self._n), self.run.layout[0]
        where = coordinates_of(self.run, ranks, self._n, step, self._device)
        values, noise = self._values.unpack(received, layout.count, [_stream(self.run, rank, step) for rank in ranks])
        y = (values.to(torch.float64) - self._memory.expected(where)) * layout.scale
        innovations = Innovations(where, y, self.run.dim, total(noise.expand_as(y)) * layout.scale**2)
        innovation, self._quality = self._decoder.decoded(innovations)
        mean = self._memory.mean() + innovation
        self._memory.learn(where, values, values.isfinite().all())
        return mean
