"""How ranks may average their gradients, each counting the bytes it hands to collectives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook, fp16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import sparsemean as sm
from sparsemean.integrations.torch_ddp import State, hook

WARM_UP = 2  # dense steps before compression, for all


@contextmanager
def counted_all_reduces() -> Iterator[list[int]]:
    """The bytes of every tensor handed to all_reduce; PyTorch's own hooks do not count them."""
    seen: list[int] = []
    reduce = dist.all_reduce

    def counting(given: Tensor, *positional: Any, **named: Any) -> Any:
        seen.append(given.nbytes)
        return reduce(given, *positional, **named)

    dist.all_reduce = counting
    try:
        yield seen
    finally:
        dist.all_reduce = reduce


class Method(ABC):
    """A way to average gradients."""

    name: str

    @abstractmethod
    def register(self, model: DistributedDataParallel, seed: int) -> State | None:
        """Make the model average its gradients in this way; what is random of it by this seed."""


@dataclass(frozen=True)
class Dense(Method):
    """All of every gradient, in float32."""

    name: str = "dense"

    def register(self, model: DistributedDataParallel, seed: int) -> None:
        model.register_comm_hook(None, allreduce_hook)


@dataclass(frozen=True)
class Fp16(Method):
    """All of every gradient, in 16 bits: a hook that PyTorch ships."""

    name: str = "fp16"

    def register(self, model: DistributedDataParallel, seed: int) -> None:
        model.register_comm_hook(None, fp16_compress_hook)


@dataclass(frozen=True)
class PowerSGD(Method):
    """Low-rank factors with error feedback: the compressing hook that PyTorch ships."""

    rank: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"PowerSGD, rank {self.rank}"

    def register(self, model: DistributedDataParallel, seed: int) -> None:
        options = {"start_powerSGD_iter": WARM_UP, "min_compression_rate": 1, "random_seed": seed}
        state = PowerSGDState(None, self.rank, **options)
        model.register_comm_hook(state, powerSGD_hook)


@dataclass(frozen=True)
class Ours(Method):
    """A few coordinates of every gradient, by a scheme of this library."""

    name: str
    scheme: sm.Scheme

    def register(self, model: DistributedDataParallel, seed: int) -> State:
        state = State(self.scheme, model, seed=seed, start_iter=WARM_UP)
        model.register_comm_hook(state, hook)
        return state
