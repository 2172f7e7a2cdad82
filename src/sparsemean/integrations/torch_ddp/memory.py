"""The memories of ``sparsemean.memory`` in torch; every rank keeps the same one, and learns the same."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from sparsemean import Hybrid, PerNode, SharedStable
from sparsemean.core import Memory as Kind
from sparsemean.integrations.torch_ddp.fit import unit_pair, unit_ratio
from sparsemean.integrations.torch_ddp.sums import added, total

ROUNDING = 1e-9  # B − c below this says nothing of g


class Memory(ABC):
    """What is expected of each rank; ``state`` holds all of it, and is updated in place."""

    state: dict[str, Tensor]

    @abstractmethod
    def expected(self, where: Tensor) -> Tensor | float:
        """(n, k): what is subtracted from the values that n ranks sent at these coordinates."""

    @abstractmethod
    def mean(self) -> Tensor | float:
        """The mean over ranks of what is expected of them."""

    @abstractmethod
    def learn(self, where: Tensor, values: Tensor, sound: Tensor) -> None:
        """Take in what came, unless a value of it is no finite number (``sound`` is false)."""


class Nothing(Memory):
    """Expects 0."""

    def __init__(self) -> None:
        self.state = {}

    def expected(self, where: Tensor) -> float:
        return 0.0

    def mean(self) -> float:
        return 0.0

    def learn(self, where: Tensor, values: Tensor, sound: Tensor) -> None:
        pass


class LastValues(Memory):
    """PerNode: what each rank last sent, n · d numbers."""

    def __init__(self, n: int, dim: int, dtype: torch.dtype, device: torch.device) -> None:
        self.state = {"last": torch.zeros(n, dim, dtype=dtype, device=device)}

    def expected(self, where: Tensor) -> Tensor:
        return self.state["last"].gather(1, where).to(torch.float64)

    def mean(self) -> Tensor:
        last = self.state["last"]
        return last.sum(dim=0, dtype=torch.float64) / last.shape[0]

    def learn(self, where: Tensor, values: Tensor, sound: Tensor) -> None:
        last = self.state["last"]
        last.scatter_(1, where, torch.where(sound, values, last.gather(1, where)))


class Averages(Memory):
    """SharedStable: a · c, c_j the average of the values last received at coordinate j; d numbers."""

    def __init__(self, dim: int, device: torch.device) -> None:
        self.state = {
            "average": torch.zeros(dim, dtype=torch.float64, device=device),
            "factor": torch.ones((), dtype=torch.float64, device=device),
        }

    def expected(self, where: Tensor) -> Tensor:
        return self.mean()[where]

    def mean(self) -> Tensor:
        return self.state["factor"] * self.state["average"]

    def learn(self, where: Tensor, values: Tensor, sound: Tensor) -> None:
        average, factor = self.state["average"], self.state["factor"]
        values, at = values.to(torch.float64), average[where]
        fitted = unit_ratio(total(values * at), total(at * at), factor)
        sums = added(where, values, average.numel())
        heard = added(where, torch.ones_like(values), average.numel())
        average.copy_(torch.where(sound & (heard > 0), sums / heard, average))
        factor.copy_(torch.where(sound, fitted, factor))


class Both(Memory):
    """Hybrid: a·c_j + g·(B_ij − c_j) where rank i was heard at j, u·c_j where not; 5 · n · d bytes and 8 · d."""

    def __init__(self, n: int, dim: int, dtype: torch.dtype, device: torch.device) -> None:
        self.state = {
            "last": torch.zeros(n, dim, dtype=dtype, device=device),
            "heard": torch.zeros(n, dim, dtype=torch.bool, device=device),
            "common": torch.zeros(dim, dtype=torch.float64, device=device),
            "factors": torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64, device=device),
        }

    def expected(self, where: Tensor) -> Tensor:
        together, own, unheard = self.state["factors"].unbind()
        common, last, heard = self._at(where)
        return unheard * common + heard * ((together - own - unheard) * common + own * last)

    def mean(self) -> Tensor:
        together, own, unheard = self.state["factors"].unbind()
        heard = self.state["heard"].sum(dim=0, dtype=torch.float64) / len(self.state["heard"])
        last = self.state["last"].sum(dim=0, dtype=torch.float64) / len(self.state["last"])
        return self.state["common"] * (unheard + (together - own - unheard) * heard) + own * last

    def learn(self, where: Tensor, values: Tensor, sound: Tensor) -> None:
        factors, last, heard, common = (self.state[name] for name in ("factors", "last", "heard", "common"))
        factors.copy_(torch.where(sound, self._fitted(where, values.to(torch.float64)), factors))
        last.scatter_(1, where, torch.where(sound, values, last.gather(1, where)))
        heard.scatter_(1, where, heard.gather(1, where) | sound)
        number = heard.sum(dim=0, dtype=torch.float64)
        common.copy_(torch.where(number > 0, last.sum(dim=0, dtype=torch.float64) / number, 0.0))

    def _at(self, where: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """c, B and whether the rank was heard, at these coordinates."""
        last, heard = (self.state[name].gather(1, where).to(torch.float64) for name in ("last", "heard"))
        return self.state["common"][where], last, heard

    def _fitted(self, where: Tensor, x: Tensor) -> Tensor:
        """(a, g, u) by least squares on what came."""
        c, last, heard = self._at(where)
        r = heard * (last - c)
        r = torch.where(r.abs() > ROUNDING * (last.abs() + c.abs()), r, 0.0)
        features = (heard * c * c, c * r, r * r, heard * x * c, x * r, (1 - heard) * c * c, (1 - heard) * x * c)
        *of_heard, length, along = (total(feature) for feature in features)
        together, own, unheard = self.state["factors"].unbind()
        pair = unit_pair(of_heard, (together, own))
        return torch.stack([*pair, unit_ratio(along, length, unheard)])


def memory_for(kind: Kind, n: int, dim: int, dtype: torch.dtype, device: torch.device) -> Memory:
    """The memory of a scheme, for n ranks and vectors of ``dim``."""
    if isinstance(kind, PerNode):
        return LastValues(n, dim, dtype, device)
    if isinstance(kind, Hybrid):
        return Both(n, dim, dtype, device)
    if isinstance(kind, SharedStable):
        return Averages(dim, device)
    return Nothing()
