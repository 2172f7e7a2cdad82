"""How fast nodes change, as what they sent twice tells; and what of that is an answer to the estimates' own errors.

Where vectors follow the mean that is broadcast, as in K-means or power iteration, an error of the estimate moves them.
The drift is then taken as δ = δ₀ + κe: one part of its own, which may become less from round to round, and one that
goes along with the error e. How far it does, φ = κe/δ, is the slope of log δ against log e from round to round. While
errors have hardly varied it cannot be told, and is taken as ``UNTOLD``: enough to try what would be best if errors were
the cause. If they are not, the trial itself tells.
"""

from __future__ import annotations

import math

import numpy as np

from sparsemean.state_tree import Tree, array_in

TRUST, TREND_TRUST = 0.5, 0.3
"""How much the drift that a round shows counts against that of earlier ones, at least; and its trend."""
FASTEST_TREND = 0.5
FORGOTTEN = 0.1
"""By how much less a round counts after another one, for drift that a single round would not show."""
CHANCE = 4.0
"""Standard deviations by which nodes must have moved more than noise alone makes it seem."""
ABRUPT = 8.0
"""Nodes that moved by so many times what was expected have changed once; if they do so again, it is drift."""
UNTOLD, VARIATION = 0.5, 0.01
"""What φ is before anything tells, which counts as much as one change of the error by a tenth."""
MOST_VARIATION = 1.0
"""Earlier changes count less once there were so many: by a factor of e, once."""


class Drift:
    """δ, its trend and φ, learnt from round to round.

    Attributes
    ----------
    now : float
        δ; NaN while no node was heard twice. Where noise hides it, one standard deviation of what noise makes it seem.
    error : float
        The mean error of the rounds in which nodes moved so; NaN before the first.
    """

    def __init__(self) -> None:
        self.now, self.error = math.nan, math.nan
        self._last, self._last_error, self._trend = 0.0, 0.0, 0.0
        self._spread, self._along, self._variation = 0.0, 0.0, 0.0
        self._mean, self._deviation = 0.0, 0.0  # of all rounds so far, and by chance
        self._abrupt = False  # whether the last round was

    @property
    def trend(self) -> float:
        """By which factor δ₀ changes from round to round, at most 1: as far down as is certain."""
        standard_error = math.sqrt(self._spread * TREND_TRUST / (2.0 - TREND_TRUST))
        return min(max(math.exp(self._trend + standard_error), FASTEST_TREND), 1.0)

    @property
    def seen(self) -> bool:
        """Whether δ was more than noise in the last round."""
        return self._last > 0.0

    @property
    def feedback(self) -> float:
        """φ."""
        return min(max((self._along + VARIATION * UNTOLD) / (self._variation + VARIATION), 0.0), 1.0)

    def learn(self, moved: float, deviation: float, doubt: float, age: float, trust: float) -> float:
        """A round is over. Returns what part of ``moved`` is taken as an abrupt change, and so not as drift.

        Parameters
        ----------
        moved : float
            The energy by which nodes are from what they sent, beyond noise.
        deviation, doubt : float
            Its standard deviation by chance, and by how much it may be wrong anyway.
        age : float
            Rounds since they sent it.
        trust : float
            How much the round counts, if that is more than ``TRUST``.
        """
        age, by_chance = max(age, 1.0), CHANCE * deviation + doubt
        self._abrupt = not self._abrupt and moved > ABRUPT * (self.now * age + by_chance)
        if self._abrupt:
            return moved - self.now * age
        drift = self._seen(moved / age, deviation / age, doubt / age)
        if self._last > 0.0 and drift == 0.0 and self.now < CHANCE * self._deviation + doubt / age:
            return 0.0  # it could not be seen
        if self._last > 0.0 and drift > 0.0:
            self._learn_cause(math.log(drift / self._last))
            trust = max(TRUST, trust)
            self.now = trust * drift + (1.0 - trust) * self.now
        else:
            self.now = drift or self._deviation
        self._last, self._last_error = drift, self.error
        return 0.0

    def _seen(self, drift: float, deviation: float, doubt: float) -> float:
        """What a round shows by itself, or together with earlier ones; 0 where noise hides it."""
        weight = 1.0  # of this round, by the inverse of the variance
        if self._deviation > 0.0 and deviation > 0.0:
            weight = 1.0 / (1.0 + (1.0 - FORGOTTEN) * (deviation / self._deviation) ** 2)
        self._mean += weight * (drift - self._mean)
        self._deviation = math.sqrt(weight) * deviation
        every = (drift, deviation), (self._mean, self._deviation)
        return next((mean for mean, by_chance in every if mean > CHANCE * by_chance + doubt), 0.0)

    def _learn_cause(self, change: float) -> None:
        if self.error > 0.0 and self._last_error > 0.0:
            of_error = math.log(self.error / self._last_error)
            variation = self._variation + of_error**2
            kept = min(1.0, MOST_VARIATION / variation) if variation > 0.0 else 1.0
            self._along, self._variation = kept * (self._along + of_error * change), kept * variation
            change -= self.feedback * of_error
        off = change - self._trend
        self._trend += TREND_TRUST * off
        self._spread = (1.0 - TREND_TRUST) * (self._spread + TREND_TRUST * off * off)

    def erred(self, error: float, age: float) -> None:
        """The estimate of a round had this error; what is remembered after it has this mean age."""
        self.error = error if math.isnan(self.error) else self.error + (error - self.error) / max(age, 1.0)

    def state(self) -> Tree:
        """All of it."""
        errors = self.error, self._last_error, self._along, self._variation
        unseen = self._spread, self._mean, self._deviation, self._abrupt
        return np.array([self.now, self._last, self._trend, *errors, *unseen])

    def restore(self, state: Tree, name: str) -> None:
        """Restore what ``state()`` returned, which stands under this name."""
        found = array_in(state, name).tolist()
        self.now, self._last, self._trend = found[:3]
        if len(found) > 4:  # there were three numbers once, and a fourth of something else
            self.error, self._last_error, self._along, self._variation, self._spread = found[3:8]
            self._mean, self._deviation, abrupt = found[8:]
            self._abrupt = bool(abrupt)
