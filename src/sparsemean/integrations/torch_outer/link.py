"""Link: how workers exchange their movements, whatever carries the bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from sparsemean._types import Floats
from sparsemean.errors import SparseMeanError
from sparsemean.integrations.torch_outer.optimiser import OuterSGD, Position


class LinkBroken(SparseMeanError):
    """The workers can no longer reach each other this way; the worker's state is as it was before the call."""


class Link(ABC):
    """A worker's connection to the others.

    Attributes
    ----------
    sent, received : int
        Bytes of payloads and of means so far, as they left or reached this worker; joining is not counted.
    """

    sent: int = 0
    received: int = 0

    @abstractmethod
    def open(self, start: Position, settings: bytes, seed: int) -> None:
        """Get ready for vectors like this.

        Parameters
        ----------
        start
            Where the worker's model begins.
        settings
            What all workers must agree on: names and shapes of parameters, the outer optimiser.
        seed
            A number made of both, for a run of these workers alone (``run_of``).
        """

    @abstractmethod
    def join(self, position: Position, optimiser: OuterSGD) -> bool:
        """Bring the position to where the others are; returns whether it changed."""

    @abstractmethod
    def exchange(self, round: int, movement: Floats | None) -> list[Floats | None]:
        """Send a movement, and return the means of this round and of any others that are over by now.

        Parameters
        ----------
        round
            That of the position.
        movement
            None leaves this worker out of the round.

        Returns
        -------
        A mean for each round from ``round`` on; None where a round ended without one.
        """

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """What has to be kept with a checkpoint: tensors and plain values."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what ``state_dict`` returned."""
