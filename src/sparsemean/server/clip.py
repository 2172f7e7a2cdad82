"""Clip: a bound on each node's values, and how far one node can then move the mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sparsemean.decoding.decoders import Mean, Spatial
from sparsemean.errors import InvalidInput
from sparsemean.memory import Nothing
from sparsemean.payload import Part, Payload
from sparsemean.run import Run
from sparsemean.sampling.clock import largest_scale
from sparsemean.theory import CountLaw, FixedWeighting, mixed_gains
from sparsemean.theory.arguments import finite, whole
from sparsemean.theory.estimated import LEAST_RATIO


class Bound(NamedTuple):
    """How far the mean moves at most: ``length`` is that of the difference, ``coordinate`` its largest entry.

    Infinite where no bound of this kind holds.
    """

    length: float
    coordinate: float


@dataclass(frozen=True)
class Clip:
    """Values above ``value`` in magnitude are cut to it, then a payload longer than ``norm`` is shortened to it.

    Both mean the values as they were sent, before a scale such as d/k; x itself may be longer. ``bound`` says how far
    one node can then move the mean of a round, and ``docs/reliability.md`` how far over many rounds.

    Parameters
    ----------
    norm : float, optional
        Largest length of all values of a payload together.
    value : float, optional
        Largest magnitude of a single value. At least one of the two is given.

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

    def bound(
        self, run: Run, nodes: int | Sequence[int], weight: float | None = None, slots: int | None = None
    ) -> Bound:
        """How far the mean of one round moves at most when one node sends other values, with the same encoder.

        It is 2·norm·(w/W)·F in length and 2·value·(w/W)·F in each coordinate. With Spatial, F is the largest
        g_s(m)/p_s over the classes s of nodes that send with the same share p_s and over the counts m that can occur
        (``theory.mixed_gains``); without, it is the largest scale of an encoder, such as d/k, or 20·d/k with
        ``Epochs()``, whatever the ratios. A decoder that takes T from earlier rounds is counted with the worst T, and
        ``Auto`` with the worst of its options. With several blocks, ask for the worst of them.

        Parameters
        ----------
        run : Run
            The run whose payloads are clipped.
        nodes : int or sequence of int
            How many nodes of positive weight take part. Where nodes choose among encoders (``OneOf``, ``k=(a, b)``),
            one number for each encoder, in their order: F depends on who sends how much.
        weight : float, optional
            w/W, the node's share of the sum of weights; 1/n by default.
        slots : int, optional
            How many slots a balanced draw has; as many as nodes take part by default. What nodes without a slot do is
            not stated.

        >>> from sparsemean.schemes import named
        >>> run = Run(named("rand-k-spatial-max", k=(3, 12)), dim=24)
        >>> round(Clip(norm=1.0).bound(run, (1, 4)).length, 2)  # 2 · norm · 1/5 · F, F = 20.6
        8.26
        """
        if run.in_step:
            raise InvalidInput(f"{run.scheme.encoder!r} builds on what the server took, so it cannot be clipped")
        if run.auto:
            every = [self.bound(option, nodes, weight, slots) for option in run.options]
            return Bound(*(max(getattr(each, name) for each in every) for name in ("length", "coordinate")))
        counts = _counts(run, nodes)
        part = 1.0 / sum(counts) if weight is None else finite(weight, "weight, the node's share w/W,")
        if not 0.0 <= part <= 1.0:
            raise InvalidInput(f"weight is the node's share w/W of the sum of weights, from 0 to 1, got {weight!r}")
        in_length, each = _factors(run, counts, sum(counts) if slots is None else slots)
        if math.isinf(in_length):
            return Bound(math.inf, math.inf)
        norm = math.inf if self.norm is None else self.norm
        value = math.inf if self.value is None else self.value
        sent = max(sum(layout.count for layout in run.layouts[s]) for s, count in enumerate(counts) if count)
        if _moves_elsewhere(run):  # what the memory holds there is within ``value``, but not within ``norm``
            known = self.value is not None and run.scheme.memory.facts.verbatim
            return Bound(math.inf, 2.0 * part * value * each if known else math.inf)
        length = 2.0 * part * in_length * min(norm, value * math.sqrt(sent))
        return Bound(length, 2.0 * part * min(norm * in_length, value * each))

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


def _counts(run: Run, nodes: int | Sequence[int]) -> tuple[int, ...]:
    given = tuple(nodes) if isinstance(nodes, Sequence | np.ndarray) else (nodes,)
    if len(given) != len(run.encoders):
        raise InvalidInput(
            f"nodes is one number for each of the run's {len(run.encoders)} encoders, such as "
            f"{[1] * len(run.encoders)}, got {nodes!r}"
        )
    counts = tuple(whole(count, "the number of nodes", 0) for count in given)
    if not any(counts):
        raise InvalidInput("a round without nodes has no mean; give the number of nodes that come")
    return counts


def _factors(run: Run, counts: tuple[int, ...], slots: int) -> tuple[float, float]:
    """F for values of length 1, and for values of magnitude 1 in each part: a coordinate may stand in all parts."""
    decoder, n = run.scheme.decoder, sum(counts)
    if isinstance(decoder, Mean) and run.epochs is not None:
        factor = max(largest_scale(run.dim, run.layouts[s][0].count) for s, count in enumerate(counts) if count)
        return factor, factor
    if isinstance(decoder, Mean):
        scales = [[layout.scale for layout in run.layouts[s]] for s, count in enumerate(counts) if count]
        return max(math.hypot(*each) for each in scales), max(sum(each) for each in scales)
    if not isinstance(decoder, Spatial) or not run.shares or decoder.weighting == "estimated":
        return math.inf, math.inf
    candidates: tuple[FixedWeighting, ...]
    if decoder.adapts:
        # The largest factor grows with R2/R1 above 0 and falls below it, so an end of the range is worst.
        candidates = (LEAST_RATIO, max(n - 1.0, LEAST_RATIO))
    else:
        candidates = (decoder.weighting if decoder.weighting is not None else decoder.table or (),)
    factor = max(_largest_gain(T, counts, run.shares, slots if run.planned else None) for T in candidates)
    return factor, factor


def _largest_gain(T: FixedWeighting, counts: tuple[int, ...], shares: tuple[float, ...], slots: int | None) -> float:
    """max g_s(m)/p_s over the classes that are present and the counts m that one of their coordinates can have."""
    always = sum(count for count, share in zip(counts, shares, strict=True) if share == 1.0)
    found = zip(mixed_gains(T, counts, shares, slots=[slots] * len(counts)), counts, shares, strict=True)
    if slots is not None and len(shares) == 1:
        possible = CountLaw(counts[0], shares[0], slots).given_sent > 0.0
        return max(float(np.max(gain[possible])) / share for gain, _, share in found)
    return max(float(np.max(gain[always + (share < 1.0) :])) / share for gain, count, share in found if count)


def _moves_elsewhere(run: Run) -> bool:
    """Whether a node chooses its coordinates and so, too, where its memory is taken in place of what it sends."""
    chosen = any(layout.where in ("listed", "levelled", "packed") for each in run.layouts for layout in each)
    return chosen and not isinstance(run.scheme.memory, Nothing)
