"""Bounds on what one node can do to the mean."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.payload import Part, Payload


@dataclass(frozen=True)
class Clip:
    """Values above ``value`` in magnitude are cut to it, then a payload longer than ``norm`` is shortened to it.

    The norm is that of the values as they were sent, before a scale such as d/k; x itself may be longer.

    >>> Clip(norm=1.0).clipped(Payload((Part(np.array([0, 5]), np.array([3.0, 4.0])),))).parts[0].values
    array([0.6, 0.8])
    """

    norm: float | None = None
    value: float | None = None

    def __post_init__(self) -> None:
        for bound in (self.norm, self.value):
            if bound is not None and not (isinstance(bound, int | float) and 0 < bound < math.inf):
                raise InvalidInput(f"a bound is a number above 0, got {bound!r}")
        if self.norm is None and self.value is None:
            raise InvalidInput("Clip takes norm=, value= or both")

    def clipped(self, payload: Payload) -> Payload:
        """The payload within the bounds; the very same one where it was within them."""
        parts = [self._cut(part) for part in payload.parts]
        if self.norm is not None:
            length = math.sqrt(sum(float(np.sum(np.square(part.values, dtype=np.float64))) for part in parts))
            if length > self.norm:
                parts = [_scaled(part, self.norm / length) for part in parts]
        same = all(part is given for part, given in zip(parts, payload.parts, strict=True))
        return payload if same else replace(payload, parts=tuple(parts))

    def _cut(self, part: Part) -> Part:
        if self.value is None or not part.values.size or np.max(np.abs(part.values)) <= self.value:
            return part
        return replace(part, values=np.clip(part.values, -self.value, self.value))


def _scaled(part: Part, factor: float) -> Part:
    values = (part.values * factor).astype(part.values.dtype)
    return replace(part, values=values, noise=part.noise * factor**2)
