"""The reference: what nodes that hear the broadcast subtract and the server adds again, by default the last mean."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sparsemean._types import Floats
from sparsemean.codec import out_of_step, reference_tag
from sparsemean.errors import NonFiniteValues
from sparsemean.payload import Part, Payload
from sparsemean.wire.values import bounded


class Reference(NamedTuple):
    """What payloads of a round may be relative to.

    Attributes
    ----------
    round : int
        That round.
    mean : array of float32, optional
        The last mean before it, or what ``Server.refer_to`` was given; read-only. None before the first, and where a
        node could not subtract it.
    tag : int
        What stands for it in payloads (``codec.reference_tag``); 0 for None.
    """

    round: int
    mean: Floats | None = None
    tag: int = 0

    @staticmethod
    def of(round: int, mean: Floats) -> Reference:
        """This mean as the reference of a round."""
        with np.errstate(over="ignore"):
            single = mean.astype(np.float32)
        if not bounded(single):
            return Reference(round)
        single.flags.writeable = False
        return Reference(round, single, reference_tag(single))

    def check(self, basis: int, node: str) -> None:
        """Refuse a payload that is relative to another reference; 0 is one that is relative to none."""
        if basis not in (0, self.tag):
            raise out_of_step(node, relative=True)

    def absolute(self, payload: Payload, basis: int, node: str) -> Payload:
        """The payload with values of x, where those that came are relative to the reference that ``basis`` names."""
        self.check(basis, node)
        mean = self.mean
        if mean is None or not basis:
            return payload
        return replace(payload, parts=tuple(_absolute(part, mean) for part in payload.parts))


def _absolute(part: Part, mean: Floats) -> Part:
    with np.errstate(over="ignore"):
        values = part.values + mean[part.coordinates]
    if not np.isfinite(values).all():
        raise NonFiniteValues("a value and its reference together are beyond float32; check the node's vector")
    return replace(part, values=values)
