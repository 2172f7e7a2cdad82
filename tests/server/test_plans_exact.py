"""Balanced rounds through the bytes: every outcome of the draw with its probability; all that is said is unbiased."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.evaluation import exact_error
from sparsemean.kernels.sample import Sample, drawn

from .forced_rounds import Chances, Judge, Play, alone, jointly, outcomes

BALANCED = sm.Balanced()


@pytest.mark.parametrize(("dim", "k", "slots"), [(3, 1, 2), (3, 2, 3), (4, 2, 3), (4, 3, 2)])
@pytest.mark.parametrize("size", [None, 2])
def test_outcomes_are_those_of_a_balanced_draw(dim: int, k: int, slots: int, size: int | None) -> None:
    """Else all that follows would hold for another draw."""
    chances = outcomes(dim, k, slots, tuple(range(slots)), size)
    assert sum(chances.values()) == 1
    included = np.zeros((slots, dim), object)
    for sent, chance in chances.items():
        at = [drawn(where).tolist() if isinstance(where, Sample) else where for where in sent]
        counts = np.bincount([*itertools.chain(*at)], minlength=dim)
        assert set(counts.tolist()) <= {math.floor(slots * k / dim), math.ceil(slots * k / dim)}
        for slot, mine in enumerate(at):
            included[slot, list(mine)] += chance
    assert set(included.ravel().tolist()) == {Fraction(k, dim)}


def check(monkeypatch: pytest.MonkeyPatch, play: Play, came: Sequence[str], chances: Chances) -> bool:
    """All that must hold when these nodes come; returns whether the error was stated as a bound."""
    judge, probability = Judge(play, came), np.array([float(chance) for chance in chances.values()])
    found = [play.round(monkeypatch, came, sent) for sent in chances]
    means, errors = np.array([each.mean for each in found]), [each.error for each in found]
    np.testing.assert_allclose(probability @ means, judge.mean, rtol=0, atol=1e-12)
    exact, squares = judge.error(), np.sum((means - judge.mean) ** 2, axis=1)
    assert probability @ squares == pytest.approx(exact, rel=1e-10, abs=1e-13)
    (is_bound,) = {each.error_is_bound for each in found}
    said = float(probability @ np.array(errors, np.float64))
    assert said == pytest.approx(judge.bound() if is_bound else exact, rel=1e-10, abs=1e-13)
    assert said >= exact - 1e-12
    assert {each.correlation is None for each in found} == {is_bound}
    kinds = {(node in play.slotted, play.choices[play.nodes.index(node)]) for node in came}
    mixed = len(kinds) > 1 and any(slotted for slotted, _ in kinds)
    values = [int(each.counts.sum()) for each in found]  # that count; one does not show how much values vary
    unsure = [is_bound or mixed or (number < 2 and len(kinds) == 1) for number in values]
    assert [each.error_se is None for each in found] == unsure
    if not is_bound:
        r1, r2 = (
            float(probability @ np.array([getattr(each.correlation, name) for each in found])) for name in ("r1", "r2")
        )
        assert (r1, r2) == pytest.approx((judge.innovation.r1.sum(), judge.innovation.r2.sum()), rel=1e-10, abs=1e-12)
    return is_bound


def scheme(k: int | tuple[int, ...], decoder: sm.Decoder, memory: sm.Memory | None) -> sm.Scheme:
    sizes = (k,) if isinstance(k, int) else k
    encoders: list[sm.Encoder] = [sm.RandK(each, draw=BALANCED) for each in sizes]
    if isinstance(memory, sm.Offset):
        encoders = [sm.Difference(encoder) for encoder in encoders]
    return sm.Scheme(encoders[0] if len(encoders) == 1 else sm.OneOf(tuple(encoders)), decoder, memory, "float64")


def subsets(nodes: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for n in range(1, len(nodes) + 1):
        yield from itertools.combinations(nodes, n)


MEMBERS: list[tuple[sm.Decoder, sm.Memory | None, tuple[int, ...]]] = [
    (sm.Mean(), None, (1,)),
    (sm.Mean(), sm.PerNode(), (1, 2)),
    (sm.Mean(), sm.Offset(), (1,)),
    (sm.Spatial("one"), sm.Hybrid(), (1,)),
    (sm.Spatial("max"), None, (1, 2)),
    (sm.Spatial("max"), sm.Hybrid(), (1, 2)),
    (sm.Spatial("avg"), sm.PerNode(), (1,)),
    (sm.Spatial(-0.5), None, (1,)),
    (sm.Spatial(1.3), sm.Hybrid(), (1, 2)),
    (sm.Spatial("learned"), None, (1,)),
    (sm.Spatial("learned"), sm.PerNode(), (1, 2)),
    (sm.Spatial("learned"), sm.Hybrid(), (1,)),
]
"""Decoder, memory, and the sizes of the blocks, of which the last takes the rest."""

BELOW, AT, ABOVE = [(3, 1, 2), (4, 1, 3)], [(4, 2, 2), (3, 1, 3), (3, 2, 3)], [(3, 2, 2), (4, 3, 2), (4, 2, 3)]
"""d, k and slots with np below 1, a whole number, and between two."""

# Each member with one of the three kinds in turn, and these with all: blocks, and a learned one.
SETTINGS = [
    (*draws[number % len(draws)], *members)
    for number, members in enumerate(MEMBERS)
    for kind, draws in enumerate((BELOW, AT, ABOVE))
    if number in (4, 10) or number % 3 == kind
]


def run_of(dim: int, k: int | tuple[int, ...], *members: Any) -> sm.Run:
    decoder, memory, blocks = members
    return sm.Run(scheme(k, decoder, memory), dim, 5, (*blocks[:-1], dim - sum(blocks[:-1])))


@pytest.mark.parametrize(("dim", "k", "slots", "decoder", "memory", "blocks"), SETTINGS, ids=repr)
def test_whoever_comes_all_that_is_said_is_exactly_unbiased(
    monkeypatch: pytest.MonkeyPatch, dim: int, k: int, slots: int, decoder: Any, memory: Any, blocks: Any
) -> None:
    play = Play(run_of(dim, k, decoder, memory, blocks), [f"node-{i}" for i in range(slots)])
    for came in subsets(play.nodes):
        numbers = tuple(map(play.nodes.index, came))
        bound = check(monkeypatch, play, came, outcomes(dim, k, slots, numbers))
        weighed = max(np.count_nonzero(play.weights[list(numbers)], axis=0))
        assert bound == (slots * k <= dim and weighed > 1)
    server, _ = play.server()
    assert exact_error(server, play.nodes, play.vectors, play.weights) == pytest.approx(Judge(play, play.nodes).error())


@pytest.mark.parametrize(
    ("dim", "k", "slots", "members"),
    [
        (*draw, MEMBERS[4 if number % 2 else 10])
        for number, draw in enumerate([(3, 1, 2), (4, 2, 2), (4, 3, 2), (4, 2, 3), (5, 2, 2)])
    ],
    ids=repr,
)
def test_nor_does_it_matter_how_a_vector_is_cut_into_tiles(
    monkeypatch: pytest.MonkeyPatch, dim: int, k: int, slots: int, members: Any
) -> None:
    """Tiles of two coordinates, where the offset decides how many a position takes of each."""
    play = Play(run_of(dim, k, *members), [f"node-{i}" for i in range(slots)])
    for came in (play.nodes, play.nodes[1:]):
        numbers = tuple(map(play.nodes.index, came))
        check(monkeypatch, play, came, outcomes(dim, k, slots, numbers, size=2))


@pytest.mark.parametrize(
    ("dim", "k", "members"),
    [
        (*draw, members)
        for number, members in enumerate(MEMBERS[4:])
        for kind, draw in enumerate(((4, 1), (4, 2), (3, 2)))
        if members in (MEMBERS[4], MEMBERS[10]) or number % 3 == kind
    ],
    ids=repr,
)
def test_with_nodes_that_have_no_slot_it_is_as_exact(
    monkeypatch: pytest.MonkeyPatch, dim: int, k: int, members: Any
) -> None:
    """Two with a slot and one that asked too late, so that there are two classes of nodes of one share."""
    play = Play(run_of(dim, k, *members), ["node-0", "node-1"], ["late"])
    for came in (("node-0", "node-1", "late"), ("node-1", "late"), ("late",)):
        slotted = outcomes(dim, k, 2, tuple(play.nodes.index(node) for node in came[:-1]))
        bound = check(monkeypatch, play, came, jointly(slotted, alone(dim, k)))
        weighed = max(np.count_nonzero(play.weights[: len(came) - 1], axis=0)) if len(came) == 3 else 0
        assert bound == (2 * k <= dim and weighed > 1)


@pytest.mark.parametrize("members", [MEMBERS[0], MEMBERS[4], MEMBERS[8], MEMBERS[10]], ids=repr)
def test_with_nodes_of_several_sizes_it_is_as_exact(monkeypatch: pytest.MonkeyPatch, members: Any) -> None:
    """Two that send 2 of 3 coordinates, one that sends 1, and one of each kind without a slot."""
    play = Play(run_of(3, (2, 1), *members), ["node-0", "node-1", "node-2"], ["late-3", "late-4"])
    assert play.choices == [0, 1, 0, 1, 0]
    two, one = outcomes(3, 2, 3, (0, 2)), outcomes(3, 1, 3, (1,))
    bound = check(monkeypatch, play, ("node-0", "node-2", "node-1"), jointly(two, one))
    assert not bound  # those that send 2 of 3 meet
    check(monkeypatch, play, ("node-0", "node-2"), two)
    lone = outcomes(3, 2, 3, (2,))
    check(monkeypatch, play, ("node-2", "node-1", "late-3"), jointly(lone, one, alone(3, 1)))
    check(monkeypatch, play, ("node-2", "late-4"), jointly(lone, alone(3, 2)))


def test_several_sizes_of_which_one_never_meets_give_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three slots that draw 1 of 3 no two send the same; the node that sends 2 meets them, which says nothing."""
    play = Play(run_of(3, (1, 2), *MEMBERS[6]), ["node-0", "node-1", "node-2"])
    chances = jointly(outcomes(3, 1, 3, (0, 2)), outcomes(3, 2, 3, (1,)))
    assert check(monkeypatch, play, ("node-0", "node-2", "node-1"), chances)


@pytest.mark.parametrize("memory", [sm.PerNode(), sm.Hybrid()], ids=repr)
@pytest.mark.parametrize(("dim", "k", "slots"), [(4, 1, 3), (3, 2, 3)])
def test_where_memories_stand_in_for_absent_nodes_it_is_as_exact(
    monkeypatch: pytest.MonkeyPatch, dim: int, k: int, slots: int, memory: sm.Memory
) -> None:
    """``missing="carry"``: the mean is of those who came and of what is remembered of the others."""
    play = Play(run_of(dim, k, sm.Spatial("avg"), memory, (1, 2)), [f"node-{i}" for i in range(slots)], missing="carry")
    for came in subsets(play.nodes):
        check(monkeypatch, play, came, outcomes(dim, k, slots, tuple(map(play.nodes.index, came))))
