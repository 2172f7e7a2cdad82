"""How workers may exchange their movements: the schemes of both ways, and the outer optimiser."""

from __future__ import annotations

from dataclasses import dataclass

import sparsemean as sm
from sparsemean.integrations.torch_outer import OuterSGD

DILOCO = OuterSGD(0.7, 0.9)
PLAIN = OuterSGD(1.0, 0.0)


def sparse(entries: int, decay: float = 1.0) -> sm.Scheme:
    """So many of each 4,096 entries with two bits each, the rest kept for later rounds."""
    return sm.named("error-feedback-chunked-top-k", k=entries / 4096, values="2-bit", decay=decay)


def one_bit_of(share: float) -> sm.Scheme:
    """So many of the coordinates, drawn anew each time, with a bit each; unbiased."""
    return sm.Scheme(sm.RandK(share), values="eden-1")


@dataclass(frozen=True)
class Method:
    """One row of the table.

    Attributes
    ----------
    up, down : Scheme
        How a movement travels, and how the mean does.
    optimiser : OuterSGD
    gathers : bool
        Workers have each other's payloads in place of a mean from a hub: a worker's way down is the others' payloads.
    lost : tuple of int
        Rounds in which one worker is away, having been killed with all it had but for the data.
    """

    name: str
    up: sm.Scheme
    down: sm.Scheme
    optimiser: OuterSGD = DILOCO
    gathers: bool = False
    lost: tuple[int, ...] = ()


def methods(dim: int) -> list[Method]:
    """All rows; dense first."""
    dense, half, one = (sm.named("identity", values=values) for values in ("float32", "float16", "eden-1"))
    auto, fewer = (sm.named("auto", bytes=max(150, 4 * dim // share)) for share in (80, 128))
    return [
        Method("dense", dense, dense),
        Method("fp16", half, half),
        Method("eden-1 both ways", one, one),
        Method("auto, and 1 bit of 62 % back", auto, one_bit_of(0.62)),
        Method("auto, and 1 bit of 38 % back", fewer, one_bit_of(0.38)),
        Method("sparse both ways, no momentum", sparse(256), sparse(256), PLAIN),
        Method("SparseLoCo's recipe", sparse(64, 0.95), dense, PLAIN, gathers=True),
        Method("auto, and 1 bit of 62 % back, one worker killed", auto, one_bit_of(0.62), lost=(8, 9, 10, 11)),
    ]
