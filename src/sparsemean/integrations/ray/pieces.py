"""Payloads cut by range: views of their values go out, and the shard draws the coordinates of its range itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

import sparsemean as sm
from sparsemean._types import Array
from sparsemean.journal.written_tree import read_tree, written
from sparsemean.kernels.sample import Sample, places_of
from sparsemean.payload import Layout, Levels, Part, Payload
from sparsemean.sampling import Plan, sample_between
from sparsemean.server.local import Entry
from sparsemean.server.roster import Acceptance
from sparsemean.state_tree import Tree, array_in, branch

UNCHANGED = -1


@dataclass(frozen=True, slots=True)
class Sent:
    """What of one part lies in a range; ``at`` are its coordinates in the whole vector, where they were listed."""

    values: Array
    noise: Array | float
    at: Array | None


@dataclass(frozen=True, slots=True)
class Piece:
    """What of one payload lies in a range, with all that a server knows of the payload.

    Attributes
    ----------
    acceptance : Acceptance
        What the roster records of the payload.
    afresh : bool
        Whether its node begins with it, whatever was known of the node.
    choice : int
        Which encoder made it; ``UNCHANGED`` where it has no values.
    sent : tuple of Sent
        Its parts, as far as they lie in the range.
    plan : Plan, optional
        The slot of its node, where the run has plans; values have no need of the plan's scale any more.
    """

    acceptance: Acceptance
    afresh: bool
    choice: int
    sent: tuple[Sent, ...]
    plan: Plan | None = None

    def payload(self, run: sm.Run, lo: int, hi: int) -> Payload | None:
        """The payload as the shard of [lo, hi) sees it: coordinates from lo on, and memory of its own."""
        if self.choice == UNCHANGED:
            return None
        receipt = self.acceptance.receipt
        parts = []
        for layout, sent in zip(run.layouts[self.choice], self.sent, strict=True):
            if layout.where == "all":
                at = np.arange(hi - lo)
            elif sent.at is not None:
                at = sent.at - lo
            else:
                key = run.key(receipt.node, receipt.round, self.plan).child(layout.part)
                at = sample_between(layout.sample(key, run.dim), lo, hi)[0] - lo
            noise = sent.noise if isinstance(sent.noise, float) else Levels(np.array(sent.noise), 1, sent.noise.size)
            parts.append(Part(at, np.array(sent.values), layout.scale, noise))
        return Payload(tuple(parts), self.choice, 0 if self.plan is None else self.plan.slots)

    def record(self, after: int) -> tuple[str, bytes, bytes]:
        """Node, weight and all else, for a journal; ``after`` is the record that it came after, with others perhaps."""
        receipt = self.acceptance.receipt
        numbers = np.array([self.acceptance.bytes, self.acceptance.basis, self.afresh, self.choice, after], np.int64)
        sent: list[Tree] = [{"values": each.values, "noise": each.noise, "at": each.at} for each in self.sent]
        tree: dict[str, Tree] = {"digest": receipt.digest, "numbers": numbers, "sent": sent}
        if self.acceptance.wanted_scale is not None:
            tree["wanted"] = np.array(self.acceptance.wanted_scale)
        if self.plan is not None:
            tree["plan"] = np.array([-1 if self.plan.slot is None else self.plan.slot, self.plan.slots], np.int64)
        return receipt.node, self.acceptance.weight.tobytes(), b"".join(written(tree))

    @staticmethod
    def recorded(round: int, node: str, weight: bytes, rest: bytes) -> tuple[Piece, int]:
        """The piece that ``record`` wrote, and what it came after."""
        tree = read_tree(rest)
        size, basis, afresh, choice, after = array_in(tree, "numbers").tolist()
        receipt = sm.Receipt(node, round, str(branch(tree, "digest")))
        sent = branch(tree, "sent")
        found = [each for each in sent if isinstance(each, dict)] if isinstance(sent, list) else []
        parts = tuple(Sent(each["values"], each["noise"], each["at"]) for each in found)  # type: ignore[arg-type]
        plan = None
        if isinstance(tree, dict) and "plan" in tree:
            slot, slots = array_in(tree, "plan").tolist()
            plan = Plan(None if slot < 0 else slot, slots)
        wanted = float(array_in(tree, "wanted")) if isinstance(tree, dict) and "wanted" in tree else None
        acceptance = Acceptance(receipt, np.frombuffer(weight), size, basis, wanted)
        return Piece(acceptance, bool(afresh), choice, parts, plan), after


def pieces(run: sm.Run, bounds: Sequence[int], entry: Entry, plan: Plan | None) -> list[Piece]:
    """One for each range, also where nothing of the payload lies in it: every shard knows every node."""
    acceptance, afresh, payload = entry
    plan = None if plan is None else replace(plan, scale=None)
    if payload is None:
        return [Piece(acceptance, afresh, UNCHANGED, (), plan)] * (len(bounds) - 1)
    cut = [_cut(part, layout, bounds) for part, layout in zip(payload.parts, run.layouts[payload.choice], strict=True)]
    return [Piece(acceptance, afresh, payload.choice, sent, plan) for sent in zip(*cut, strict=True)]


def _cut(part: Part, layout: Layout, bounds: Sequence[int]) -> Iterator[Sent]:
    if layout.where == "all":
        ends = list(bounds)
    elif isinstance(part.where, Sample):
        ends = places_of(part.where, -(-np.asarray(bounds) // part.where.size)).tolist()
    else:
        ends = np.searchsorted(part.where, bounds).tolist()
    for start, end in pairwise(ends):
        here = slice(start, end)
        noise = part.noise if isinstance(part.noise, float) else np.asarray(part.noise)[here]
        listed = isinstance(part.where, np.ndarray) and not layout.fixed
        yield Sent(part.values[here], noise, part.coordinates[here] if listed else None)
