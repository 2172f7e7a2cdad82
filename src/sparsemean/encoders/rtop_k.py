"""rTop-k: k at random out of the r largest (Barnes et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State
from sparsemean.encoders.size import Size, checked, count
from sparsemean.errors import InvalidInput
from sparsemean.kernels import largest
from sparsemean.payload import Layout, Part, Payload
from sparsemean.sampling import Key, coordinates
from sparsemean.theory.arguments import finite


@dataclass(frozen=True)
class RTopK(Encoder):
    """k of the r = ⌈over · k⌉ largest entries, drawn at random, sent as they are. Biased.

    Parameters
    ----------
    k : int or float
        How many coordinates a payload has: a count, or a share of the dimension strictly between 0 and 1.
    over : float, default 2
        How many times k the candidates are; 1 is ``TopK``.

    >>> RTopK(10, over=2.0).candidates(100)
    20
    """

    k: Size
    over: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checked(self.k))
        object.__setattr__(self, "over", finite(self.over, "over"))
        if self.over < 1.0:
            raise InvalidInput(f"over is how many candidates stand behind each value sent, at least 1; got {self.over}")

    @property
    def facts(self) -> EncoderFacts:
        return EncoderFacts(raw=True, uniform=False, unbiased=False)

    def candidates(self, dim: int) -> int:
        """r, never more than the dimension."""
        return int(min(float(dim), np.ceil(self.over * count(self.k, dim, least=1))))

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return (Layout("listed", count(self.k, dim, least=1)),)

    def omega(self, dim: int) -> None:
        return None

    def encode(self, vector: Floats, key: Key, state: State) -> Payload:
        ranked = largest(vector, self.candidates(vector.size))
        chosen = ranked[np.sort(coordinates(key, ranked.size, count(self.k, vector.size, least=1)))]
        return Payload((Part(chosen, vector[chosen]),))
