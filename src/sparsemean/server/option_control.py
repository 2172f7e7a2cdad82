"""Which option of ``Auto`` the next round takes, by what earlier rounds showed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.summary import Summary
from sparsemean.encoders import Remembered
from sparsemean.memory import Past
from sparsemean.run import Run
from sparsemean.sampling import Clock
from sparsemean.server.drift import Drift
from sparsemean.server.observed import SUMS
from sparsemean.server.option_forecast import (
    HORIZON,
    OVER,
    Coverage,
    Figures,
    Held,
    Played,
    Rounding,
    balanced,
    epochs,
    promised,
)
from sparsemean.state_tree import Tree, array_in, branch
from sparsemean.wire.values.dithered import Dithered
from sparsemean.wire.values.eden import Eden

WORTH = 0.9
"""An option takes over where it promises this part of the error of the one that is on, or less."""
FLOAT32_NOISE = 2.0**-50
"""Of its energy: (2⁻²⁴)²/3 on average, up to a factor of 4."""
LEAST_FIT, TINY = 0.25, 1e-12
"""The residual is taken as at least so much of what drift and noise give, and that as at least this part of all."""
FEW = 0.01
SPIKE, SPIKE_IN_STEP = 4.0, 16.0
"""An option is not taken if the coming round alone would err by so many times what another one would; more where nodes
keep state: what differences to it leave becomes less by a factor in every round, so that a round lost is not made up
for."""
COARSE, FINER = 0.1, 5.0
"""Remembered values with noise above this part of D hide what a node's own past tells. Before a share of the
coordinates is sent with so much less noise, they may be shrunk or dropped: the memory begins anew."""
DOUBT = 0.2
"""What shrunk values lack is known but for this part of it."""


@dataclass(frozen=True)
class Why:
    """What was chosen for a round, and from which figures; errors are squared errors of the mean, in the coming rounds.

    Attributes
    ----------
    encoder, values : str
        What nodes encode with.
    expected : float
        The error that it promises, as the geometric mean of the coming 32 rounds; NaN before the first has ended, as
        all figures are.
    others : tuple of (str, float)
        All options with what they promise, the best first; infinite where the coming round alone would err by too much.
    nodes : int
        How many nodes came in the last round.
    energy : float
        The error that all vectors' energy would make, Σ w²‖x‖²/W².
    residual : float
        The same of what the memory did not expect.
    correlation : float
        (R2/R1)/(n − 1) of that.
    drift : float
        How much of a node's own last values changes in a round.
    """

    encoder: str
    values: str
    expected: float
    others: tuple[tuple[str, float], ...]
    nodes: int
    energy: float
    residual: float
    correlation: float
    drift: float

    def __str__(self) -> str:
        if math.isnan(self.expected):
            return f"{self.values} values by {self.encoder}: the first round, before anything is known"
        chosen = f"{self.encoder} {self.values}"
        others = [(name, error) for name, error in self.others if name != chosen][:3]
        best = "; ".join(f"{name} {error:.3g}" for name, error in others)
        stays = " (no tenth better, so the choice stays)" if others and others[0][1] < self.expected else ""
        return (
            f"{self.values} values by {self.encoder}, which promises a squared error of {self.expected:.3g}, the "
            f"geometric mean of the coming {HORIZON} rounds. Of "
            f"{self.nodes} nodes with an energy of {self.energy:.3g}, the memory leaves {self.residual:.3g}; nodes "
            f"correlate by {self.correlation:.2f}, and change by {self.drift:.3g} a round. "
            f"Best of the others: {best}{stays}"
        )


class Decision(NamedTuple):
    """Whether the next round has another option, and what becomes of the memory for it."""

    changed: bool
    past: Past = "kept"


class OptionControl:
    """The option of the open round, and the figures by which the next one is chosen.

    Any rule that goes by earlier rounds alone keeps the estimate unbiased.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.option = 0
        self._promises: list[float] = []
        self._figures: Figures | None = None
        self._drift = Drift()
        self._fitted = 0.0  # g of the memory in the open round
        self._levels = np.zeros((3, 2))  # energy and largest square, of x, x − r and x − B
        self._memory = Coverage()
        self._faded: Coverage | None = None  # the memory, had the coarse values before the last round been shrunk
        self._based = False  # whether the memory has an average over nodes, also where it has heard none

    def learn(
        self, summary: Summary, beliefs: Sequence[Belief], clocks: Sequence[Clock], error: float | None = None
    ) -> None:
        """The open round is about to end with this summary, and its estimate with this error."""
        if not summary.nodes.any() or not summary.observed.size:
            return
        per_weight = _per_weight(summary)
        of = dict(zip(SUMS, (summary.observed @ per_weight).tolist(), strict=True))
        residual, correlation = self._residual(summary, beliefs, clocks, per_weight)
        if not all(map(math.isfinite, (*of.values(), residual, correlation))):  # squares of absurd values overflow
            return
        energies = [max(of[name] - of["noise"], 0.0) for name in ("squares", "relative", "own")]
        self._levels = np.array([energies, [of["peak"], of["relative_peak"], of["own_peak"]]]).T
        nodes = int(summary.nodes.max())
        common = self._common(of, nodes, energies[0])
        held = self._memory.together()
        if of["heard"] > 0.0 and held.unheard < 1.0:
            now, part = self._run.options[self.option], of["values"] / of["heard"]
            hidden = part * of["heard_noise"] + held.noise + held.missing
            deviation = math.sqrt(2.0 / summary.observed[-1].sum()) * hidden
            moved, doubt = part * of["from_own"] - hidden, DOUBT * held.missing
            lost = self._drift.learn(moved, deviation, doubt, held.age, now.shares[0])
            self._memory = self._memory.lacking(lost)
        drift = 0.0 if math.isnan(self._drift.now) else self._drift.now
        known = {"energy": energies[0], "fitted": self._fitted}
        figures = Figures(nodes, correlation, residual, common, drift, self._drift.trend, **known)
        # Nodes that were absent, or are new, were heard at fewer coordinates than the rounds tell.
        self._memory = self._memory.unheard_by(1.0 - of["heard"] / of["values"])
        expected = max(figures.unexplained_in(self._memory, figures.first_own_part(self._memory)), TINY * energies[0])
        fit = max(residual / expected, LEAST_FIT) if expected > 0.0 else 1.0
        if of["heard"] > 0.0:
            self._fitted = figures.own_part(self._memory)
        kept = _kept(self._run.options[self.option]) * of["noise"]
        self._faded = self._faded_after(figures, kept)
        self._memory = self._after(clocks, kept)
        if error is not None and math.isfinite(error):
            self._drift.erred(error, self._memory.together().age)
        along = (self._drift.feedback, self._drift.error) if self._drift.error > 0.0 else (0.0, 1.0)
        self._figures = replace(figures, fit=fit, feedback=along[0], error=along[1], fitted=self._fitted)

    def _common(self, of: dict[str, float], nodes: int, energy: float) -> float:
        """D: from coordinates at which a node was not heard; else of all, of whose average it has a part itself.

        NaN where nothing is known of any node.
        """
        unheard = of["values"] - of["heard"]
        if not self._based and of["heard"] <= 0.0:
            return math.nan
        if unheard > FEW * of["values"]:
            return max(of["values"] / unheard * (of["from_others"] - of["unheard_noise"]), 0.0)
        own = nodes / (nodes - 1.0) if nodes > 1 else math.inf
        apart = of["values"] / of["heard"] * max(of["from_average"] - of["heard_noise"], 0.0)
        return min(apart * own * own, energy) if nodes > 1 else energy

    def _residual(
        self, summary: Summary, beliefs: Sequence[Belief], clocks: Sequence[Clock], per_weight: Doubles
    ) -> tuple[float, float]:
        """Energy of the residuals, and their correlation."""
        now = self._run.options[self.option]
        shares = np.array(now.class_shares)
        if any(each.scheduled for each in clocks):
            (of_u, u), (of_s, s) = clocks[0].probabilities
            shares = np.array([0.0, 0.0, of_u / u, of_s / s])
        squares, noise = shares @ summary.class_squares @ per_weight, shares @ summary.class_noise @ per_weight
        energy = max(float(squares - noise), 0.0)
        told = [
            each.now if each.now is not None and not math.isnan(each.now) else each.before or 0.0 for each in beliefs
        ]
        pairs = float((shares @ summary.class_squares * per_weight) @ np.array(told))  # beliefs go by values with noise
        certain = 1.0 - 2.0 / math.sqrt(max(float(summary.nodes.max()) * now.layout[0].count, 4.0))
        return energy, min(max(pairs / energy, -1.0), certain) if energy > 0 else 0.0

    def _after(self, clocks: Sequence[Clock], noise: float) -> Coverage:
        """The memory after the round, whose values had this noise."""
        p = self._run.options[self.option].shares[0]
        if not clocks:
            return self._memory.uniform(p, noise)
        if not clocks[0].scheduled:
            return self._memory.first(p, noise)
        (r_u, of_u), (r_s, of_s) = clocks[0].probabilities
        return self._memory.later(r_u / of_u, r_s / of_s, noise)

    def _faded_after(self, figures: Figures, noise: float) -> Coverage | None:
        """The same if what came before the round is shrunk, which is too coarse; None where that is not better.

        It is not where whole vectors came, where these values are as coarse themselves, or where it is not worth it
        (``_worth_shrinking``).
        """
        p = self._run.options[self.option].shares[0]
        if p == 1.0 or noise > COARSE * figures.common or not _worth_shrinking(figures, self._memory):
            return None
        return figures.shrunk(self._memory).uniform(p, noise)

    def _rounding(self, option: Run) -> Rounding:
        """The noise that this option's values would have."""
        encoder, everything = option.encoder, float(self._levels[0, 0])
        difference = isinstance(encoder, Remembered) and encoder.factor == 1
        energy, peak = self._levels[2 if difference else int(option.relative)].tolist()
        omega = self._omega(option, peak / energy if energy > 0.0 else 1.0)
        if difference:
            return Rounding(omega, None, _kept(option), FLOAT32_NOISE * everything)
        return Rounding(omega, energy, _kept(option))

    @staticmethod
    def _omega(option: Run, peak: float) -> float:
        """Their noise over their energy, where the largest square is so many times the mean one."""
        kind, k = option.value_kind, option.layout[0].count
        if isinstance(kind, Eden):
            rotated = kind.omega(k)
            if rotated:
                return rotated
            kind = kind.few
        if isinstance(kind, Dithered):
            return float(peak / (3.0 * (2**kind.bits - 1) ** 2))
        return FLOAT32_NOISE

    def decide(self) -> Decision:
        """Choose for the next round."""
        if self._figures is None:
            return Decision(False)
        numbers = range(len(self._run.options))
        spike = SPIKE_IN_STEP if self._run.in_step else SPIKE
        bearable = spike * min(self._next_error(self._figures, self._memory, number) for number in numbers)
        self._promises = [self._promise(self._figures, self._memory, number, bearable) for number in numbers]
        (anew, past), begin = self._anew(self._figures), [False for _ in numbers]
        self._faded = None  # of the round that has just ended
        for number in filter(partial(self._may_begin_anew, self._figures), numbers):
            afresh = self._promise(replace(self._figures, fitted=1.0), anew, number, bearable)
            begin[number] = afresh < self._promises[number]
            self._promises[number] = min(afresh, self._promises[number])
        best, before = int(np.argmin(self._promises)), self.option
        if not self._promises[best] < WORTH * self._promises[before]:
            return Decision(False)
        goes_on = self._memory.u.part > OVER and math.isfinite(self._promises[before])
        if goes_on and self._after_the_epoch(self._figures) < self._promises[best]:
            return Decision(False)
        self.option = best
        if begin[best]:
            self._memory, self._based, self._fitted = anew, True, 1.0
            return Decision(True, past)
        self._memory = Coverage(Held(), self._memory.together())  # an epoch ends with its option
        return Decision(True)

    def _may_begin_anew(self, figures: Figures, number: int) -> bool:
        """Whether this option, if it is another than the one that is on, may do better without the memory as it is."""
        option, noise = self._run.options[number], self._memory.together().noise
        other = number != self.option and option.shares[0] < 1.0 and not self._run.in_step  # nodes keep it as well
        return other and noise > COARSE * figures.common and noise > FINER * self._rounding(option).noise(0.0)

    def _anew(self, figures: Figures) -> tuple[Coverage, Past]:
        """The memory if it begins anew.

        What came in a round of whole vectors is shrunk; after one of a share of the coordinates, what came before it.
        """
        if self._faded is not None:
            return self._faded, "faded"
        if self._run.options[self.option].shares[0] == 1.0 and _worth_shrinking(figures, self._memory):
            return figures.shrunk(self._memory), "shrunk"
        return Coverage(), "dropped"

    @property
    def why(self) -> Why:
        """What was chosen for the open round, and from which figures."""
        options, found = self._run.options, self._figures
        chosen = _shown(options[self.option])
        if found is None or not self._promises:
            return Why(*chosen, math.nan, (), 0, math.nan, math.nan, math.nan, math.nan)
        promises = zip((" ".join(_shown(each)) for each in options), self._promises, strict=True)
        ranked = tuple(sorted(promises, key=lambda each: each[1]))
        told = float(self._levels[0, 0]), found.residual, found.correlation, found.drift
        return Why(*chosen, self._promises[self.option], ranked, found.nodes, *told)

    def _next_error(self, figures: Figures, memory: Coverage, number: int) -> float:
        return next(self._rounds(figures, memory, number)).error

    def _promise(self, figures: Figures, memory: Coverage, number: int, bearable: float) -> float:
        """Of the coming rounds, if they have this option; infinite where the first is not bearable."""
        if self._next_error(figures, memory, number) > bearable:
            return math.inf
        return promised(self._errors(figures, memory, number))

    def _errors(self, figures: Figures, memory: Coverage, number: int, since: int = 0) -> list[float]:
        """Of the coming rounds, if they have this option; the first is so many rounds off.

        Where noise hides the drift, once more of the same rounds without any: it is as likely to be nothing.
        """
        cases = [figures] if self._drift.seen else [figures, replace(figures, drift=0.0)]
        played = (islice(self._rounds(case, memory, number, since), HORIZON - since) for case in cases)
        return [each.error for rounds in played for each in rounds]

    def _rounds(self, figures: Figures, memory: Coverage, number: int, since: int = 0) -> Iterator[Played]:
        option = self._run.options[number]
        p, rounding = option.shares[0], self._rounding(option)
        if option.epochs is None:
            return balanced(figures, memory, p, rounding, since)
        on = number == self.option and memory.u.part > OVER
        return epochs(figures, memory, p, rounding, on, since)

    def _after_the_epoch(self, figures: Figures) -> float:
        """What is promised if the epoch that is on goes on to its end, and then the best option takes over."""
        until: list[float] = []
        for error, memory, own_part in islice(self._rounds(figures, self._memory, self.option), HORIZON - 1):
            until.append(error)
            if memory.u.part <= OVER:
                known, whole = replace(figures, fitted=own_part), Coverage(Held(), memory.together())
                numbers, played = range(len(self._run.options)), len(until)
                times = 1 if self._drift.seen else 2
                return min(promised(times * until + self._errors(known, whole, number, played)) for number in numbers)
        return math.inf

    def state(self) -> Tree:
        """All of it."""
        figures = () if self._figures is None else tuple(vars(self._figures).values())
        return {
            "option": self.option,
            "drift": self._drift.state(),
            "memory_has": np.array([self._based, self._fitted]),
            "levels": self._levels,
            "memory": np.array(self._memory),
            "figures": np.array(figures),
            "promises": np.array(self._promises),
        }

    def restore(self, state: Tree) -> None:
        """Restore what ``state()`` returned."""
        option = branch(state, "option")
        if not isinstance(option, int) or not 0 <= option < len(self._run.options):
            raise ValueError("there is no such option")
        self.option = option
        self._drift.restore(state, "drift")
        if isinstance(state, dict) and "memory_has" in state:
            based, self._fitted = array_in(state, "memory_has").tolist()
        else:  # journals once had the first as the last number of the drift, and not the other
            based, self._fitted = array_in(state, "drift").tolist()[3], math.nan
        self._based = bool(based)
        known = array_in(state, "levels").reshape(-1, 2)
        self._levels = np.zeros((3, 2))
        self._levels[: len(known)] = known  # of a journal from before nodes kept state: two
        self._memory = Coverage(*(Held(*each) for each in array_in(state, "memory").tolist()))
        figures, self._promises = array_in(state, "figures").tolist(), array_in(state, "promises").tolist()
        self._figures = Figures(int(figures[0]), *figures[1:]) if figures else None


def _shown(option: Run) -> tuple[str, str]:
    return repr(option.scheme.encoder), option.scheme.values


def _kept(option: Run) -> float:
    """Which part of the noise of its values is remembered."""
    encoder = option.encoder
    return 1.0 if not isinstance(encoder, Remembered) or encoder.step is None else encoder.step


def _worth_shrinking(figures: Figures, memory: Coverage) -> bool:
    """Whether values, shrunk, tell more of a node than the average over nodes.

    They do unless nodes are so much alike that the noise of the average is more than what a node's own values tell:
    Dq/(D + q) > D − q/n, or g²n < 1 − g.
    """
    g = figures.own_part(memory)
    return g * g * figures.nodes > 1.0 - g


def _per_weight(summary: Summary) -> Doubles:
    """1/W² of each block, 0 where nobody has weight."""
    weight = summary.weight
    return np.divide(1.0, weight**2, out=np.zeros_like(weight), where=weight > 0)
