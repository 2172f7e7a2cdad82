"""What error an option of ``Auto`` promises over the coming rounds, as far as earlier ones can tell.

Every coordinate that the memory holds has an age, the rounds since it was last sent, and the noise of the value kind by
which it was sent. The energy of what a node's own past leaves unexplained is taken as q = N + δA, with the noise N, the
mean age A and the drift δ; that of what the average over nodes leaves as D. A memory that goes by a node's own past
with the factor g errs by (1 − g)²D + g²q; where a node was not heard, by D. It fits g to the values of one round and
goes by it in the next. Values of much noise can be shrunk once and for all; what they lack then is added as M.

Of the drift, the part φ goes along with the error of the last estimate and the rest follows its trend
(``server.drift``); ages count in rounds of today's drift.

An option that sends a share p of the coordinates with noise ν has the error (a₁ + a₂ρ)R + (a₁ + 1)ν, R being the
residual (``theory.spatial_mse``), and leaves the share p of age 1 and with the noise ν. All of these are energies of
whole vectors, Σ w²‖·‖²/W², so that sending everything has the error ν.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from typing import NamedTuple

from sparsemean import theory
from sparsemean.sampling.clock import MOST_RATIO, SIXTEENTHS
from sparsemean.theory.estimated import LEAST_RATIO

HORIZON = 32
"""Rounds that are looked ahead: two epochs of a sixteenth of the coordinates, which 16-bit values at one bit take."""
LARGEST_RATIO = MOST_RATIO / SIXTEENTHS
NOTHING = 1e-300  # errors are compared by their logarithms
MOST_GROWTH = 1e3  # of the drift, however the error grows
OVER = 1e-9  # an epoch is, when so little of all coordinates is left


class Held(NamedTuple):
    """Coordinates of the memory.

    Attributes
    ----------
    part : float
        Which part of all they are.
    unheard : float
        Of which part of them nothing was heard of a node.
    noise, age : float
        Of the others, on average.
    missing : float
        The energy that they lack, where they were shrunk or nodes have changed abruptly since.
    """

    part: float = 0.0
    unheard: float = 1.0
    noise: float = 0.0
    age: float = 0.0
    missing: float = 0.0

    def older(self, step: float) -> Held:
        """A round later, in which none of them was sent."""
        return Held(self.part, self.unheard, self.noise, self.age + step, self.missing)

    def with_sent(self, share: float, noise: float, step: float) -> Held:
        """A round later, in which this share of them was sent with this noise."""
        again, rest = Held(share, 0.0, noise, step), self.older(step)._replace(part=1.0 - share)
        return again.beside(rest)._replace(part=self.part)

    def beside(self, other: Held) -> Held:
        """These and others as one class.

        >>> Held(0.25, 0.0, 4.0, 1.0).beside(Held(0.75, 1.0))
        Held(part=1.0, unheard=0.75, noise=4.0, age=1.0, missing=0.0)
        """
        part = self.part + other.part
        mine, theirs = self.part * (1.0 - self.unheard), other.part * (1.0 - other.unheard)
        heard = mine + theirs
        if part <= 0.0 or heard <= 0.0:
            return Held(part)
        mine, theirs = mine / heard, theirs / heard
        return Held(
            part,
            1.0 - heard / part,
            mine * self.noise + theirs * other.noise,
            mine * self.age + theirs * other.age,
            mine * self.missing + theirs * other.missing,
        )


class Coverage(NamedTuple):
    """What the memory holds: the coordinates of the classes U and S, where an epoch is on; else all are in the second.

    A ``step`` is what a round adds to ages: 1, or less where the drift is expected to become less.
    """

    u: Held = Held()
    s: Held = Held(1.0)

    def together(self) -> Held:
        """All coordinates as one class."""
        return self.u.beside(self.s) if self.u.part > 0.0 else self.s

    def unheard_by(self, least: float) -> Coverage:
        """The same where so much of all is unheard, at least."""
        missing = max(least - self.together().unheard, 0.0)
        if missing <= 0.0:
            return self
        return Coverage(*(each._replace(unheard=min(each.unheard + missing, 1.0)) for each in self))

    def lacking(self, energy: float) -> Coverage:
        """The same where so much more is missing in all that was heard."""
        return Coverage(*(each._replace(missing=each.missing + energy) for each in self))

    def uniform(self, p: float, noise: float, step: float = 1.0) -> Coverage:
        """A round later, in which a share of all was sent."""
        return Coverage(Held(), self.together().with_sent(p, noise, step))

    def first(self, p: float, noise: float, step: float = 1.0) -> Coverage:
        """After the first round of an epoch."""
        return Coverage(self.together().older(step)._replace(part=1.0 - p), Held(p, 0.0, noise, step))

    def later(self, pi_u: float, pi_s: float, noise: float, step: float = 1.0) -> Coverage:
        """After a later round, which sends these shares of U and S."""
        moved = min(pi_u, 1.0) * self.u.part
        s = self.s.with_sent(pi_s, noise, step).beside(Held(moved, 0.0, noise, step))
        return Coverage(self.u.older(step)._replace(part=self.u.part - moved), s)


@dataclass(frozen=True)
class Figures:
    """What earlier rounds showed.

    Attributes
    ----------
    nodes : int
        How many came.
    correlation : float
        ρ/(n − 1) of the residuals.
    residual : float
        Their energy.
    common : float
        D; NaN where nothing was remembered yet, so that the residual stays what it is.
    drift, trend : float
        δ, and by which factor it changes from round to round, at most 1.
    fit : float, default 1
        The residual over what N, A, D and δ give.
    feedback, error : float
        Which part of the drift goes along with the errors of the estimates, which nodes follow; and the error that the
        drift goes with now.
    fitted : float, optional
        g as the memory has it, by the values of the last round; NaN for the best.
    energy : float, default 0
        Of the vectors themselves.
    """

    nodes: int
    correlation: float
    residual: float
    common: float
    drift: float
    trend: float
    fit: float = 1.0
    feedback: float = 0.0
    error: float = 1.0
    fitted: float = math.nan
    energy: float = 0.0

    def own_part(self, memory: Coverage) -> float:
        """g: how far a memory goes by nodes' own past; one number for all coordinates, D/(D + q) of their average q."""
        q = self._own(memory.together())
        return self.common / (self.common + q) if q > 0.0 else 1.0

    def first_own_part(self, memory: Coverage) -> float:
        """g of the coming round."""
        return self.own_part(memory) if math.isnan(self.fitted) else self.fitted

    def next_own_part(self, memory: Coverage, own_part: float) -> float:
        """g after a round that was sent with this memory."""
        return self.own_part(memory) if memory.together().unheard < 1.0 else own_part

    def step(self, rounds: int, error: float) -> float:
        """The drift so many rounds from now over that of today, after a round with this error."""
        along = min(error / self.error, MOST_GROWTH) if self.error > 0.0 else 1.0
        return (1.0 - self.feedback) * self.trend**rounds + self.feedback * along

    def _own(self, held: Held) -> float:
        return held.noise + self.drift * held.age

    def to_own(self, held: Held) -> float:
        """Energy of the differences to what a node sent last: q where it was heard, all of the vector where not."""
        return (1.0 - held.unheard) * (self._own(held) + held.missing) + held.unheard * self.energy

    def shrunk(self, memory: Coverage) -> Coverage:
        """The memory with c + g(B − c) in place of B: what they lack is (1 − g)²D + g²N, and g is 1 from then on."""
        held, g = memory.together(), self.own_part(memory)
        missing = held.missing + (1.0 - g) ** 2 * self.common + g * g * held.noise
        return Coverage(Held(), held._replace(noise=0.0, missing=missing))

    def unexplained(self, held: Held, own_part: float) -> float:
        """R, if all coordinates were held so: (1 − g)²D + g²q where they are heard, D where not."""
        if math.isnan(self.common):
            return self.residual
        heard = (1.0 - own_part) ** 2 * self.common + own_part**2 * self._own(held) + held.missing
        return self.fit * ((1.0 - held.unheard) * heard + held.unheard * self.common)

    def unexplained_in(self, memory: Coverage, own_part: float) -> float:
        """R of both classes together."""
        return sum(held.part * self.unexplained(held, own_part) for held in memory if held.part > 0.0)


class Rounding(NamedTuple):
    """The noise of an option's values, as an energy as if all coordinates were sent.

    Attributes
    ----------
    omega : float
        ω, the noise over the energy of what is sent.
    energy : float, optional
        That energy; None where it is of differences to what is remembered of the node.
    kept : float, default 1
        Which part of the noise is remembered (``encoders.Remembered``).
    least : float, default 0
        The noise that there is at any rate, of float32.
    """

    omega: float
    energy: float | None = None
    kept: float = 1.0
    least: float = 0.0

    def noise(self, difference: float) -> float:
        """Of values that are sent, where differences have this energy."""
        return self.omega * (difference if self.energy is None else self.energy) + self.least


@lru_cache(maxsize=4096)
def _factors(n: int, p: float, correlation: float) -> tuple[float, float]:
    """a₁ and a₁ + a₂ρ of a balanced draw that is decoded by the ratio ρ; kept, so it is asked for few correlations."""
    ratio = max(correlation * (n - 1), LEAST_RATIO)
    alone = theory.spatial_mse(float(n * n), 0.0, n, p, ratio, slots=n)
    return alone, theory.spatial_mse(float(n * n), ratio * n * n, n, p, ratio, slots=n)


def promised(errors: Sequence[float]) -> float:
    """The geometric mean of the errors of the coming rounds."""
    return math.exp(sum(math.log(max(error, NOTHING)) for error in errors) / len(errors))


class Played(NamedTuple):
    """A coming round: its error, the memory after it, and g for the next one."""

    error: float
    memory: Coverage
    own_part: float


def balanced(figures: Figures, memory: Coverage, p: float, rounding: Rounding, since: int = 0) -> Iterator[Played]:
    """Coming rounds, if all send a share p with this rounding, balanced over nodes; the first is so many rounds off."""
    correlation = 1.0 - float(f"{1.0 - figures.correlation:.2g}")
    alone, together = (0.0, 0.0) if p == 1.0 else _factors(figures.nodes, p, correlation)
    own_part = figures.first_own_part(memory)
    for rounds in count(since + 1):
        noise = rounding.noise(figures.to_own(memory.together()))
        error = together * figures.unexplained_in(memory, own_part) + (alone + 1.0) * noise
        own_part = figures.next_own_part(memory, own_part)
        memory = memory.uniform(p, rounding.kept * noise, figures.step(rounds, error))
        yield Played(error, memory, own_part)


def epochs(
    figures: Figures, memory: Coverage, p: float, rounding: Rounding, on: bool, since: int = 0
) -> Iterator[Played]:
    """The same if they go through all coordinates in epochs, of which one may be on."""
    first, n = not on, figures.nodes
    together = 1.0 / p - 1.0 + theory.CountLaw(n, p, n).pair_excess * figures.correlation * (n - 1)
    own_part = figures.first_own_part(memory)
    for rounds in count(since + 1):
        if first:
            noise = rounding.noise(figures.to_own(memory.together()))
            error = together * figures.unexplained_in(memory, own_part) + noise / p
            after = partial(memory.first, p, rounding.kept * noise)
        else:
            u, s = memory
            of_u, of_s = figures.unexplained(u, own_part), figures.unexplained(s, own_part)
            ratio = min(max(math.sqrt(of_u / of_s), 1.0), LARGEST_RATIO) if of_s > 0.0 else LARGEST_RATIO
            pi_s = p / (ratio * u.part + s.part)
            pi_u = 1.0 if 4.0 * u.part <= p else min(ratio * pi_s, 1.0)
            classes = (u.part, pi_u, of_u), (s.part, pi_s, of_s)
            # Values of both classes are rounded together, and have the same noise.
            noise = rounding.noise((pi_u * u.part * figures.to_own(u) + pi_s * s.part * figures.to_own(s)) / p)
            error = sum(part * ((1.0 / pi - 1.0) * rest + noise / pi) for part, pi, rest in classes)
            after = partial(memory.later, pi_u, pi_s, rounding.kept * noise)
        own_part = figures.next_own_part(memory, own_part)
        memory = after(figures.step(rounds, error))
        first = memory.u.part <= OVER
        yield Played(error, memory, own_part)
