"""The memories of ``sparsemean.memory`` on tensors; every rank keeps the same one, and learns the same."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from sparsemean import Hybrid, PerNode, SharedStable
from sparsemean.integrations.torch_ddp.sums import sums_at, total
from sparsemean.kernels.at import hybrid_expectation
from sparsemean.kernels.fit_sums import fit_products
from sparsemean.memory import Memory
from sparsemean.memory.fit import hybrid_coefficients, hybrid_mean, unit_ratio
from sparsemean.memory.hybrid import ROUNDING


class TensorMemory(ABC):
    """What is expected of each rank. ``state`` holds all of it by the names that checkpoints know, updated in place."""

    state: dict[str, Tensor]

    @abstractmethod
    def expected(self, where: Tensor) -> Tensor | float:
        """(n, k): what is subtracted from the values that n ranks sent at these coordinates."""

    @abstractmethod
    def mean(self) -> Tensor | float:
        """The mean over ranks of what is expected of them."""

    @abstractmethod
    def learn(self, where: Tensor, values: Tensor, finite: Tensor) -> None:
        """Update the state from what came, unless ``finite`` is false: a value is an infinity or NaN."""


class TensorNothing(TensorMemory):
    """No memory: expects 0."""

    def __init__(self) -> None:
        self.state = {}

    def expected(self, where: Tensor) -> float:
        return 0.0

    def mean(self) -> float:
        return 0.0

    def learn(self, where: Tensor, values: Tensor, finite: Tensor) -> None:
        pass


class TensorPerNode(TensorMemory):
    """PerNode: what each rank last sent, n · d numbers."""

    def __init__(self, n: int, dim: int, dtype: torch.dtype, device: torch.device) -> None:
        self.state = {"last": torch.zeros(n, dim, dtype=dtype, device=device)}

    def expected(self, where: Tensor) -> Tensor:
        return self.state["last"].gather(1, where).to(torch.float64)

    def mean(self) -> Tensor:
        last = self.state["last"]
        return last.sum(dim=0, dtype=torch.float64) / last.shape[0]

    def learn(self, where: Tensor, values: Tensor, finite: Tensor) -> None:
        last = self.state["last"]
        last.scatter_(1, where, torch.where(finite, values, last.gather(1, where)))


class TensorSharedStable(TensorMemory):
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

    def learn(self, where: Tensor, values: Tensor, finite: Tensor) -> None:
        average, factor = self.state["average"], self.state["factor"]
        values, at = values.to(torch.float64), average[where]
        fitted = unit_ratio(total(values * at), total(at * at), factor, torch)
        sums = sums_at(where, values, average.numel())
        heard = sums_at(where, torch.ones_like(values), average.numel())
        average.copy_(torch.where(finite & (heard > 0), sums / heard, average))
        factor.copy_(torch.where(finite, fitted, factor))


class TensorHybrid(TensorMemory):
    """Hybrid: a·c_j + g·(B_ij − c_j) where rank i was heard at j, u·c_j where not; 5 · n · d bytes and 8 · d."""

    def __init__(self, n: int, dim: int, dtype: torch.dtype, device: torch.device) -> None:
        self.state = {
            "last": torch.zeros(n, dim, dtype=dtype, device=device),
            "heard": torch.zeros(n, dim, dtype=torch.bool, device=device),
            "common": torch.zeros(dim, dtype=torch.float64, device=device),
            "factors": torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64, device=device),
        }

    def expected(self, where: Tensor) -> Tensor:
        return hybrid_expectation(*self._at(where), self._coefficients())

    def mean(self) -> Tensor:
        heard = self.state["heard"].sum(dim=0, dtype=torch.float64) / len(self.state["heard"])
        last = self.state["last"].sum(dim=0, dtype=torch.float64) / len(self.state["last"])
        return hybrid_mean(self.state["common"], last, heard, self._coefficients())

    def learn(self, where: Tensor, values: Tensor, finite: Tensor) -> None:
        factors, last, heard, common = (self.state[name] for name in ("factors", "last", "heard", "common"))
        factors.copy_(torch.where(finite, self._fitted(where, values.to(torch.float64)), factors))
        last.scatter_(1, where, torch.where(finite, values, last.gather(1, where)))
        heard.scatter_(1, where, heard.gather(1, where) | finite)
        number = heard.sum(dim=0, dtype=torch.float64)
        common.copy_(torch.where(number > 0, last.sum(dim=0, dtype=torch.float64) / number, 0.0))

    def _coefficients(self) -> tuple[Tensor, Tensor, Tensor]:
        """(a, g, u)."""
        on_common, own, unheard = self.state["factors"].unbind()
        return on_common, own, unheard

    def _at(self, where: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """c, B and whether the rank was heard, at these coordinates."""
        last, heard = (self.state[name].gather(1, where).to(torch.float64) for name in ("last", "heard"))
        return self.state["common"][where], last, heard

    def _fitted(self, where: Tensor, values: Tensor) -> Tensor:
        """(a, g, u) by least squares on what came."""
        products = fit_products(values, *self._at(where), ROUNDING, torch)
        return torch.stack(hybrid_coefficients([*map(total, products)], self._coefficients(), torch))


def memory_for(kind: Memory, n: int, dim: int, dtype: torch.dtype, device: torch.device) -> TensorMemory:
    """The memory of a scheme on tensors.

    Parameters
    ----------
    kind : Memory
        The scheme's memory.
    n, dim : int
        Number of ranks, and length of their vectors.
    dtype : torch.dtype
        Of the values that ranks send, and so of what is kept of them.
    device : torch.device
        Where gradients are.
    """
    if isinstance(kind, PerNode):
        return TensorPerNode(n, dim, dtype, device)
    if isinstance(kind, Hybrid):
        return TensorHybrid(n, dim, dtype, device)
    if isinstance(kind, SharedStable):
        return TensorSharedStable(dim, device)
    return TensorNothing()
