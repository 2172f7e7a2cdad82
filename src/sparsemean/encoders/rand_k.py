"""Rand-k: k coordinates drawn at random from the key, so that only the values travel."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State
from sparsemean.encoders.size import Size, checked, count
from sparsemean.errors import IncompatibleScheme, InvalidInput
from sparsemean.payload import Layout, Part, Payload
from sparsemean.sampling import Draw, Epochs, Independent, Key
from sparsemean.sampling.draws import LATER


@dataclass(frozen=True)
class RandK(Encoder):
    """k coordinates, each included with probability exactly k/d; scaled by d/k it is unbiased (Section 2).

    Parameters
    ----------
    k : int or float
        How many coordinates a payload has: a count, or a share of the dimension strictly between 0 and 1.
    shared : bool, default False
        All nodes draw the same coordinates in a round, as an all-reduce needs; the error is then (d/k − 1)‖x̄‖², and
        Spatial has nothing to reweight.
    draw : Draw, default Independent()
        The law by which coordinates are chosen: each node by itself; ``Balanced()``, so that all coordinates are sent
        equally often; or ``Epochs()``, so that each node goes through all of them before it begins again.

    >>> RandK(0.1).omega(100)
    9.0
    """

    k: Size
    shared: bool = False
    draw: Draw = field(default=Independent(), metadata={LATER: True})

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checked(self.k))
        if not isinstance(self.draw, Draw):
            raise InvalidInput(f"draw is a Draw, such as Balanced(), not {self.draw!r}")
        if self.shared and self.draw.planned:
            raise IncompatibleScheme("with shared=True all nodes send the same coordinates; drop it, or the draw")

    def __repr__(self) -> str:
        # As it was before there were draws: checkpoints of the DDP hook know a scheme by this text.
        draw = "" if self.draw == Independent() else f", draw={self.draw!r}"
        return f"RandK(k={self.k!r}, shared={self.shared!r}{draw})"

    @property
    def facts(self) -> EncoderFacts:
        uniform, epochs = not self.shared and self.draw.uniform, isinstance(self.draw, Epochs)
        return EncoderFacts(raw=True, uniform=uniform, unbiased=True, planned=self.draw.planned, epochs=epochs)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        k = count(self.k, dim, least=1)
        return (Layout("shared" if self.shared else "seeded", k, scale=dim / k, draw=self.draw),)

    def omega(self, dim: int) -> float:
        return dim / count(self.k, dim, least=1) - 1.0

    def encode(self, vector: Floats, key: Key, state: State) -> Payload:
        (layout,) = self.layout(vector.size)
        return Payload(tuple(Part(each.where, values, each.scale) for each, values in layout.gathered(key, vector)))
