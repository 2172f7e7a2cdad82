"""The base class of tasks: computations that need, in every round, the mean of the nodes' vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from sparsemean._types import Doubles, Floats

State = TypeVar("State")


class Task(ABC, Generic[State]):
    """Vectors of the nodes → mean → new state. A state is a value: no method changes one that was handed out.

    Parameters
    ----------
    nodes
        Number of nodes; all of them take part in every round.
    dim
        Length of a node's vector.
    blocks
        Sizes of the blocks that have weights of their own; None for one block.
    """

    largest: float = 1e30
    """Where a vector or a mean has a larger magnitude, the run has diverged; float32 values carry a little more."""

    def __init__(self, nodes: int, dim: int, blocks: tuple[int, ...] | None = None) -> None:
        self.nodes, self.dim, self.blocks = nodes, dim, blocks

    @abstractmethod
    def start(self, seed: int) -> State:
        """The state before the first round."""

    @abstractmethod
    def vectors(self, state: State, round: int) -> Floats:
        """The nodes' vectors of this round, shape (nodes, dim)."""

    def weights(self, state: State) -> Doubles | None:
        """The weight of each node, shape (nodes,) or (nodes, blocks); None where all are equal."""
        return None

    @abstractmethod
    def step(self, state: State, mean: Doubles) -> State:
        """The state after a round with this mean; entries of a block without weight are ignored."""

    @abstractmethod
    def objective(self, state: State) -> float:
        """The number that the task minimises."""

    def metrics(self, state: State) -> dict[str, float]:
        """Other numbers for the table, such as the accuracy on test data."""
        return {}
