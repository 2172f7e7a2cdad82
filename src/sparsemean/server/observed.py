"""What values tell of options that were not chosen: their energy, and how far they are from what is remembered."""

from __future__ import annotations

import numpy as np

from sparsemean._types import Doubles, Floats
from sparsemean.memory import Arrival, MemoryState
from sparsemean.payload.blocks import Blocks

VALUES = 1 << 18
"""Where so many values of a round were looked at, the others are not."""
SUMS = (
    *("squares", "relative", "own", "peak", "relative_peak", "own_peak", "noise"),
    *("values", "heard", "from_own", "from_average", "heard_noise", "from_others", "unheard_noise", "nodes"),
)
"""Rows of ``Summary.observed``. All but the last are weighted by w²/π, π being the probability of the coordinate, so
that they stand for whole vectors: Σx²; Σ(x − r)², r being the reference; Σ(x − B)², B being what a hybrid memory has of
the node, 0 where it was not heard; the same three with the node's largest square in place of each; the variance of
their noise; the number of values; where the node was heard before, the number, Σ(x − B)², Σ(x − c)² of the memory's c,
and the noise again; where it was not, Σ(x − c)² and the noise: there c is an average over other nodes alone. Last, how
many nodes were looked at."""


@np.errstate(over="ignore", invalid="ignore")  # as in totals: squares of absurd values may overflow
def observed(arrival: Arrival, memory: MemoryState, blocks: Blocks, reference: Floats | None) -> Doubles:
    """What a payload adds to ``Summary.observed``."""
    found, payload = np.zeros((len(SUMS), len(blocks.sizes))), arrival.payload
    for part in () if payload is None else payload.parts:
        at, x = part.coordinates, part.values.astype(np.float64)
        if not x.size:
            continue
        weight = np.broadcast_to(blocks.at(arrival.weight, at), at.shape) ** 2 * part.scale
        squares = x * x
        relative = squares if reference is None else (x - reference[at]) ** 2
        noise = np.broadcast_to(np.asarray(part.noise, np.float64), x.shape)
        heard, last, common = memory.last_heard(arrival.node, at)
        energies = squares, relative, (x - last) ** 2
        levels = *energies, *(each.max() for each in energies), noise
        from_common, unheard = (x - common) ** 2, 1.0 - heard
        of_heard = heard, heard * energies[2], heard * from_common, heard * noise
        each = (*levels, 1.0, *of_heard, unheard * from_common, unheard * noise)
        found[:-1] += [blocks.sums_at(at, np.broadcast_to(weight * one, at.shape)) for one in each]
    found[-1] = arrival.weight > 0
    return found
