"""Memories for gradients on the CPU: what the kernels read and change, as tensors that go into checkpoints."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from sparsemean import Hybrid, Run
from sparsemean.kernels.one_pass import PassSums, Remembered
from sparsemean.memory import Nothing
from sparsemean.memory.fit import hybrid_coefficients
from sparsemean.memory.hybrid import ROUNDING
from sparsemean.wire.values import value_kind


class HostMemory:
    """The memories PerNode and Hybrid, as tensors that the kernels change where they stand.

    ``state`` has the names of ``TensorPerNode`` and ``TensorHybrid``, and ``sums``: Σ_i B_ij as ``memory.ColumnSums``
    keeps it, which a sum of the rows differs from in last digits. Checkpoints of before lack it.
    """

    def __init__(self, run: Run, n: int) -> None:
        self._hybrid = isinstance(run.scheme.memory, Hybrid)
        self._kept: dict[str, Tensor] = {}
        if isinstance(run.scheme.memory, Nothing):
            return
        dtype = torch.from_numpy(np.empty(0, value_kind(run.scheme.values).dtype)).dtype
        self._kept = {"last": torch.zeros(n, run.dim, dtype=dtype), "sums": torch.zeros(run.dim, dtype=torch.float64)}
        if self._hybrid:
            self._kept["heard"] = torch.zeros(n, run.dim, dtype=torch.bool)
            self._kept["factors"] = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)

    @property
    def state(self) -> dict[str, Tensor]:
        """All of it; the average of the rows is made anew."""
        known = self.remembered()
        return {**self._kept, **({"common": torch.from_numpy(known.common)} if known and self._hybrid else {})}

    def restore(self, saved: Mapping[str, Tensor]) -> None:
        """Take what ``state`` was."""
        for name, tensor in self._kept.items():
            if name in saved:
                tensor.copy_(saved[name])
            else:
                tensor.zero_()
                for row in self._kept["last"]:
                    tensor += row

    def remembered(self) -> Remembered | None:
        """What the kernels change."""
        if not self._kept:
            return None
        last, sums = self._kept["last"].numpy(), self._kept["sums"].numpy()
        if not self._hybrid:
            return Remembered(last, sums, np.empty((0, 0), np.uint8), np.zeros(3), ROUNDING)
        heard, factors = self._kept["heard"].numpy().view(np.uint8), self._kept["factors"].numpy()
        return Remembered(last, sums, heard, factors, ROUNDING)

    def fit(self, found: PassSums) -> None:
        """Go by the coefficients of this round from now on."""
        if self._hybrid:
            on_common, own, unheard = self._kept["factors"].numpy()[:, None]
            fitted = hybrid_coefficients(tuple(found.fits[:, None]), (on_common, own, unheard))
            self._kept["factors"].copy_(torch.from_numpy(np.concatenate(fitted)))
