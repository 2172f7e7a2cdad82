"""The roster: who came in the open round and in the last one, with which weight and plan, building on which state."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from sparsemean._names import Missing
from sparsemean._types import Doubles, Floats
from sparsemean.codec import next_basis, out_of_step
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.summary import Summary
from sparsemean.errors import ConflictingPayload, TooFewNodes, WrongPlan, WrongRound
from sparsemean.kernels import Sample
from sparsemean.memory import Past
from sparsemean.payload import Payload
from sparsemean.results import Receipt
from sparsemean.run import Run
from sparsemean.sampling import MAX_SLOTS, Clock, Dealt, Plan, Slots
from sparsemean.server.common_scale import next_scale
from sparsemean.server.epoch_control import EpochControl
from sparsemean.server.observed import Look
from sparsemean.server.option_control import Decision, OptionControl, Why
from sparsemean.server.reference import Reference
from sparsemean.server.repeats import sent_first
from sparsemean.server.terms import Terms
from sparsemean.state_tree import Tree, array_in, branch, names_in


class Offered(Protocol):
    """What the roster judges a payload by: no values of it.

    Attributes
    ----------
    receipt : Receipt
        What it will be answered with.
    weight : array
        One number for each block.
    basis : int
        The tag of the node state that it builds on; 0 for none.
    choice : int, optional
        Which encoder made it; None where it has no values.
    plan : Plan, optional
        By which it was read.
    """

    @property
    def receipt(self) -> Receipt: ...
    @property
    def weight(self) -> Doubles: ...
    @property
    def basis(self) -> int: ...
    @property
    def choice(self) -> int | None: ...
    @property
    def plan(self) -> Plan | None: ...


@dataclass(frozen=True, slots=True)
class Submission:
    """A payload offered to a server: whole, made for this run and node, with its weight; not accepted yet."""

    receipt: Receipt
    weight: Doubles
    blob: bytes
    basis: int
    payload: Payload | None
    plan: Plan | None = None

    @property
    def choice(self) -> int | None:
        """Which encoder made it; None where it has no values."""
        return None if self.payload is None else self.payload.choice


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What the roster records of an accepted payload; ``basis`` is the tag of the node's state after it.

    ``wanted_scale`` is that of the payload; of the last round it is not kept.
    """

    receipt: Receipt
    weight: Doubles
    bytes: int
    basis: int
    wanted_scale: float | None = None


class Roster:
    """Acceptances of the open round and the last one, and the last weight and basis of every node heard.

    Parameters
    ----------
    run : Run
    missing : {"drop", "carry"}
        Whether nodes heard before but absent from the round count in the mean.
    round : int
        The open round.
    """

    def __init__(self, run: Run, missing: Missing, round: int) -> None:
        self.run = run
        self.missing = missing
        self.round = round
        self.accepted: dict[str, Acceptance] = {}
        self.known: dict[str, Doubles] = {}  # last weights, those heard longest ago first
        self.dealt: Dealt | None = None  # in the open round, once the server has given any plan
        self._terms = Terms()  # of the open round, if any were dealt; else those of the epoch that is on
        self._options = OptionControl(run) if run.auto else None
        self._control = EpochControl(self.open_run) if self.open_run.epochs is not None else None
        self._basis: dict[str, int] = {}
        self.scale: float | None = None  # of few-bit values in the open round, once payloads have shown one
        # What payloads of the open round may be relative to; None where the run has no use for it.
        self.reference = Reference(round) if run.relative else None
        self._closed: dict[str, Acceptance] = {}
        self._closed_terms = Terms()

    @property
    def open_run(self) -> Run:
        """The run of the open round: one of the run's ``options``."""
        return self.run.options[0 if self._options is None else self._options.option]

    @property
    def why(self) -> Why | None:
        """What ``Auto`` chose for the open round, and from which figures; None where nothing is chosen."""
        return None if self._options is None else self._options.why

    @property
    def look(self) -> Look | None:
        """How the payloads of the open round are looked at; None where nothing is chosen by it."""
        if not self.run.auto:
            return None
        reference = None if self.reference is None else self.reference.mean
        return Look(self.run.seed, self.round, self._open_terms().seats, reference)

    def cohort(self) -> list[str]:
        """Who shares the slots of the open round where nobody says: the run's list of nodes, else all nodes heard."""
        return list(self.run.nodes or self.known)[-MAX_SLOTS:]

    @property
    def begun(self) -> bool:
        """Whether the slots of the open round are fixed: some were given, or a payload came that goes by the list."""
        return self.dealt is not None or bool(self.accepted)

    def next_deal(self, slots: Slots | None) -> Dealt:
        """What to deal in the open round, where these nodes are asked, or nobody says who is (``cohort``).

        The epoch that is on goes on, unless a node asked now sends by another encoder than that of its slot.
        """
        last, control = self._terms, self._control
        on = control is not None and last.epoch is not None and control.goes_on(last.ratios)
        if control is not None and on and (slots is None or last.suit(slots)):
            return control.ratio
        return self.cohort() if slots is None else slots

    def deal(self, dealt: Dealt) -> None:
        """Fix what nodes go by in the open round: a slot for each of these, or the epoch goes on with this ratio."""
        self._terms = self._terms.with_ratio(dealt) if isinstance(dealt, int) else self._first_terms(dealt)
        self.dealt = dealt

    def _first_terms(self, slots: Slots) -> Terms:
        option = None if self._options is None else self._options.option
        return Terms(slots, None if self._control is None else self.round, scale=self.scale, option=option)

    def _open_terms(self) -> Terms:
        return self._first_terms(list(self.run.nodes)) if self.dealt is None else self._terms

    def refer_to(self, reference: Floats) -> None:
        """Make this what payloads of the open round may be relative to, in place of the last mean."""
        self.reference = Reference.of(self.round, reference)

    @property
    def in_epoch(self) -> bool:
        """Whether an epoch is on, which may go on."""
        return self._terms.epoch is not None

    def clocks(self) -> tuple[Clock, ...]:
        """Where the nodes of each encoder are in the epoch, in the open round; empty where there are no epochs."""
        return () if self._control is None else self._control.clocks(self._open_terms().ratios)

    def learn(self, summary: Summary, beliefs: Sequence[Belief], error: float | None) -> None:
        """Learn from the open round, which is about to end, how the epoch is to go on, and what to choose next.

        ``error`` is that of its estimate, as far as it is known.
        """
        if self._control is not None:
            self._control.learn(summary, self._open_terms().ratios)
        if self._options is not None:
            self._options.learn(summary, beliefs, self.clocks(), error)

    def sent_before(self, node: str) -> Sample | None:
        """What this node sent in the last round, where that round and the open one begin an epoch; of some nodes."""
        last, beginning = self._closed_terms, self._control is not None and not self._open_terms().ratios
        if not beginning or node not in self._closed or last.ratios or last.epoch != self.round - 1:
            return None
        return sent_first(self.open_run, node, last)

    def plan(self, node: str, round: int) -> Plan | None:
        """What a payload of this node must follow in the open round or the last one; None where there are no plans."""
        if not self.run.planned:
            return None
        if round != self.round:
            return self._closed_terms.plan(node)
        if self.dealt is None and not self.run.nodes:
            # Or whoever sends first, without a slot, would settle that nobody has one.
            raise WrongPlan(f"round {round} has given no plan yet; encode with plan=server.plan({node!r})")
        return self._open_terms().plan(node)

    def plans(self, node: str, round: int) -> tuple[Plan, ...]:
        """The plans that a payload of this node may follow: that of ``plan``, and that of the run's list of nodes.

        A node that goes by the list knows its slot, and no scale. Empty where there are no plans.
        """
        plan = self.plan(node, round)
        if plan is None:
            return ()
        return (plan, replace(plan, scale=None)) if self.run.nodes and plan.scale is not None else (plan,)

    def check_choice(self, submission: Offered) -> None:
        """Refuse a payload by another encoder than that whose nodes share out the slots with this one."""
        receipt, choice = submission.receipt, submission.choice
        if receipt.round == self.round and self.dealt is None:  # one draw, by the run's list
            return
        terms = self._terms if receipt.round == self.round else self._closed_terms
        if choice is not None and terms.choice(receipt.node) not in (None, choice):
            raise WrongPlan(
                f"node {receipt.node!r} sends by {self.run.encoders[choice]!r}, and its slot is among those of "
                f"another encoder; tell server.plans() which encoder it uses, or make its Client with that one"
            )

    def check_round(self, round: int) -> None:
        """Refuse rounds but the open one, and the one before it, whose payloads may come again."""
        if round not in (self.round, self.round - 1):
            raise self._wrong(round)

    def _wrong(self, round: int) -> WrongRound:
        what = "is over" if round < self.round else "has not begun"
        return WrongRound(f"round {round} {what}; the open round is {self.round}")

    def check_open(self, round: int) -> None:
        """Refuse rounds but the open one."""
        if round != self.round:
            raise self._wrong(round)

    def receipt(self, node: str, digest: str) -> Receipt | None:
        """The receipt that this node's frame has in the open round or the last one, if it was accepted there."""
        before = (accepted.get(node) for accepted in (self.accepted, self._closed))
        found = (acceptance.receipt for acceptance in before if acceptance is not None)
        return next((receipt for receipt in found if receipt.digest == digest), None)

    def basis(self, node: str, round: int) -> int:
        """The basis that a payload of this node may have in the open round, besides 0; 0 where there is none."""
        if round != self.round:
            return 0
        if self.reference is not None and self.open_run.relative:
            return self.reference.tag
        return self._basis.get(node, 0)

    def is_duplicate(self, submission: Offered, beside: Mapping[str, Offered]) -> bool:
        """Whether this very payload is already accepted; refuses another one in its place, and other rounds.

        ``beside`` are submissions to the open round that are about to be accepted.
        """
        receipt = submission.receipt
        by_round: dict[int, Mapping[str, Acceptance]] = {self.round: self.accepted, self.round - 1: self._closed}
        before = by_round.get(receipt.round, {}).get(receipt.node)
        other = before or (beside.get(receipt.node) if receipt.round == self.round else None)
        if other is not None and other.receipt == receipt and np.array_equal(other.weight, submission.weight):
            return True
        self.check_open(receipt.round)
        if other is not None:
            raise ConflictingPayload(f"node {receipt.node!r} sent other bytes or another weight in round {self.round}")
        return False

    def check_basis(self, submission: Offered) -> None:
        """A payload that builds on node state must build on the state known here; 0 begins afresh."""
        if self.reference is not None and self.open_run.relative:  # the basis is that by which the payload was read
            self.reference.check(submission.basis, submission.receipt.node)  # once more: it was read without the lock
            return
        node, known = submission.receipt.node, self._basis.get(submission.receipt.node, 0)
        if submission.basis not in (known, 0) or (submission.choice is None and submission.basis == 0):
            raise out_of_step(node, relative=False)

    def check_plan(self, submission: Offered) -> None:
        """Refuse a payload that was read by other slots than the round has by now."""
        receipt = submission.receipt
        if self.run.planned and submission.plan not in self.plans(receipt.node, receipt.round):
            raise WrongPlan(
                f"the slots of round {receipt.round} were dealt while the payload of node {receipt.node!r} came; "
                f"encode with plan=server.plan({receipt.node!r}) of this round"
            )
        self.check_choice(submission)

    def acceptance(self, submission: Submission) -> tuple[Acceptance, bool]:
        """What will be recorded of the submission, and whether its node begins afresh with it."""
        in_step = self.run.in_step
        basis = next_basis(submission.basis, submission.blob) if in_step else 0
        wanted = None if submission.payload is None else submission.payload.wanted_scale
        accepted = Acceptance(submission.receipt, submission.weight, len(submission.blob), basis, wanted)
        return accepted, in_step and submission.basis == 0

    def check_enough(self, minimum: int) -> None:
        """Refuse to end a round with fewer nodes, or without any weight."""
        came = len(self.accepted)
        if came < minimum:
            raise TooFewNodes(f"round {self.round} has {came} of {minimum} nodes; wait for more, or skip_round()")
        if not any(np.any(accepted.weight > 0) for accepted in self.accepted.values()):
            raise TooFewNodes(f"all nodes of round {self.round} have weight 0, so there is no mean; skip_round()")

    def weights(self) -> dict[str, Doubles]:
        """Of the nodes that the mean of the open round is of."""
        present = {node: accepted.weight for node, accepted in self.accepted.items()}
        return {**self.known, **present} if self.missing == "carry" else present

    def hear(self, most_nodes: int) -> list[str]:
        """Make those who came the last heard; returns whom to forget, so that ``most_nodes`` are known."""
        for node, accepted in self.accepted.items():
            self.known.pop(node, None)
            self.known[node] = accepted.weight
        return list(self.known)[: max(0, len(self.known) - max(most_nodes, len(self.accepted)))]

    def next_round(self, mean: Doubles | None) -> Past:
        """Close the round, and open the next one; ``mean`` is its estimate, None where it was skipped.

        Returns what becomes of the memory (``OptionControl``).
        """
        if self.run.in_step:
            self._basis.update({node: accepted.basis for node, accepted in self.accepted.items()})
        self._closed_terms, self.dealt = self._open_terms(), None
        wanted = (accepted.wanted_scale for accepted in self.accepted.values())
        self.scale = next_scale(wanted, self.scale) if self.open_run.common_scale else None
        self._closed = {node: replace(accepted, wanted_scale=None) for node, accepted in self.accepted.items()}
        self.accepted = {}
        changed, past = Decision(False) if self._options is None else self._options.decide()
        if changed:
            self.scale, self._terms = None, Terms()
            self._control = EpochControl(self.open_run) if self.open_run.epochs is not None else None
        elif self._control is None:  # only an epoch outlives its round
            self._terms = Terms()
        self.round += 1
        if self.reference is not None:
            last = self.reference._replace(round=self.round)
            self.reference = last if mean is None else Reference.of(self.round, mean)
        return past

    def forget(self, node: str) -> None:
        """Drop weight and basis of a node."""
        self.known.pop(node, None)
        self._basis.pop(node, None)

    def terms_alone(self) -> Self:
        """A roster of the same round and terms that knows no node: what it takes to read payloads."""
        alone = copy.copy(self)
        alone.accepted, alone.known, alone._basis, alone._closed = {}, {}, {}, {}
        return alone

    @property
    def last_nodes(self) -> tuple[str, ...]:
        """The nodes of the last round."""
        return tuple(self._closed)

    def state(self) -> dict[str, Tree]:
        """All of it between two rounds."""
        closed = self._closed.values()
        slots: Any = self._closed_terms.slots
        scales = self._closed_terms.scale, self.scale
        return {
            "round": self.round,
            "known": {"nodes": list(self.known), "weights": self._stacked(self.known)},
            "basis": {"nodes": list(self._basis), "numbers": np.array(list(self._basis.values()), np.int64)},
            "closed": {
                "nodes": list(self._closed),
                "digests": [accepted.receipt.digest for accepted in closed],
                "weights": self._stacked({accepted.receipt.node: accepted.weight for accepted in closed}),
                "numbers": np.array([(accepted.bytes, accepted.basis) for accepted in closed], np.int64),
            },
            **({"slots": slots} if self.run.planned else {}),
            **({} if scales == (None, None) else {"scales": np.array([scale or 0.0 for scale in scales])}),
            **({} if self.reference is None else {"reference": self.reference.mean}),
            **({} if self._control is None else {"epoch": self._epoch_state(self._control)}),
            **({} if self._options is None else {"options": self._options_state(self._options)}),
        }

    def _options_state(self, options: OptionControl) -> Tree:
        last = self._closed_terms
        closed = np.array([-1 if each is None else each for each in (last.option, last.epoch)], np.int64)
        return {"control": options.state(), "closed": closed, "ratios": np.frombuffer(last.ratios, np.uint8)}

    def _epoch_state(self, control: EpochControl) -> Tree:
        last = self._terms
        slots: Any = last.slots
        return {
            "began": -1 if last.epoch is None else last.epoch,
            "slots": slots,
            "ratios": np.frombuffer(last.ratios, np.uint8),
            "closed": self._closed_terms == last,  # else nobody had a plan in the last round
            "control": control.state(),
        }

    def restore(self, state: Tree) -> None:
        """Restore what ``state()`` returned."""
        round, known, basis, closed = (branch(state, name) for name in ("round", "known", "basis", "closed"))
        if not isinstance(round, int):
            raise ValueError("round is no number")
        self.round = round
        self.known = dict(zip(names_in(known, "nodes"), array_in(known, "weights"), strict=True))
        self._basis = dict(zip(names_in(basis, "nodes"), array_in(basis, "numbers").tolist(), strict=True))
        rows = zip(
            *(names_in(closed, name) for name in ("nodes", "digests")),
            array_in(closed, "weights"),
            array_in(closed, "numbers").tolist(),
            strict=True,
        )
        slots: Any = branch(state, "slots") if self.run.planned else []
        before, self.scale = self._scales_in(state)
        self.dealt, self._terms, self._closed_terms = None, Terms(), Terms(slots, scale=before)
        self._closed_terms.plan("")  # refuses what is no list of names
        if self._options is not None:
            self._restore_options(branch(state, "options"), self._options)
        if self._control is not None:
            self._restore_epoch(branch(state, "epoch"), self._control)
        if self.run.relative:
            known_mean = branch(state, "reference") is not None
            self.reference = Reference.of(round, array_in(state, "reference")) if known_mean else Reference(round)
        self._closed = {
            node: Acceptance(Receipt(node, round - 1, digest), weight, *numbers)
            for node, digest, weight, numbers in rows
        }

    @staticmethod
    def _scales_in(state: Tree) -> tuple[float | None, float | None]:
        """The scales of the last round and of the open one."""
        if not isinstance(state, dict) or "scales" not in state:
            return None, None
        before, now = (scale or None for scale in array_in(state, "scales").tolist())
        for scale in (before, now):
            Plan(0, 1, scale=scale)  # refuses what cannot be one
        return before, now

    def _restore_options(self, state: Tree, options: OptionControl) -> None:
        options.restore(branch(state, "control"))
        option, epoch = (None if each < 0 else each for each in array_in(state, "closed").tolist())
        last = self._closed_terms
        self._closed_terms = Terms(last.slots, epoch, array_in(state, "ratios").tobytes(), last.scale, option)
        self._closed_terms.plan("")
        self._control = EpochControl(self.open_run) if self.open_run.epochs is not None else None

    def _restore_epoch(self, state: Tree, control: EpochControl) -> None:
        began, closed = branch(state, "began"), branch(state, "closed")
        if not isinstance(began, int) or not -1 <= began < self.round:
            raise ValueError("an epoch begins in a round that is over")
        slots: Any = branch(state, "slots")
        option = None if self._options is None or began < 0 else self._options.option
        self._terms = Terms(slots, None if began < 0 else began, array_in(state, "ratios").tobytes(), option=option)
        self._terms.plan("")  # refuses ratios that cannot be, and what is no list of names
        if self._options is None:
            self._closed_terms = self._terms if closed else Terms(self._closed_terms.slots, self.round - 1)
        control.restore(state, "control")

    def _stacked(self, weights: Mapping[str, Doubles]) -> Doubles:
        return np.array(list(weights.values()), np.float64).reshape(len(weights), len(self.run.blocks))
