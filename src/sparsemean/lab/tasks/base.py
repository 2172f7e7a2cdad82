"""What a task is: a computation whose every round needs one thing of its nodes, the mean of their vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from sparsemean._types import Doubles, Floats

State = TypeVar("State")


class Task(ABC, Generic[State]):
    """Vectors of the nodes → mean → new state. A state is a value: nothing here changes one that was handed out."""

    @property
    @abstractmethod
    def nodes(self) -> int:
        """How many nodes take part, all of them in every round."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of a node's vector."""

    @property
    @abstractmethod
    def blocks(self) -> tuple[int, ...] | None:
        """Sizes of the blocks that have weights of their own; None for one block."""

    @property
    def largest(self) -> float:
        """Beyond this magnitude of vectors or their mean, a run has diverged; float32 values carry a little more."""
        return 1e30

    @abstractmethod
    def start(self, seed: int) -> State:
        """The state before the first round."""

    @abstractmethod
    def vectors(self, state: State, round: int) -> Floats:
        """The nodes' vectors of this round, shape (nodes, dim)."""

    @abstractmethod
    def weights(self, state: State) -> Doubles | None:
        """What each node counts for, shape (nodes,) or (nodes, blocks); None where all count the same."""

    @abstractmethod
    def step(self, state: State, mean: Doubles) -> State:
        """The state after the server was given this mean; what stands in a block without weight is ignored."""

    @abstractmethod
    def objective(self, state: State) -> float:
        """What the task wants to be small."""

    @abstractmethod
    def metrics(self, state: State) -> dict[str, float]:
        """Other numbers worth a column, such as the accuracy on test data; may be empty."""
