"""Payloads cut by range: views of their values go out, and the shard draws the coordinates of its range itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

import sparsemean as sm
from sparsemean._types import Array, Ints
from sparsemean.journal.written_tree import read_tree, written
from sparsemean.kernels.sample import Sample, places_of
from sparsemean.kernels.tiled import Tiled
from sparsemean.payload import Layout, Levels, Part, Payload
from sparsemean.sampling import Key, Plan, sample_between
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
        key = run.key(receipt.node, receipt.round, self.plan)
        parts = []
        for layout, sent in zip(run.layouts[self.choice], self.sent, strict=True):
            begin, classes = 0, _classes(layout, key.child(layout.part), run.dim, sent, lo, hi)
            for i, (at, scale) in enumerate(classes):
                number = at.k if isinstance(at, Tiled) else at.size
                end = begin + number if i < len(classes) - 1 else sent.values.size
                here, noise = slice(begin, end), sent.noise
                few = noise if isinstance(noise, float) else Levels(np.array(noise[here]), 1, end - begin)
                parts.append(Part(at, np.array(sent.values[here]), scale, few))
                begin = end
        slots = 0 if self.plan is None else self.plan.slots
        return Payload(tuple(parts), self.choice, slots, split=len(parts) > len(self.sent))

    def record(self, after: int) -> tuple[str, bytes, bytes]:
        """Node, weight and all else, for a journal; ``after`` is the record that it came after, with others perhaps."""
        receipt = self.acceptance.receipt
        numbers = np.array([self.acceptance.bytes, self.acceptance.basis, self.afresh, self.choice, after], np.int64)
        sent: list[Tree] = [{"values": each.values, "noise": each.noise, "at": each.at} for each in self.sent]
        tree: dict[str, Tree] = {"digest": receipt.digest, "numbers": numbers, "sent": sent}
        if self.acceptance.wanted_scale is not None:
            tree["wanted"] = np.array(self.acceptance.wanted_scale)
        if self.plan is not None:
            slot, epoch = self.plan.slot, self.plan.epoch
            clock = () if epoch is None else (epoch, *self.plan.ratios)
            tree["plan"] = np.array([-1 if slot is None else slot, self.plan.slots, *clock], np.int64)
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
            slot, slots, *clock = array_in(tree, "plan").tolist()
            plan = Plan(None if slot < 0 else slot, slots, clock[0] if clock else None, bytes(clock[1:]))
        wanted = float(array_in(tree, "wanted")) if isinstance(tree, dict) and "wanted" in tree else None
        acceptance = Acceptance(receipt, np.frombuffer(weight), size, basis, wanted)
        return Piece(acceptance, bool(afresh), choice, parts, plan), after


def pieces(run: sm.Run, bounds: Sequence[int], entry: Entry, plan: Plan | None) -> list[Piece]:
    """One for each range, also where nothing of the payload lies in it: every shard knows every node."""
    acceptance, afresh, payload = entry
    plan = None if plan is None else replace(plan, scale=None)
    if payload is None:
        return [Piece(acceptance, afresh, UNCHANGED, (), plan)] * (len(bounds) - 1)
    layouts = run.layouts[payload.choice]
    together = [payload.parts] if len(layouts) == 1 else [(part,) for part in payload.parts]
    cut = [_joined([_cut(p, layout, bounds) for p in parts]) for parts, layout in zip(together, layouts, strict=True)]
    return [Piece(acceptance, afresh, payload.choice, sent, plan) for sent in zip(*cut, strict=True)]


def _classes(layout: Layout, key: Key, dim: int, sent: Sent, lo: int, hi: int) -> list[tuple[Ints | Tiled, float]]:
    """The coordinates of a part in [lo, hi), from lo on, and their scale: by classes, where they were drawn so."""
    if layout.where in ("all", "signs"):
        return [(np.arange(hi - lo), layout.scale)]
    if sent.at is not None:
        return [(sent.at - lo, layout.scale)]
    first, *others = layout.drawn(key, dim)
    if isinstance(first.where, Sample):
        return [(sample_between(first.where, lo, hi)[0] - lo, layout.scale)]
    every = ((each.where, each.scale) for each in (first, *others) if not isinstance(each.where, Sample))
    return [
        (at.between(lo, hi) if isinstance(at, Tiled) else at[(lo <= at) & (at < hi)] - lo, scale) for at, scale in every
    ]


def _joined(classes: Sequence[Iterator[Sent]]) -> Iterator[Sent]:
    """What travels together of a part, range by range: the values of each class of coordinates, one after another."""
    for first, *others in zip(*classes, strict=True):
        if not others:
            yield first
            continue
        values = np.concatenate([first.values, *(each.values for each in others)])
        noise = first.noise
        if not isinstance(noise, float):
            noise = np.concatenate([noise, *(np.asarray(each.noise) for each in others)])
        yield Sent(values, noise, None)


def _cut(part: Part, layout: Layout, bounds: Sequence[int]) -> Iterator[Sent]:
    if layout.where == "seeded" and isinstance(part.where, np.ndarray):  # in the order of tiles, not within them
        for lo, hi in pairwise(bounds):
            within = (lo <= part.where) & (part.where < hi)
            noise = part.noise if isinstance(part.noise, float) else np.asarray(part.noise)[within]
            yield Sent(part.values[within], noise, None)
        return
    if layout.where in ("all", "signs"):
        ends = list(bounds)
    elif isinstance(part.where, Sample):
        ends = places_of(part.where, -(-np.asarray(bounds) // part.where.size)).tolist()
    elif isinstance(part.where, Tiled):
        ends = part.where.at[-(-np.asarray(bounds) // part.where.tile)].tolist()
    else:
        ends = np.searchsorted(part.where, bounds).tolist()
    for start, end in pairwise(ends):
        here = slice(start, end)
        noise = part.noise if isinstance(part.noise, float) else np.asarray(part.noise)[here]
        listed = isinstance(part.where, np.ndarray) and not layout.fixed
        yield Sent(part.values[here], noise, part.coordinates[here] if listed else None)
