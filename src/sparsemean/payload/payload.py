"""What a node sends, before it is bytes: parts of (coordinates, values, scale), and how each part travels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sparsemean.kernels import Sample
from sparsemean.kernels.sample import drawn
from sparsemean.payload.noise import Levels, Octaves

Floats = npt.NDArray[np.floating[Any]]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """Values at distinct coordinates; the vector it stands for is ``scale · values`` there and 0 elsewhere.

    ``noise`` is the variance of the rounding noise in each value, before the scale; the receiver's, 0 at the sender.
    """

    where: Ints | Sample  # a sample stays undrawn until somebody asks for its coordinates
    values: Floats
    scale: float = 1.0
    noise: Levels | Octaves | float = 0.0

    @cached_property
    def coordinates(self) -> Ints:
        """Where the values stand."""
        return drawn(self.where) if isinstance(self.where, Sample) else self.where


@dataclass(frozen=True, slots=True)
class Payload:
    """One or more parts; the vector they stand for is the sum of theirs.

    ``choice`` says which of the run's encoders made it, where nodes have several to choose from.
    """

    parts: tuple[Part, ...]
    choice: int = 0

    @property
    def held_bytes(self) -> int:
        """What it takes while it waits: few-bit values are long by then."""
        if len(self.parts) == 1 and isinstance(self.parts[0].where, Sample) and isinstance(self.parts[0].noise, float):
            return self.parts[0].values.nbytes  # the common case, a thousand times a round
        held: dict[int, int] = {}
        for part in self.parts:
            noise = () if isinstance(part.noise, float) else part.noise.arrays
            arrays = (part.where, part.values, *noise)
            held |= {id(array): array.nbytes for array in arrays if isinstance(array, np.ndarray)}
        return sum(held.values())

    def dense(self, dim: int) -> Doubles:
        """The vector this payload stands for.

        >>> Payload((Part(np.array([2]), np.array([5.0]), scale=2.0),)).dense(4)
        array([ 0.,  0., 10.,  0.])
        """
        vector = np.zeros(dim)
        for part in self.parts:
            vector[part.coordinates] += part.scale * part.values.astype(np.float64)
        return vector


@dataclass(frozen=True, slots=True)
class Layout:
    """How one part travels; both sides derive it from the encoder and the dimension, so it is never on the wire.

    ``where`` says how the receiver learns the coordinates:

    - ``all``: every coordinate in order
    - ``seeded``: re-drawn from the key (seed, round, node); ``shared``: from the key (seed, round)
    - ``listed``: packed on the wire
    - ``levelled``: packed on the wire, and values of the smallest magnitude travel as signs

    ``count`` is the exact number of values for the first three, the largest possible one for the others.
    """

    where: Literal["all", "seeded", "shared", "listed", "levelled"]
    count: int
    scale: float = 1.0
    part: int = 0

    @property
    def fixed(self) -> bool:
        """Whether every payload with this layout has the same length."""
        return self.where in ("all", "seeded", "shared")
