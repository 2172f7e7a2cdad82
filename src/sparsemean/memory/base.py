"""What a memory is: the server's expectation of each node, fixed before the round, learnt from after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sparsemean._types import Doubles, Floats, Ints
from sparsemean.encoders import Encoder
from sparsemean.kernels import Blend
from sparsemean.memory.rows import InMemory, Shelf
from sparsemean.payload import Payload
from sparsemean.payload.blocks import Blocks
from sparsemean.state_tree import Tree

Past = Literal["kept", "faded", "shrunk", "dropped"]
"""What becomes of what is known of nodes at the end of a round."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What one node sent in a round; ``payload`` is None where it said "unchanged"."""

    node: str
    weight: Doubles
    payload: Payload | None


class MemoryState(ABC):
    """What a memory holds for one server, or for one range of coordinates. Updated in place, since arrays are large.

    A member defines ``remembered``, ``mean``, ``learn``, ``state`` and ``restore``. All else has defaults, for a memory
    that expects the same of all nodes and keeps nothing of any one.
    """

    @abstractmethod
    def remembered(self, node: str) -> Floats | float:
        """All of b_i: what stands for the node where it sent nothing."""

    @abstractmethod
    def mean(self, weights: Mapping[str, Doubles]) -> Doubles | float:
        """Weighted mean of b_i over these nodes: O(d), and O(d) more for each whose weight is not what it last was."""

    @abstractmethod
    def learn(self, round: int, estimate: Doubles | None) -> None:
        """The round is over: learn from what was taken; ``estimate`` is None where the round was skipped.

        Rows on a shelf stay as they are until ``settle``, so that a journal can write down the change first.
        """

    @abstractmethod
    def state(self) -> Tree:
        """All that is known between two rounds, but for the rows on the shelf."""

    @abstractmethod
    def restore(self, state: Tree) -> None:
        """Restore what ``state()`` returned."""

    def expected(self, node: str, coordinates: Ints) -> Floats | float:
        """b_i at these coordinates: what is subtracted from the values that came."""
        known = self.remembered(node)
        return known if isinstance(known, float) else known[coordinates]

    def last_heard(self, node: str, coordinates: Ints) -> tuple[Doubles, Doubles, Doubles]:
        """Where the node was heard before (1 or 0), what it sent there last, and the average over nodes.

        For a memory that tells one from the other; by default nothing was heard.
        """
        nothing = np.zeros(coordinates.size)
        return nothing, nothing, nothing

    def rows(self, nodes: Sequence[str]) -> Sequence[Floats | float | None]:
        """For each node the array that ``expected`` picks from, or the one number it gives; None where it does neither.

        Where there is a ``blend``, the rows are what goes into it.
        """
        return [self.remembered(node) for node in nodes]

    def blend(self, nodes: Sequence[str]) -> Blend | None:
        """How the rows of these nodes are mixed with what all have in common; None where they are taken as they are."""
        return None

    def take(self, arrivals: Sequence[Arrival]) -> None:  # noqa: B027
        """Gather what nodes sent in the open round; what is expected of anybody changes only with ``learn``."""

    @property
    def fits(self) -> Doubles:
        """Sums, additive over ranges of coordinates, that ``learn`` fits coefficients to; empty where it has none."""
        return np.zeros((0, 0))

    def pool(self, fits: Doubles) -> None:  # noqa: B027
        """Let ``learn`` go by these sums of all ranges, where the memory is of one of them."""

    def begin_anew(self, round: int, estimate: Doubles | None, past: Past) -> None:  # noqa: B027
        """In place of ``learn``: drop what is known of every node; the estimate stands for all of them.

        For values too coarse to be remembered as they are. What came in the round is dropped as well, or kept
        "shrunk" towards the estimate as far as the fit says. Where it is worth more than what came before, nothing is
        dropped, but the latter is shrunk towards the average over nodes: "faded". By default nothing is known of any
        node.
        """

    def forget(self, node: str) -> None:  # noqa: B027
        """Drop what is known of a node; no-op for a node never seen."""

    def begin_afresh(self, node: str) -> None:
        """Drop what is known of a node that sends its first payload anew: what is expected of others stays."""
        self.forget(node)

    @property
    def node_bytes(self) -> int:
        """What remembering one more node takes."""
        return 0

    def changes(self) -> Tree:
        """What ``settle`` is going to write, by place; None where there are no rows."""
        return None

    def settle(self) -> None:  # noqa: B027
        """Write what was learnt into the rows on the shelf."""

    def replay(self, changes: Tree) -> None:  # noqa: B027
        """Write changes to their places again, whoever they belonged to; doing it twice does no harm."""


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """What a memory asks of the encoder, and how it remembers.

    Parameters
    ----------
    needs_raw : bool, default False
        It subtracts values of x, so the encoder must send x itself.
    per_node : bool, default False
        It remembers every node by itself, and keeps the payloads of a round until its end.
    adds_offset : bool, default False
        It keeps the state that a Difference encoder builds on.
    verbatim : bool, default False
        What it remembers of a node is what the node last sent, as it was.
    recalls : bool, default False
        It tells what a node sent last (``MemoryState.last_heard``), for encoders that build on that.
    forgets : bool, default False
        What has grown old is as if it had never been sent.
    feedback : float, default 0
        Which part of the estimate's squared error comes back in what it expects of all nodes. Where the decoder
        multiplies that by more than its inverse, the server warns that the memory will diverge.
    """

    needs_raw: bool = False
    per_node: bool = False
    adds_offset: bool = False
    verbatim: bool = False
    recalls: bool = False
    forgets: bool = False
    feedback: float = 0.0

    @property
    def stands_in(self) -> bool:
        """Whether it can stand for a node that is absent."""
        return (self.needs_raw or self.adds_offset) and not self.forgets


@dataclass(frozen=True, slots=True)
class MemorySpec:
    """What a memory is built for.

    Attributes
    ----------
    blocks : Blocks
        Of the vectors, or of the range of them that the memory is for.
    encoder : Encoder
        What nodes encode with.
    dtype : numpy.dtype
        Of the values that come.
    shelf : Shelf
        Where rows are kept; by default in the memory of the process.
    dim : int, optional
        Length of the whole vectors, where the blocks are a range of them.
    """

    blocks: Blocks
    encoder: Encoder
    dtype: np.dtype[np.floating[Any]]
    shelf: Shelf = InMemory()
    dim: int | None = None

    @property
    def most_sent(self) -> int:
        """How many of these coordinates one payload can have."""
        return min(max(self._sent), self.blocks.dim)

    @property
    def shares(self) -> list[float]:
        """Which part of the whole vector each of the encoders sends, at most."""
        return [sent / self._dim for sent in self._sent]

    @property
    def _dim(self) -> int:
        return self.blocks.dim if self.dim is None else self.dim

    @property
    def _sent(self) -> list[int]:
        return [sum(layout.count for layout in encoder.layout(self._dim)) for encoder in self.encoder.choices]


class Memory(ABC):
    """The kind of memory a scheme has. Members are frozen dataclasses."""

    @property
    @abstractmethod
    def facts(self) -> MemoryFacts:
        """What it asks of the encoder, and how it remembers."""

    @abstractmethod
    def start(self, spec: MemorySpec) -> MemoryState:
        """The empty memory."""
