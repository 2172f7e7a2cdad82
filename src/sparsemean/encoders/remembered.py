"""Nodes that keep state: each sends how its vector differs from what the server remembers of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State, Stateful
from sparsemean.encoders.wrapping import require_stateless
from sparsemean.errors import IncompatibleScheme, InvalidInput
from sparsemean.payload import Layout, Part, Payload
from sparsemean.sampling import Key
from sparsemean.theory.arguments import finite

LARGEST = np.finfo(np.float32).max


@dataclass(frozen=True)
class Remembered(Stateful):
    """Sends values v of x − f·B at coordinates, B being what the server's ``Hybrid`` memory holds of the node.

    The server counts f·B + v, which is x but for the rounding of v, so that decoder and memory see samples of x. What
    both sides then remember there is f·B + step · v. With values of relative noise ω, all coordinates sent and vectors
    at rest, ‖x − B‖² is multiplied by ω/(1 + ω) in every round, as with ``Difference``; other than there, a share of
    the coordinates may be sent, by any draw, and nodes that are alike help each other.

    The node moves on with the receipt of its payload. Where one is lost, node and server are out of step: the server
    refuses the next payload, and says what to do.

    Parameters
    ----------
    encoder : Encoder
        Encodes the difference: one that sends values of x at coordinates, such as RandK or Identity.
    factor : {0, 1}, default 1
        f. With 0 the node sends x itself.
    step : float, optional
        In (0, 1]; by default 1/(1 + ω) of the run's value kind.

    >>> from sparsemean.encoders import RandK
    >>> Remembered(RandK(0.1)).omega(100)
    9.0
    """

    encoder: Encoder
    factor: int = 1
    step: float | None = None

    def __post_init__(self) -> None:
        require_stateless(self.encoder, "Remembered", epochs=True)
        if not self.encoder.facts.raw:
            raise IncompatibleScheme(
                f"Remembered wraps an encoder that sends values of x, such as RandK or Identity, not {self.encoder!r}"
            )
        if self.factor not in (0, 1) or isinstance(self.factor, bool | float):
            raise InvalidInput(f"factor is 0 or 1, got {self.factor!r:.100}")
        if self.step is not None:
            object.__setattr__(self, "step", finite(self.step, "step"))
            if not 0.0 < self.step <= 1.0:
                raise InvalidInput(f"step lies in (0, 1], got {self.step}; leave it out for 1/(1 + ω)")

    @property
    def facts(self) -> EncoderFacts:
        return replace(self.encoder.facts, remembered=True)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return self.encoder.layout(dim)

    def omega(self, dim: int) -> float | None:
        return self.encoder.omega(dim)

    def for_values(self, omega: float) -> Remembered:
        """This encoder with the step that suits values of relative noise ω, where it has none."""
        if self.step is not None:
            return self
        return replace(self, step=1.0 / (1.0 + omega))

    def start(self, dim: int) -> State:
        return {"last": np.zeros(dim, np.float32)}

    def encode(self, vector: Floats, key: Key, state: State) -> Payload | None:
        return self.encoder.encode(vector - state["last"] if self.factor else vector, key, {})

    def advance(self, vector: Floats, payload: Payload | None, state: State) -> State:
        last = state["last"].copy()
        for part in payload.parts if payload else ():
            last[part.coordinates] = self.absolute(part, last[part.coordinates]).remembered
        return {"last": last}

    def absolute(self, part: Part, last: Floats) -> Part:
        """The part as values of x, where ``last`` is B at its coordinates; node and server compute the same."""
        last = np.float32(self.factor) * last
        with np.errstate(over="ignore"):  # of absurd values, which stay finite on both sides
            values, kept = (last + factor * part.values for factor in (np.float32(1.0), np.float32(self.step or 1.0)))
        return replace(part, values=np.clip(values, -LARGEST, LARGEST), kept=np.clip(kept, -LARGEST, LARGEST))
