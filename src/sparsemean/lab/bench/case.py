"""A case of the benchmark: a scheme at one size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sparsemean.encoders import Stateful
from sparsemean.memory import MemorySpec
from sparsemean.payload.blocks import Blocks
from sparsemean.run import Run
from sparsemean.schemes import named, scheme_name
from sparsemean.wire.values import value_kind, value_name

SHORT = 1_000


@dataclass(frozen=True)
class Case:
    """A scheme for n nodes with float32 vectors of length d, of which each sends the share k/d.

    >>> case = Case("rand-k", 1_000_000, 0.01, 16)
    >>> str(case), case.k
    ('rand-k, d=1,000,000, k/d=1 %, n=16', 10000)
    """

    scheme: str
    dim: int
    share: float
    nodes: int
    values: str = "float32"

    @property
    def k(self) -> int:
        """Coordinates a node sends."""
        return max(1, round(self.share * self.dim))

    @cached_property
    def run(self) -> Run:
        """The run that is measured; the seed does not matter, nor does the ratio that an oracle is told."""
        told = {"ratio": (self.nodes - 1) / 2} if self.scheme == "rand-k-spatial-opt" else {}
        return Run(named(scheme_name(self.scheme), self.k, values=value_name(self.values), **told), self.dim)

    @property
    def size(self) -> tuple[int, int, int]:
        """What baselines depend on."""
        return self.dim, self.k, self.nodes

    @property
    def needed_bytes(self) -> int:
        """What measuring it takes, without the table of all vectors: a guess, rather too high."""
        payloads = 2 * self.nodes * self.run.payload_bytes
        baselines = 40 * self.nodes * self.k
        state = 24 * self.nodes * self.dim if isinstance(self.run.scheme.encoder, Stateful) else 0
        return payloads + baselines + state + self.nodes * self._remembered_bytes + 60 * self.dim

    @property
    def _remembered_bytes(self) -> int:
        """What the server keeps of each node; a memory of a short range of the vectors tells."""
        scheme, short = self.run.scheme, Blocks((min(self.dim, SHORT),))
        memory = scheme.memory.start(MemorySpec(short, scheme.encoder, value_kind(self.values).dtype, dim=self.dim))
        return memory.node_bytes * self.dim // short.dim

    @property
    def encode_bytes(self) -> int:
        """The least that encoding touches: it reads the vector, every entry of which may be NaN, and writes."""
        return 4 * self.dim + self.run.payload_bytes

    @property
    def decode_bytes(self) -> int:
        """The least that a round touches: reads payloads, writes and reads sums and counts, writes the mean."""
        return self.nodes * self.run.payload_bytes + (2 * 12 + 8) * self.dim

    def __str__(self) -> str:
        kind = "" if self.values == "float32" else f" {self.values}"
        return f"{self.scheme}{kind}, d={self.dim:,}, k/d={100 * self.share:.3g} %, n={self.nodes}"
