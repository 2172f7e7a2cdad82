"""What values tell of options that were not chosen: their energy, and how far they are from what is remembered.

Of every payload some values are looked at, which its key chooses: so what is told does not depend on who came first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsemean._types import Doubles, Floats, Ints
from sparsemean.memory import Arrival, MemoryState
from sparsemean.payload import Part
from sparsemean.payload.blocks import Blocks
from sparsemean.sampling import Key, words

VALUES, LEAST = 1 << 18, 1 << 10
"""About so many values of a round are looked at, evenly over those who have a slot; but so many of each payload."""
SUMS = (
    *("squares", "relative", "own", "peak", "relative_peak", "own_peak", "noise"),
    *("values", "heard", "from_own", "from_average", "heard_noise", "from_others", "unheard_noise", "looked_at"),
)
"""Rows of ``Summary.observed``. All but the last are weighted by w²/π, π being the probability that the coordinate is
sent and looked at, so that they stand for whole vectors: Σx²; Σ(x − r)², r being the reference; Σ(x − B)², B being what
a hybrid memory has of the node, 0 where it was not heard; the same three with the node's largest square of those looked
at in place of each; the variance of their noise; the number of values; where the node was heard before, the number,
Σ(x − B)², Σ(x − c)² of the memory's c, and the noise again; where it was not, Σ(x − c)² and the noise: there c is an
average over other nodes alone. Last, how many values were looked at."""


class Look(NamedTuple):
    """How the payloads of a round are looked at.

    Attributes
    ----------
    seed, round : int
        Of the run; which round it is.
    slots : int
        How many nodes have a slot; 0 where nobody has.
    reference : array, optional
        What nodes hear.
    """

    seed: int
    round: int
    slots: int
    reference: Floats | None = None

    @property
    def values(self) -> int:
        """How many values of a payload are looked at, if it has so many."""
        return max(LEAST, VALUES // max(1, self.slots))

    def chosen(self, node: str, part: int, size: int, count: int) -> Ints:
        """``count`` of the numbers below ``size``, one out of each of as many equal strata.

        Every number is chosen count/size times on average, and not with its neighbours, so that no pattern in the
        coordinates shows; one at the border of two strata may be chosen twice.
        """
        if count == size:
            return np.arange(size)
        drawn = words(Key(self.seed, self.round, node, part), b"observed", count) >> np.uint64(11)
        places = (np.arange(count) + drawn * 2.0**-53) * (size / count)
        return np.minimum(places.astype(np.int64), size - 1)


@np.errstate(over="ignore", invalid="ignore")  # as in totals: squares of absurd values may overflow
def observed(arrival: Arrival, memory: MemoryState, blocks: Blocks, look: Look) -> Doubles:
    """What a payload adds to ``Summary.observed``."""
    found = np.zeros((len(SUMS), len(blocks.sizes)))
    parts = () if arrival.payload is None else arrival.payload.parts
    total = sum(part.values.size for part in parts)
    for number, part in enumerate(parts):
        size = part.values.size
        count = min(size, -(-look.values * size // max(total, 1)))
        if count:
            chosen = look.chosen(arrival.node, number, size, count)
            found += _sums(arrival, part, chosen, memory, blocks, look.reference)
    return found


def _sums(
    arrival: Arrival, part: Part, chosen: Ints, memory: MemoryState, blocks: Blocks, reference: Floats | None
) -> Doubles:
    """What these values of a part add, by their numbers."""
    at, x = part.at(chosen), part.values[chosen].astype(np.float64)
    noise = part.noise if isinstance(part.noise, float) else part.noise.at(chosen)
    weight = np.broadcast_to(blocks.at(arrival.weight, at), at.shape)
    each = np.ones((len(SUMS), at.size))
    squares, relative, own, peak, relative_peak, own_peak, noises, _, *others, looked_at = each
    heard, from_own, from_average, heard_noise, from_others, unheard_noise = others
    heard[:], last, common = memory.last_heard(arrival.node, at)
    from_common, unheard = (x - common) ** 2, 1.0 - heard
    squares[:] = x * x
    relative[:] = squares if reference is None else (x - reference[at]) ** 2
    own[:] = (x - last) ** 2
    peak[:], relative_peak[:], own_peak[:] = squares.max(), relative.max(), own.max()
    noises[:] = noise
    from_own[:], from_average[:], heard_noise[:] = heard * own, heard * from_common, heard * noise
    from_others[:], unheard_noise[:] = unheard * from_common, unheard * noise
    each[:-1] *= weight**2 * (part.scale * (part.values.size / at.size))
    looked_at[:] = weight > 0
    return blocks.sums_at(at, each)
