"""The server's own error in a round whose nodes are all of one class: expected and actual, and how certain each is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Ints
from sparsemean.decoding.senders import SenderSums
from sparsemean.decoding.summary import Summary
from sparsemean.theory import CountLaw, FixedWeighting
from sparsemean.theory.forms import CoordinateError, Form, actual_form, inverse, left_out, plug_in_form, within_form
from sparsemean.theory.gaps import actual_gap, blend_weight, expected_gap, noise_squares
from sparsemean.theory.intervals import log_interval
from sparsemean.theory.polykays import FourthMoments, fourth_moments, triple_kurtosis
from sparsemean.theory.within import Decoding, decoding

PAIRS = 30.0
"""Coordinates with two senders that a block must expect, for its estimates to be normalised by the counts that came."""

INTERVAL_PAIRS = 10.0
"""Such coordinates that all blocks together must expect, for an interval of the actual error to be stated."""

ROUNDING = 1e-13
"""An error below this part of what is estimated is that of floating-point numbers."""


@dataclass(frozen=True)
class OneClass:
    """What the blocks of a round show, in units of y as in ``RoundTotals``.

    Attributes
    ----------
    share : float
        p.
    laws : list of CountLaw
        The law of the counts in each block.
    before : sequence of (float or None)
        ρ/(n − 1) of each block as known before the round.
    counts : (counts,) array
        The counts m that occur.
    number, means : (counts, blocks) array
        How many coordinates have the count m, N_m, and their Σx̄², x̄ = S/m.
    n, dim, values : (blocks,) array
        How many nodes came, how many coordinates there are, and how many values came.
    met : (blocks,) array
        Σ (M − 1)₊: how many of the values came beside another.
    within : (blocks,) array
        Σ Q − S²/M.
    k2, k11 : (blocks,) array
        K2 and K11: the mean variance of the nodes' values at a coordinate, and the mean square of their mean.
    noise, noise_part : (blocks,) array
        The mean variance that few bits add to a value, and its part of K2.
    fourth : FourthMoments
        NaN where the coordinates that keep power sums show nothing.
    meetings : (blocks,) array
        How many coordinates two or more nodes were expected to send.
    shared : float
        Covariance that coordinates have because they share senders (``SenderSums``), of the mean of what came.
    unit : (blocks,) array
        (np/W)², W the weight of those who came: what ``shared`` takes the errors of the blocks times.
    by_counts : (blocks,) array
        Whether estimates are normalised by the counts that came; else, where hardly two nodes meet, by their law.
    """

    share: float
    laws: list[CountLaw]
    before: Sequence[float | None]
    counts: Ints
    number: Doubles
    means: Doubles
    n: Doubles
    dim: Doubles
    values: Doubles
    met: Doubles
    within: Doubles
    k2: Doubles
    k11: Doubles
    noise: Doubles
    noise_part: Doubles
    fourth: FourthMoments
    shared: float
    unit: Doubles
    meetings: Doubles
    by_counts: npt.NDArray[np.bool_]

    @staticmethod
    def of(
        summary: Summary, row: int, share: float, slots: int | None, before: Sequence[float | None] | None = None
    ) -> OneClass:
        """Of the blocks that have a weight.

        Parameters
        ----------
        summary : Summary
            With sums by count.
        row : int
            The class of the nodes.
        share, slots
            p, and the slots of a balanced draw.
        before : sequence of (float or None), optional
            ρ/(n − 1) of every block of the summary, as known before the round.
        """
        alive, table, senders = summary.weight > 0, summary.by_count, SenderSums(*summary.senders.tolist())
        known = [r for r, weighs in zip(before or [None] * alive.size, alive.tolist(), strict=True) if weighs]
        nodes = summary.class_nodes[row][alive].tolist()
        laws = [_law(n, share, slots) for n in nodes]
        m, number, squares = table.counts.astype(np.float64), table.number[:, alive], summary.class_squares[row][alive]
        per_m = inverse(m)[:, None]
        means = table.squares[:, alive] * per_m**2
        dim, values, met = number.sum(axis=0), m @ number, np.maximum(m - 1.0, 0.0) @ number
        within = np.maximum(squares - m @ means, 0.0)
        # What is known of the correlation: from before the round, else from its spread, else 0.
        shown = np.where(met > 0, 1.0 - within * inverse(met) * values * inverse(squares), 0.0)
        r = np.clip([now if r is None else r for r, now in zip(known, shown.tolist(), strict=True)], 0.0, 1.0)
        k2 = np.where(met > 0, within * inverse(met), (1.0 - r) * squares * inverse(values))
        k11 = np.sum(means - k2 * number * per_m, axis=0) * inverse(number[m > 0].sum(axis=0))
        noise = summary.class_noise[row][alive] * inverse(values)
        meetings = dim * np.array([law.count[2:].sum() for law in laws])
        return OneClass(
            *(share, laws, known, table.counts, number, means),
            *(np.array(nodes, np.float64), dim, values, met, within, k2, k11),
            *(noise, np.minimum(noise * inverse(k2), 1.0), _fourth(summary, alive, dim, r)),
            *(share**4 * senders.covariance, (np.array(nodes) * share / summary.weight[alive]) ** 2),
            *(meetings, (meetings >= PAIRS) & (met > 0)),
        )

    @property
    def m(self) -> Doubles:
        """The counts, as numbers to reckon with."""
        return self.counts.astype(np.float64)

    def expected(self, T: Sequence[FixedWeighting], scale: Doubles) -> tuple[Doubles, float]:
        """The expected error of each block, and the variance of their sum; each block's is multiplied by ``scale``.

        Of nodes that never meet it is not known, and what is returned is not it.
        """
        error = CoordinateError(*np.array([each.error for each in self._decodings(T)]).T)
        known = [None if r is None else round(r, 2) for r in self.before]
        weight = np.array([blend_weight(*each) for each in zip(T, self.laws, known, strict=True)])
        found = self._estimated(error, weight)
        by_law = self.values / (self.n * self.share)  # d on average, where one goes by the law of the counts
        rounding = self.noise * np.where(self.by_counts, self.dim, by_law) / self.n
        if not (np.any(error.on_spread) or np.any(error.on_mean)):  # everything is sent
            return scale * (found.value + rounding), 0.0
        # How many values came is fixed, for all blocks together: what that tells is taken off.
        told = np.square(np.sum(scale * found.told)) * inverse(found.chance.sum())
        rest = float(np.sum(scale**2 * found.square, where=~self.by_counts) - told)
        variance = float(np.sum(scale**2 * np.maximum(found.square, 0.0), where=self.by_counts)) + max(rest, 0.0)
        return scale * (found.value + rounding), variance * self._small_sample

    def actual(self, T: Sequence[FixedWeighting], scale: Doubles) -> tuple[float, tuple[float, float] | None]:
        """The squared error that the estimate has, and a 95 % interval; each block's is multiplied by ``scale``.

        NaN where of some block nothing came; None where too few nodes meet for an interval, or all is rounding.
        """
        found = zip(self._decodings(T), self.laws, strict=True)
        excess = np.stack([each.excess[_places(self.counts, law)] for each, law in found], axis=1)
        form = actual_form(excess, self.n, self.m, self.number)
        rounding = self.noise * np.sum(self.number * (1.0 + 2.0 * excess), axis=0) / self.n
        values = form.of(np.where(self.met > 0, self.within, self.k2), self.means) + rounding
        value = float(np.sum(np.where(self.values > 0, scale * values, math.nan)))
        expected = self.number * (np.maximum(self.k11, 0.0) + self.k2 * inverse(self.m)[:, None])
        told = (expected > 0.0) & (self.m[:, None] > 0.0)  # of what nobody sent nothing is
        energy = np.where(told, self.means * inverse(expected), 1.0)
        gap = actual_gap(form, excess, self.n, self.m, self.number, self.noise_part, energy)
        parts = scale**2 * self.fourth.values * gap.squares
        known = scale**2 * np.sum(self.number * gap.at(self.k2, self.k11) ** 2, axis=0)
        variance = float(np.sum(np.maximum(parts.sum(axis=0) - known, 0.0))) * self._small_sample
        variance += max(self._shared(excess, scale), 0.0)  # below 0 it is the noise of few values
        # The moments rest on few coordinates, where some are far larger than the others.
        sizes = np.abs([parts[0] + parts[2], parts[1] + parts[3] + parts[4]])
        rests_on = float(np.sum((sizes * inverse(sizes.sum())) ** 2 * self.fourth.concentration))
        lonely = self.meetings.sum() < INTERVAL_PAIRS and np.any(self.n > 1)
        rounded = max(value, math.sqrt(variance)) <= ROUNDING * float(np.sum(scale * self.means))
        if lonely or rounded or not math.isfinite(value + variance + rests_on):
            return value, None
        return value, log_interval(value, variance, 2.0 * float(inverse(rests_on)) or math.inf)

    def _shared(self, excess: Doubles, scale: Doubles) -> float:
        """What shared senders add to the variance: the part of h x̄ − X in x̄ − X makes 1 + 2(h − 1) of its square."""
        left = self.number * left_out(self.m[:, None], self.n)
        factor = float(np.sum((1.0 + 2.0 * excess) * left) * inverse(np.sum(left)))
        return self.shared * (factor * float(np.mean(scale / self.unit))) ** 2

    def pairs(self) -> tuple[Doubles, Doubles]:
        """R2 of the nodes' weighted vectors in each block, and its variance."""
        target = CoordinateError(-(self.n - 1.0), self.n * (self.n - 1.0))
        found = self._estimated(target, np.zeros(self.n.size))
        variance = np.maximum(found.square - found.told**2 * inverse(found.chance), 0.0) * self._small_sample
        return self.share**2 * found.value, self.share**4 * variance

    def _estimated(self, error: CoordinateError, weight: Doubles) -> _Estimated:
        """AΣY + FΣX² of each block; ``weight`` is that of ``within_form`` in the blend."""
        error, size = error.scaled()
        arguments = error, self.n, self.m, self.number
        form = plug_in_form(*arguments).blended(within_form(*arguments), np.where(self.met > 0, weight, 0.0))
        gap = expected_gap(form, *arguments)
        squares, on_spread, on_means = gap.squares, np.array(form.on_spread), form.on_means
        off = np.sum(self.number * gap.at(self.k2, self.k11) ** 2, axis=0)
        told, chance = np.zeros(self.n.size), np.zeros(self.n.size)
        for b in np.flatnonzero(~self.by_counts).tolist():
            law, d = self.laws[b], self.dim[b]
            known = _by_law(CoordinateError(*np.array(error)[:, b].tolist()), law, float(weight[b]))
            on_spread[b], on_means[:, b] = known.form.on_spread, known.form.on_means[_places(self.counts, law)]
            squares[:, b], off[b] = d * known.squares, 0.0
            told[b], chance[b] = d * (known.told @ (self.k2[b], self.k11[b])), d * known.chance
        squares = squares + self.dim * noise_squares(error, self.n, self.noise_part)
        square = np.sum(self.fourth.values * squares, axis=0) - off
        value = Form(on_spread, on_means).of(self.within, self.means)
        return _Estimated(size * value, size**2 * square, size * told, chance)

    def _decodings(self, T: Sequence[FixedWeighting]) -> list[Decoding]:
        """What T makes of the coordinates of each block."""
        return [_decoding(t, law) for t, law in zip(T, self.laws, strict=True)]

    @property
    def _small_sample(self) -> float:
        """nk/(nk − 1); NaN for a single value."""
        sent = float(self.values.sum())
        return sent / (sent - 1.0) if sent > 1.0 else math.nan


class _Estimated(NamedTuple):
    """An estimate of each block, and its mean square error without what the counts tell.

    For blocks that go by the law of the counts, ``told`` is the covariance with the number of values, and ``chance``
    the variance of that.
    """

    value: Doubles
    square: Doubles
    told: Doubles
    chance: Doubles


class _ByLaw(NamedTuple):
    """A blend for N_m = P(M = m), with the coefficients of its mean square error and of its covariance with M."""

    form: Form
    squares: Doubles
    told: Doubles
    chance: float


# Rounds repeat the same n, share and T, and these are arrays over 0..n.
@lru_cache(maxsize=1024)
def _law(n: int, share: float, slots: int | None) -> CountLaw:
    return CountLaw(n, share, slots)


@lru_cache(maxsize=128)
def _decoding(T: FixedWeighting, law: CountLaw) -> Decoding:
    return decoding(T, law)


@lru_cache(maxsize=128)
def _by_law(error: CoordinateError, law: CountLaw, weight: float) -> _ByLaw:
    m = np.arange(law.n + 1.0)
    arguments = error, float(law.n), m, law.count
    form = plug_in_form(*arguments).blended(within_form(*arguments), weight if law.count[2:].any() else 0.0)
    gap, off = expected_gap(form, *arguments), law.count * (m - law.n * law.share)
    return _ByLaw(form, gap.squares, gap.means @ off, float(off @ m))


def _places(counts: Ints, law: CountLaw) -> Ints:
    """Counts as places in an array over 0..n; those of other blocks may be larger."""
    return np.minimum(counts, law.n)


def _fourth(summary: Summary, alive: npt.NDArray[np.bool_], dim: Doubles, correlation: Doubles) -> FourthMoments:
    assert summary.moments is not None
    held, squares = summary.by_count.held[:, :, alive], summary.class_squares.sum(axis=0)[alive]
    part = held[0].sum(axis=0) * inverse(dim)  # of the coordinates keep power sums
    fourths = np.asarray(summary.moments.p4, np.float64)[alive] * part
    m, senders = summary.by_count.counts.astype(np.float64), SenderSums(*summary.senders.tolist())
    kurtosis = triple_kurtosis(senders.apart, senders.neighbours, m, held)
    found = fourth_moments(m, held, fourths, correlation, kurtosis)
    shown = (held[1] + held[2]).sum(axis=0) > 0
    return found._replace(values=np.where(shown | (squares == 0), found.values, math.nan))
