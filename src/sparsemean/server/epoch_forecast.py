"""What the error will be if an epoch goes on, and if every round begins one, as far as a round can tell.

The mean square residual of a coordinate grows with its age, the rounds since it was last sent; here, in a straight
line. U and S of the last round are two points of it, with their mean ages, which the clock gives. But it grows no
faster than it can have grown to what S has: where S is known exactly, vectors are at rest, and U lags behind for
another reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from sparsemean import theory
from sparsemean.sampling import Clock
from sparsemean.sampling.clock import rest

HORIZON = 1000  # rounds that are looked ahead


class Residuals(NamedTuple):
    """Mean square residuals of the nodes of one k, weighted as in the error.

    Attributes
    ----------
    of_u, of_s : float
        Of the coordinates of U and of S.
    nodes : int
        How many nodes came.
    """

    of_u: float
    of_s: float
    nodes: int


class Ages(NamedTuple):
    """How many rounds ago coordinates of U and of S were last sent, on average."""

    of_u: float
    of_s: float

    def after(self, now: Clock) -> Ages:
        """A round later, of the U and S that this round leaves.

        >>> from sparsemean.sampling import clock
        >>> Ages(11.0, 1.0).after(clock(10, 2, bytes([16])))
        Ages(of_u=12.0, of_s=1.3333333333333333)
        """
        if not now.scheduled:
            return Ages(1.0 + now.dim / now.k, 1.0)
        r_u, s = now.scheduled[-1], now.dim - now.unscheduled
        return Ages(self.of_u + 1.0, 1.0 + self.of_s * (s - (now.k - r_u)) / (s + r_u))


def forecast(now: Clock, ratio: int, found: Residuals, correlation: float) -> tuple[float, float]:
    """Error of a round, times the squared total weight: of balanced draws of all, and of the rest of this epoch.

    Balanced draws, one after the other, leave coordinates of age d/k on average and have the error (1/p − 1) R1 +
    (κ − 1) R2; going on has (1/π_c − 1) times the energy of each class, here the mean over the coming rounds.

    Parameters
    ----------
    now
        The clock of the last round.
    ratio
        λ of the coming rounds, in sixteenths.
    found
        As the last round showed them. If it was a first one, U and S are as in the second.
    correlation
        R2/R1 of the residuals.
    """
    ages = _ages(now)
    growth = max(min((found.of_u - found.of_s) / (ages.of_u - ages.of_s), found.of_s / ages.of_s), 0.0)

    def of_u(age: float) -> float:
        return max(found.of_u + growth * (age - ages.of_u), 0.0)

    def of_s(age: float) -> float:
        return max(found.of_s + growth * (age - ages.of_s), 0.0)

    p = now.k / now.dim
    excess = theory.CountLaw(found.nodes, p, found.nodes).pair_excess
    fresh = (1.0 / p - 1.0 + excess * correlation) * found.nodes * now.dim * of_u(1.0 / p)
    coming = list(_coming(now, ratio, ages))
    going = 0.0
    for then, age in coming:
        classes = then.unscheduled * of_u(age.of_u), (then.dim - then.unscheduled) * of_s(age.of_s)
        going += sum((of / sent - 1.0) * c for c, (sent, of) in zip(classes, then.probabilities, strict=True))
    return fresh, found.nodes * going / len(coming)


def _ages(now: Clock) -> Ages:
    """Of U and S in this round; after a first one, as they will be in the second."""
    ages = Ages(1.0 + now.dim / now.k, 1.0)
    s = now.k
    for r_u in now.scheduled[:-1]:
        ages = ages.after(now._replace(scheduled=(r_u,), unscheduled=now.dim - s))
        s += r_u
    return ages


def _coming(now: Clock, ratio: int, ages: Ages) -> Iterator[tuple[Clock, Ages]]:
    """The clocks of the rounds until U is empty, as far as is looked ahead, and the ages in each."""
    for then in islice(rest(now, ratio), HORIZON):
        ages = ages.after(now)
        yield then, ages
        now = then
