"""HttpLink: workers whose rounds are those of ``sparsemean serve``."""

from __future__ import annotations

import logging
from typing import Any

from sparsemean._types import Floats
from sparsemean.errors import ConflictingPayload, InvalidInput, WrongRound
from sparsemean.integrations.http import HttpNode
from sparsemean.integrations.torch_outer.link import Link
from sparsemean.integrations.torch_outer.optimiser import OuterSGD, Position
from sparsemean.integrations.torch_outer.tensors import WRONG, bytes_in, tensor_of

log = logging.getLogger("sparsemean.torch_outer")


class HttpLink(Link):
    """Movements go to a service over HTTP, which decides by its policy when a round is over.

    The service knows means alone, neither the model nor the outer optimiser. A worker that missed rounds, or is new,
    asks for the means of those, and makes the outer steps by itself: it needs the model that all began with, or any
    checkpoint. A movement that comes too late for its round is dropped.

    Parameters
    ----------
    node : HttpNode
        Its service plays the run that ``run_of(module, scheme, optimiser)`` made of the model that all begin with.

    Attributes
    ----------
    missed : int
        Rounds that ended without this worker's movement since it joined.
    """

    def __init__(self, node: HttpNode) -> None:
        self.node = node
        self.missed = 0

    def open(self, start: Position, settings: bytes, seed: int) -> None:
        run = self.node.run
        if run.dim != start.at.size:
            raise InvalidInput(f"the service's vectors have {run.dim} entries, the model {start.at.size} parameters")
        self._seed = seed

    def join(self, position: Position, optimiser: OuterSGD) -> bool:
        if self.node.run.seed != self._seed:
            raise InvalidInput(
                "the service's run was made for a model that begins otherwise, or for another outer optimiser; give "
                "all workers those of run_of(module, scheme, optimiser)"
            )
        means = self._means(position.round, self._open(position.round))
        for mean in means:
            optimiser.advance(position, mean)
        return bool(means)

    def exchange(self, round: int, movement: Floats | None) -> list[Floats | None]:
        number = self._open(round)
        if number == round:
            if movement is None:
                return []
            try:
                self.node.send(movement, round)
                number = self.node.round(round).number
            except WrongRound:
                number = self.node.round(round).number
                self._late(round)
            except ConflictingPayload:  # sent by this worker before it died, with other data
                log.warning("round %d has another movement of this worker already; it goes by that", round)
                number = self.node.round(round).number
        else:
            self._late(round)
        return self._means(round, number)

    def _late(self, round: int) -> None:
        self.missed += 1
        log.warning("round %d ended before this worker's movement came, which is dropped", round)

    def _open(self, round: int) -> int:
        """The open round, which is this one or a later one."""
        number = self.node.round().number
        if number < round:
            raise InvalidInput(
                f"the service is at round {number}, this worker at {round}: it began anew, without its journal; begin "
                "all workers with the broadcast that they have, and a new run of it"
            )
        return number

    def _means(self, first: int, end: int) -> list[Floats | None]:
        """The means of these rounds."""
        found: list[Floats | None] = []
        for round in range(first, end):
            told = self.node.mean_of(round)
            found.append(None if told is None else told.mean)
        self.sent, self.received = self.node.sent_bytes, self.node.heard_bytes
        return found

    def state_dict(self) -> dict[str, Any]:
        """The worker's start, and what its encoder keeps."""
        return {"seed": self._seed.to_bytes(8, "little").hex(), "client": tensor_of(self.node.client.save())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        try:
            seed, client = state["seed"], state["client"]
            self._seed = int.from_bytes(bytes.fromhex(seed), "little")
        except (KeyError, TypeError, ValueError):
            raise InvalidInput(f"{WRONG}: it is not of an HttpLink") from None
        self.node.restore(bytes_in(client))
