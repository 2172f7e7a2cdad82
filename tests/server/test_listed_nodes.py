"""``Run(…, nodes=[…])``: clients need no plan, and the list may change where payloads may not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean._types import Doubles
from sparsemean.sampling import Plan

DIM, K = 24, 6
SCHEME = sm.named("rand-k-balanced", k=K)
RUN = sm.Run(SCHEME, DIM, seed=3, nodes=["c", "a", "b", "d"])
VECTORS: dict[str, Doubles] = {node: np.cos(np.arange(DIM) * (1 + i)) for i, node in enumerate("abcdx")}


def encoded(run: sm.Run, node: str, round: int = 0, plan: bytes | None = None) -> bytes:
    return sm.Client(run, node).encode(VECTORS[node], round, plan)


def test_each_node_has_the_slot_of_its_place_and_needs_no_plan() -> None:
    server = sm.Server(RUN)
    for node in "abcd":
        server.accept(node, encoded(RUN, node))
    assert set(server.close_round().counts.tolist()) == {1}  # np = 1
    assert [RUN.listed_plan(node, 0) for node in "cabd"] == [Plan(slot, 4) for slot in range(4)]
    for node in "abcd":
        at, first = RUN.coordinates(node, 0)
        told, _ = RUN.coordinates(node, 0, plan=RUN.listed_plan(node, 0))
        assert (at.tolist(), first) == (told.tolist(), 0)


def test_who_asks_is_told_the_same_and_sends_the_same() -> None:
    server = sm.Server(RUN)
    plans = {node: server.plan(node) for node in "abcdx"}
    for node in "abcd":
        assert codec.unpack_plan(RUN, node, 0, plans[node]) == RUN.listed_plan(node, 0)
        assert encoded(RUN, node) == encoded(RUN, node, 0, plans[node])
    assert codec.unpack_plan(RUN, "x", 0, plans["x"]) == Plan()


def test_who_is_not_in_the_list_draws_independently() -> None:
    server, alone = sm.Server(RUN), sm.Run(SCHEME, DIM, seed=3)
    blob = encoded(RUN, "x")
    assert blob == encoded(alone, "x", 0, sm.Server(alone).plan("x"))
    server.accept("x", blob)
    server.accept("a", encoded(RUN, "a"))
    estimate = server.close_round()
    at = np.concatenate([RUN.coordinates(node, 0)[0] for node in "xa"])
    assert estimate.counts.tolist() == np.bincount(at, minlength=DIM).tolist()


def test_the_digest_does_not_change_with_the_list_and_the_json_does() -> None:
    runs = [sm.Run(SCHEME, DIM, seed=3, nodes=nodes) for nodes in (None, ["a"], ["a", "b"], ["b", "a"])]
    assert len({run.digest for run in runs}) == 1
    assert len({run.to_json() for run in runs}) == 4
    assert len(set(runs)) == 4
    for run in runs:
        assert sm.Run.from_json(run.to_json()) == run
        assert json.loads(run.to_json()).get("nodes", []) == list(run.nodes)
    assert runs[0].agreed() == runs[3].agreed() == json.loads(runs[0].to_json())


@pytest.mark.parametrize("scheme", [SCHEME, sm.named("rand-k", k=K)], ids=["balanced", "independent"])
def test_an_empty_list_is_none(scheme: sm.Scheme) -> None:
    """Where nobody is listed everybody asks; and only draws with slots take a list."""
    plain = sm.Run(scheme, DIM)
    if plain.planned:
        assert sm.Run(scheme, DIM, nodes=[]) == plain
    else:
        with pytest.raises(sm.InvalidInput, match="no slots to give"):
            sm.Run(scheme, DIM, nodes=[])


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (["a", "b", "a"], "different names"),
        ("abc", "list of names"),
        (7, "list of names"),
        (["a", ""], "non-empty"),
        (["a", 7], "non-empty"),
        (["a", "x" * 300], "256 bytes"),
        (["a", "\ud800"], "UTF-8"),
    ],
)
def test_lists_that_cannot_be_are_refused(nodes: Any, words: str) -> None:
    with pytest.raises(sm.InvalidInput, match=words):
        sm.Run(SCHEME, DIM, nodes=nodes)
    if not isinstance(nodes, list) or "\ud800" not in nodes:
        text = json.dumps({**RUN.agreed(), "nodes": nodes})
        with pytest.raises(sm.InvalidInput, match=words):
            sm.Run.from_json(text)


def test_a_cohort_goes_before_the_list_and_who_goes_by_the_list_then_is_told_to_ask() -> None:
    server = sm.Server(RUN)
    plans = server.plans(["b", "x"])
    assert codec.unpack_plan(RUN, "b", 0, plans["b"]) == Plan(0, 2)
    digest = server.digest()
    for node in "bc":
        with pytest.raises(sm.WrongPlan, match=f"plan=server.plan\\('{node}'\\)"):
            server.accept(node, encoded(RUN, node))
    assert server.digest() == digest
    for node in "bxc":
        server.accept(node, encoded(RUN, node, 0, server.plan(node)))
    server.close_round()
    server.accept("b", encoded(RUN, "b", 1))  # in the next round the list holds again
    assert codec.unpack_plan(RUN, "x", 1, server.plans(["x"])["x"]) == Plan()  # as it does once somebody came by it


def test_two_sides_with_different_lists_find_out_at_once() -> None:
    server = sm.Server(RUN)
    longer = sm.Run(SCHEME, DIM, seed=3, nodes=[*RUN.nodes, "x"])
    digest = server.digest()
    for node in "ax":
        with pytest.raises(sm.WrongPlan):
            server.accept(node, encoded(longer, node))
    assert server.digest() == digest
    assert server.accept("a", encoded(longer, "a", 0, server.plan("a"))).node == "a"


def test_encoders_of_one_size_in_this_dimension_would_share_a_draw_and_are_refused() -> None:
    """Nodes of equal k are in one draw: two classes of them would not be independent, as decoders take them to be."""
    scheme = sm.named("rand-k-balanced", k=(2, 0.5))
    with pytest.raises(sm.InvalidInput, match="another k"):
        sm.Run(scheme, 4)
    assert sm.Run(scheme, 6).shares == (2 / 6, 3 / 6)
    assert sm.Run(sm.named("rand-k", k=(2, 0.5)), 4).shares == (0.5, 0.5)
