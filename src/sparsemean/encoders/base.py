"""What an encoder is: vector → Payload, and the facts that decide what may decode it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sparsemean._types import Floats
from sparsemean.payload import Layout, Payload
from sparsemean.sampling import Key

State: TypeAlias = Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class EncoderFacts:
    """What holds for every payload of an encoder.

    - ``raw``: the values are x at their coordinates, so a memory may be subtracted from them
    - ``uniform``: every coordinate is sent with probability exactly k/d, and the law of how many send it is known, so
      Spatial may reweight; ``Estimate.error_se`` and ``actual_error_interval`` take coordinates of one node as drawn
      nearly independently, too
    - ``unbiased``: the expectation of the payload's vector is x
    - ``offset``: the values are differences to a state that node and server both keep
    - ``skips``: a node may send a header alone, meaning "as the server remembers me"
    - ``planned``: which coordinates a node sends depends on its slot, so that it needs a plan
    - ``remembered``: the values may be differences to what the server remembers of the node, which keeps it as well
    - ``relative``: the values may be differences to a mean that was broadcast; the payload says to which
    - ``epochs``: with which probability a node sends a coordinate depends on the past, as the plan says it
    """

    raw: bool
    uniform: bool
    unbiased: bool
    offset: bool = False
    skips: bool = False
    planned: bool = False
    epochs: bool = False
    relative: bool = False
    remembered: bool = False

    @property
    def in_step(self) -> bool:
        """Whether the server must hold the very state the node builds on."""
        return self.offset or self.skips or self.remembered


class Encoder(ABC):
    """Turns a vector into a payload. Members are frozen dataclasses: their fields are what both sides agree on."""

    @property
    @abstractmethod
    def facts(self) -> EncoderFacts:
        """What a decoder or memory may rely on."""

    @property
    def choices(self) -> tuple[Encoder, ...]:
        """What a node may encode with."""
        return (self,)

    @abstractmethod
    def layout(self, dim: int) -> tuple[Layout, ...]:
        """How each part of a payload travels."""

    @abstractmethod
    def omega(self, dim: int) -> float | None:
        """Smallest known ω with E‖C(x) − x‖² ≤ ω‖x‖² for every x; None where the encoder is biased."""

    @abstractmethod
    def encode(self, vector: Floats, key: Key, state: State) -> Payload | None:
        """The payload for this vector; None where the node may skip. Pure: the same arguments give the same payload."""


class Stateful(Encoder):
    """An encoder whose node remembers something from round to round."""

    @abstractmethod
    def start(self, dim: int) -> State:
        """The state before the first round."""

    @abstractmethod
    def advance(self, vector: Floats, payload: Payload | None, state: State) -> State:
        """The state after this payload was delivered; ``payload`` is what the server decoded from the bytes."""
