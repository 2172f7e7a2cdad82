"""Top-k within chunks (SparseLoCo, Sarfi et al. 2025): the largest entries of each stretch of the vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State
from sparsemean.encoders.size import Size, checked, count
from sparsemean.kernels import largest
from sparsemean.payload import Layout, Part, Payload
from sparsemean.sampling import Key
from sparsemean.theory.arguments import whole


@dataclass(frozen=True)
class ChunkedTopK(Encoder):
    """The largest entries of each chunk, as they are, the first of equal ones. Biased; the coordinates travel too.

    No chunk goes without, however small its values are, and no sort spans the vector. A payload has exactly k values,
    so its length is known. SparseLoCo sends 64 of 4,096 entries with two bits each and keeps the rest for later rounds:
    ``Scheme(ErrorFeedback(ChunkedTopK(64 / 4096)), values="2-bit")``.

    Parameters
    ----------
    k : int or float
        How many coordinates a payload has: a count, or a share of the dimension strictly between 0 and 1. A chunk from
        a to b has ⌊bk/d⌋ − ⌊ak/d⌋ of them: its part of k, rounded down or up.
    chunk : int, default 4096
        Entries of a chunk; the last may be shorter.

    >>> ChunkedTopK(2, chunk=3).encode(np.array([7.0, -8.0, 9.0, 0.0, 2.0, 1.0]), Key(0, 0, "a"), {}).dense(6)
    array([0., 0., 9., 0., 2., 0.])
    """

    k: Size
    chunk: int = 4096

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checked(self.k))
        object.__setattr__(self, "chunk", whole(self.chunk, "chunk", 1))

    @property
    def facts(self) -> EncoderFacts:
        return EncoderFacts(raw=True, uniform=False, unbiased=False)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return (Layout("packed", count(self.k, dim)),)

    def omega(self, dim: int) -> None:
        return None

    def shares(self, dim: int) -> Iterator[tuple[int, int, int]]:
        """Where each chunk begins and ends, and how many of its entries are sent."""
        k, before = count(self.k, dim), 0
        for start in range(0, dim, self.chunk):
            stop = min(start + self.chunk, dim)
            after = stop * k // dim
            yield start, stop, after - before
            before = after

    def encode(self, vector: Floats, key: Key, state: State) -> Payload:
        chosen = np.concatenate([start + largest(vector[start:stop], k) for start, stop, k in self.shares(vector.size)])
        return Payload((Part(chosen, vector[chosen]),))
