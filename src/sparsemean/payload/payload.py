"""What a node sends, before it is bytes: parts of (coordinates, values, scale), and how each part travels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from sparsemean._types import Doubles, Floats, Ints
from sparsemean.kernels import Sample
from sparsemean.kernels.sample import drawn, drawn_at
from sparsemean.kernels.tiled import Tiled
from sparsemean.payload.noise import Levels, Octaves
from sparsemean.payload.wrapped import Wrapped
from sparsemean.sampling import Draw, Drawn, Independent, Key


@dataclass(frozen=True)
class Part:
    """Values at distinct coordinates; the vector it stands for is ``scale · values`` there and 0 elsewhere.

    Attributes
    ----------
    where : array of int, Sample or Tiled
        The coordinates. A sample stays undrawn until somebody asks for them; a list by tile takes two bytes for each.
    values : array
        One value for each, float32 or float64.
    scale : float, default 1
        What the values are multiplied by.
    noise : float, Levels or Octaves, default 0
        Variance of the rounding noise in each value, before the scale; the receiver's, 0 at the sender.
    wanted_scale : float, optional
        The scale that would suit few-bit values of a draw with a common scale; the receiver's.
    kept : array, optional
        What is remembered of the node in place of the values, where that is not the same; the receiver's.
    wrapped : Wrapped, optional
        What gives the values once the receiver's expectation is known (modulo values); the receiver's.
    """

    where: Ints | Sample | Tiled
    values: Floats
    scale: float = 1.0
    noise: Levels | Octaves | float = 0.0
    wanted_scale: float | None = None
    kept: Floats | None = None
    wrapped: Wrapped | None = None

    @property
    def remembered(self) -> Floats:
        """What a memory of the last values holds after it."""
        return self.values if self.kept is None else self.kept

    @cached_property
    def coordinates(self) -> Ints:
        """Where the values stand."""
        if isinstance(self.where, Tiled):
            return self.where.coordinates
        return drawn(self.where) if isinstance(self.where, Sample) else self.where

    def at(self, numbers: Ints) -> Ints:
        """Where some of the values stand, by their ascending numbers."""
        if isinstance(self.where, Tiled):
            return self.where.some(numbers)
        return drawn_at(self.where, numbers) if isinstance(self.where, Sample) else self.where[numbers]


@dataclass(frozen=True, slots=True)
class Payload:
    """One or more parts; the vector they stand for is the sum of theirs.

    Attributes
    ----------
    parts : tuple of Part
    choice : int
        Which of the run's encoders made it, where nodes have several to choose from.
    slots : int
        How many slots the draw has in which its node has one; 0 where the node drew independently.
    wanted_scale : float, optional
        The scale that would suit its few-bit values (``Plan.scale``), where nodes share one out.
    split : bool
        Whether the parts are classes of the coordinates of one that travels, as U and S are in a round of an epoch
        after the first: none has a coordinate of another.
    """

    parts: tuple[Part, ...]
    choice: int = 0
    slots: int = 0
    wanted_scale: float | None = None
    split: bool = False

    @property
    def held_bytes(self) -> int:
        """What it takes while it waits: few-bit values are long by then."""
        if len(self.parts) == 1 and isinstance(self.parts[0].where, Sample) and isinstance(self.parts[0].noise, float):
            return self.parts[0].values.nbytes  # the common case, a thousand times a round
        held: dict[int, int] = {}
        for part in self.parts:
            noise = () if isinstance(part.noise, float) else part.noise.arrays
            codes = () if part.wrapped is None else part.wrapped.arrays
            where = (part.where.at, part.where.places) if isinstance(part.where, Tiled) else (part.where,)
            arrays = (*where, part.values, *noise, *codes)
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

    Attributes
    ----------
    where : {"all", "signs", "seeded", "shared", "listed", "levelled", "packed"}
        How the receiver learns the coordinates:

        - ``all``: every coordinate in order; ``signs``: the same, and values travel as one magnitude and signs
        - ``seeded``: re-drawn from the key (seed, round, node); ``shared``: from the key (seed, round)
        - ``listed``: packed on the wire
        - ``levelled``: packed on the wire, and values of the smallest magnitude travel as signs
        - ``packed``: on the wire in a number of bytes that is known, since all ``count`` of them are sent
    count : int
        How many values there are: at most, where coordinates are ``listed`` or ``levelled``; else exactly.
    scale : float, default 1
        Of the part; of a draw that is not uniform, the inverse of the probability of each of its coordinates instead.
    part : int, default 0
        Number of the random part, which tells the keys of several in one payload apart.
    draw : Draw, default Independent()
        The law by which coordinates are drawn, where the part is ``seeded`` or ``shared``.
    """

    where: Literal["all", "signs", "seeded", "shared", "listed", "levelled", "packed"]
    count: int
    scale: float = 1.0
    part: int = 0
    draw: Draw = Independent()

    def drawn(self, key: Key, dim: int) -> tuple[Drawn, ...]:
        """The coordinates that this key draws, where the part is ``seeded`` or ``shared``."""
        return self.draw.drawn(key.shared() if self.where == "shared" else key, dim, self.count)

    def gathered(self, key: Key, vector: Floats) -> tuple[tuple[Drawn, Floats], ...]:
        """The same, with the values of a vector there."""
        return self.draw.gathered(key.shared() if self.where == "shared" else key, self.count, vector)

    @property
    def fixed(self) -> bool:
        """Whether coordinates do not travel, so that every payload has the same length (but for a common scale)."""
        return self.where in ("all", "signs", "seeded", "shared")
