"""The outer optimiser: how the mean of the workers' movements moves the broadcast, the same bits at each of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from sparsemean._types import Floats
from sparsemean.errors import InvalidInput
from sparsemean.theory.arguments import finite


@dataclass
class Position:
    """What all workers have in common.

    Attributes
    ----------
    round : int
        The exchange that comes next.
    step : int
        Local steps since the last exchange.
    at : (d,) float32 array
        The broadcast: the parameters that all began the round with.
    velocity : (d,) float32 array
        The outer optimiser's momentum; empty where it has none.
    """

    round: int
    step: int
    at: Floats
    velocity: Floats

    def digest(self) -> bytes:
        """Sixteen bytes that change with the round, the broadcast or the velocity; not with the step."""
        told = hashlib.blake2b(self.round.to_bytes(8, "little"), digest_size=16)
        for array in (self.at, self.velocity):
            told.update(array.data)
        return told.digest()


@dataclass(frozen=True)
class OuterSGD:
    """SGD with Nesterov momentum on −mean, as ``torch.optim.SGD`` does it: v ← μv + m, then x ← x + η(m + μv).

    In single additions and multiplications of float32, which every processor rounds alike.

    Parameters
    ----------
    rate : float, default 0.7
        η. DiLoCo's (Douillard et al. 2023); with momentum 0 and rate 1 it is LocalSGD.
    momentum : float, default 0.9
        μ, in [0, 1).
    nesterov : bool, default True
        Without, x ← x + ηv.

    >>> sgd, position = OuterSGD(1.0, 0.0), Position(0, 50, np.zeros(2, np.float32), np.zeros(0, np.float32))
    >>> sgd.advance(position, np.array([1.0, 2.0], np.float32))
    >>> position.at, position.round, position.step
    (array([1., 2.], dtype=float32), 1, 0)
    """

    rate: float = 0.7
    momentum: float = 0.9
    nesterov: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", finite(self.rate, "rate"))
        object.__setattr__(self, "momentum", finite(self.momentum, "momentum"))
        if self.rate <= 0.0 or not 0.0 <= self.momentum < 1.0:
            raise InvalidInput(f"rate is above 0 and momentum in [0, 1), got {self.rate} and {self.momentum}")

    def start(self, at: Floats) -> Position:
        """The position before the first round, at these parameters."""
        return Position(0, 0, at, np.zeros(at.size if self.momentum else 0, np.float32))

    def advance(self, position: Position, mean: Floats | None) -> None:
        """A round is over, with this mean of the workers' movements; None where it ended without one."""
        if mean is not None:
            rate, momentum = np.float32(self.rate), np.float32(self.momentum)
            step = mean
            if self.momentum:
                position.velocity *= momentum
                position.velocity += mean
                step = mean + momentum * position.velocity if self.nesterov else position.velocity
            position.at += rate * step
        position.round, position.step = position.round + 1, 0
