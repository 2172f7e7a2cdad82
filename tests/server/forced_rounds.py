"""Balanced rounds in which the draw is forced: every outcome with its probability, and what should come of each.

An outcome is what docs/sampling.md leaves to chance: the offset, the order of each tile, the order of the slots, in all
and in each hand. Those in which every node that came sends the same coordinates are taken as one, with their chances
added.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, reduce
from typing import Any, TypeAlias

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import sampling, theory
from sparsemean._names import Missing
from sparsemean._types import Doubles
from sparsemean.evaluation import truth
from sparsemean.kernels.hands import hands_of
from sparsemean.kernels.hands import runs as runs_of
from sparsemean.kernels.sample import Sample, drawn

Where: TypeAlias = Any
"""What a node sends: a Sample that draws it, where the vector is one tile, else the coordinates themselves."""

Chances: TypeAlias = dict[tuple[Where, ...], Fraction]
"""What each slot sends → with which probability."""

PAST = 2  # rounds before the one that is enumerated


@cache
def words_for(dim: int) -> dict[tuple[int, ...], Sample]:
    """Words with which a vector that is one short tile is put into each of its orders."""
    found: dict[tuple[int, ...], Sample] = {}
    for number in itertools.count():
        digest = sampling.Key(number, 0, None).digest(b"any")
        sample = forced(Sample.keyed(digest, dim, dim, sampling.tile_size(dim)), 0, dim, 0, 1)
        found.setdefault(tuple(drawn(sample).tolist()), sample)
        if len(found) == math.factorial(dim):
            return found
    raise AssertionError


def runs(
    dim: int, k: int, hand: int, slots: int, off: int, orders: Sequence[Sequence[int]], deals: Sequence[Sequence[int]]
) -> list[list[int]]:
    """The coordinates of each position, as on the page, in tiles of one hand each.

    ``deals`` are the orders of positions in the hands: of those who take one more, which come first, and of the others.
    """
    found: list[list[int]] = [[] for _ in range(slots)]
    for start, order, deal in zip(range(0, dim, hand), orders, deals, strict=True):
        begin, end = 0, min(start + hand, dim)
        counts = [
            (ahead + slots * end * k) // (slots * dim) - (ahead + slots * start * k) // (slots * dim)
            for ahead in range(off, off + slots * dim, dim)
        ]
        for position in sorted(deal, key=lambda position: -counts[position]):
            places = range(begin, begin + counts[position])
            found[position] += [start + order[place % (end - start)] for place in places]
            begin += counts[position]
    return found


@cache
def outcomes(dim: int, k: int, slots: int, came: tuple[int, ...], size: int | None = None) -> Chances:
    """All that the slots ``came`` can send in a draw of so many slots; in tiles of ``size``, or as one tile."""
    tiles = [min(size or dim, dim - start) for start in range(0, dim, size or dim)]
    positions_ordered = list(itertools.permutations(range(slots)))
    every = itertools.product(
        range(dim),
        itertools.product(*(itertools.permutations(range(m)) for m in tiles)),
        positions_ordered,
        # The order of the slots makes that in the first hand uniform as well.
        itertools.product([tuple(range(slots))], *[positions_ordered] * (len(tiles) - 1)),
    )
    alike: dict[tuple[frozenset[int], ...], list[Any]] = {}
    for off, orders, positions, deals in every:
        of_position = runs(dim, k, size or dim, slots, off, orders, deals)
        sent = tuple(frozenset(of_position[positions[slot]]) for slot in came)
        alike.setdefault(sent, [0, (off, orders, positions, deals)])[0] += 1
    found: Chances = {}
    total = sum(times for times, _ in alike.values())
    for times, (off, orders, positions, deals) in alike.values():
        of_position = runs(dim, k, size or dim, slots, off, orders, deals)
        where: list[Where] = [tuple(of_position[positions[slot]]) for slot in came]
        if size is None:
            where = [forced(words_for(dim)[orders[0]], off, k, positions[slot], slots) for slot in came]
            assert [tuple(drawn(sample).tolist()) for sample in where] == [
                tuple(of_position[positions[s]]) for s in came
            ]
        found[tuple(where)] = Fraction(times, total)
    return found


def forced(sample: Sample, off: int, k: int, run: int, slots: int) -> Sample:
    """The sample that takes the run of this number, in a vector that is one hand."""
    sample = sample._replace(off=off, k=k).balanced(bytes(32), sample.size, 0, slots)._replace(hand_o=0)
    hands = hands_of(sample, np.zeros(1, np.int64), sample.dim)
    (position,) = (s for s in range(slots) if runs_of(hands, s, slots)[1] == k * run)
    return sample._replace(slot=position)


def alone(dim: int, k: int) -> Chances:
    """All that a node without a slot can send."""
    return outcomes(dim, k, 1, (0,))


def jointly(*draws: Chances) -> Chances:
    """Draws that are independent of each other, one behind the other."""
    both = lambda a, b: {x + y: p * q for x, p in a.items() for y, q in b.items()}  # noqa: E731
    return reduce(both, draws)


@dataclass
class Play:
    """Two rounds of the past, then one in which the draw is forced; nodes keep their slots, weights and vectors.

    Parameters
    ----------
    run : Run
    slotted, others : list of str
        Who is asked in time, and so has a slot; who asks later, and so has none.
    missing : {"drop", "carry"}
    """

    run: sm.Run
    slotted: list[str]
    others: list[str] = field(default_factory=list)
    missing: Missing = "drop"

    def __post_init__(self) -> None:
        rng = np.random.default_rng(7)
        self.nodes = [*self.slotted, *self.others]
        n, shape = len(self.nodes), (len(self.nodes), len(self.run.blocks))
        *self.past, self.vectors = rng.normal(size=self.run.dim) + 0.5 * rng.normal(size=(PAST + 1, n, self.run.dim))
        self.weights: Doubles = rng.uniform(0.5, 2.0, size=shape)
        if shape[1] > 1:
            self.weights[0, 0] = 0.0  # in the first block this node counts as absent
        self.choices = [i % len(self.run.encoders) for i in range(n)]

    def server(self) -> tuple[sm.Server, dict[str, sm.Client]]:
        """Before the round."""
        server = sm.Server(self.run, missing=self.missing)
        clients = {
            node: sm.Client(self.run, node, self.run.encoders[choice])
            for node, choice in zip(self.nodes, self.choices, strict=True)
        }
        for vectors in self.past:
            self.send(server, clients, vectors, self.nodes)
            server.close_round()
        return server, clients

    def send(self, server: sm.Server, clients: dict[str, sm.Client], vectors: Doubles, came: Sequence[str]) -> None:
        plans = {**server.plans(self.slotted), **server.plans(self.others)}
        for node, vector, weight in zip(self.nodes, vectors, self.weights, strict=True):
            if node in came:
                blob = clients[node].encode(vector, server.round, plans[node])
                clients[node].delivered(server.accept(node, blob, weight))

    def round(self, monkeypatch: pytest.MonkeyPatch, came: Sequence[str], sent: Sequence[Where]) -> sm.Estimate:
        """The estimate where these nodes came, and sent this."""
        server, clients = self.server()
        where = dict(zip(came, sent, strict=True))
        gathered = sampling.draws.gathered  # type: ignore[attr-defined]

        def at(node: str | None) -> Where:
            found = where[node or ""]
            return found if isinstance(found, Sample) else np.array(found)

        def slotted(key: sampling.Key, dim: int, k: int, slot: int, slots: int) -> Where:
            assert (slot, slots) == (self.slotted.index(key.node or ""), len(self.slotted))
            return at(key.node)

        def other(key: sampling.Key, dim: int, k: int) -> Where:
            assert key.node in self.others
            return at(key.node)

        with monkeypatch.context() as forced:
            forced.setattr("sparsemean.sampling.draws.balanced_sample_of", slotted)
            forced.setattr("sparsemean.sampling.draws.sample_of", other)
            forced.setattr(
                "sparsemean.sampling.draws.gathered",
                lambda at, vector: gathered(at, vector) if isinstance(at, Sample) else vector[at],
            )
            self.send(server, clients, self.vectors, came)
            return server.close_round()


@dataclass
class Judge:
    """What the mean and all that is said of it should be, in a round to which these nodes came."""

    play: Play
    came: Sequence[str]

    def __post_init__(self) -> None:
        play, here = self.play, [self.play.nodes.index(node) for node in self.came]
        server, _ = play.server()
        expected = np.array([server.expected(node) for node in play.nodes])
        self.slots = [len(play.slotted)] * len(play.run.shares) + [None] * len(play.run.shares)
        self.classes = np.array([play.choices[i] + (i >= len(play.slotted)) * len(play.run.shares) for i in here])
        self.weights = play.weights[here]
        self.innovations = play.vectors[here] - expected[here]
        weight, known = self.weights.sum(axis=0), self.weights.sum(axis=0)
        mean_of = play.vectors[here], self.weights
        if play.missing == "carry":
            stands_in = np.array(
                [x if node in self.came else b for node, x, b in zip(play.nodes, play.vectors, expected, strict=True)]
            )
            mean_of, known = (stands_in, play.weights), play.weights.sum(axis=0)
        self.mean = truth(*mean_of, play.run.ranges).mean
        self.innovation = truth(self.innovations, self.weights, play.run.ranges)
        self.part = np.divide(weight, known, out=np.zeros_like(weight), where=known > 0)
        self.T = [
            play.run.scheme.decoder.T(belief, n)
            for belief, n in zip(server.beliefs(), self.innovation.nodes.tolist(), strict=True)
        ]
        self.server = server

    def blocks(self) -> Iterator[tuple[float, list[int], Doubles, Any]]:
        """Of each block that somebody has a weight in: (part of all weight)², nodes per class, y, T."""
        start = 0
        for block, size in enumerate(self.play.run.blocks):
            w, here = self.weights[:, block], self.innovations[:, start : start + size]
            start += size
            if np.any(w > 0):
                counts = np.bincount(self.classes[w > 0], minlength=len(self.slots)).tolist()
                yield (
                    float(self.part[block]) ** 2,
                    counts,
                    np.count_nonzero(w) * w[:, None] * here / w.sum(),
                    self.T[block],
                )

    def error(self) -> float:
        """E‖estimate − mean‖²."""
        return sum(part * self._of_block(counts, y, T) for part, counts, y, T in self.blocks())

    def _of_block(self, counts: list[int], y: Doubles, T: Any) -> float:
        shares = self.play.run.class_shares
        present = [s for s, count in enumerate(counts) if count]
        if len(present) == 1:
            r1, r2 = theory.correlation(y)
            return theory.spatial_mse(r1, r2, sum(counts), shares[present[0]], T, slots=self.slots[present[0]])
        rows = self.classes
        by_class = theory.mixed_correlation(y, rows, len(counts))
        return theory.mixed_mse(*by_class, counts, shares, T, slots=self.slots)

    def bound(self) -> float:
        """What the server says in place of the error where a class of nodes never meets: R2 within it is −R1."""
        found = 0.0
        for part, counts, y, T in self.blocks():
            shares, n = self.play.run.class_shares, sum(counts)
            r1, r2 = theory.mixed_correlation(y, self.classes, len(counts))
            never = [
                theory.CountLaw(c, p, N).pair_factor == 0 if c else False
                for c, p, N in zip(counts, shares, self.slots, strict=True)
            ]
            r2[np.diag_indices(len(counts))] = np.where(never, -r1, np.diag(r2))
            own, cross = theory.mixed_coefficients(T, counts, shares, slots=self.slots)
            found += part * float(own @ r1 + np.sum(cross * r2)) / n**2
        return found
