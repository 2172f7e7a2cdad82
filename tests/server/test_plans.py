"""Plans: who has which slot in a round, how long that holds, and what nodes that come and go make of it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean import codec
from sparsemean._names import SchemeName
from sparsemean._types import Doubles
from sparsemean.kernels.sample import drawn
from sparsemean.sampling import MAX_SLOTS, Plan, balanced_sample_of, sample_of

DIM, K = 24, 6
RUN = sm.Run(sm.named("rand-k-balanced-hybrid", k=K), DIM, seed=3)
VECTORS = np.random.default_rng(1).normal(size=(6, DIM)) + 1.0
NODES = list("abcdef")


def terms(run: sm.Run, round: int, plans: dict[str, bytes]) -> dict[str, Plan]:
    return {node: codec.unpack_plan(run, node, round, plan) for node, plan in plans.items()}


def asked(server: sm.Server, nodes: Sequence[str]) -> dict[str, Plan]:
    """What each of these nodes is told when it asks by itself."""
    return terms(server.run, server.round, {node: server.plan(node) for node in nodes})


def vector(node: str) -> Doubles:
    found: Doubles = VECTORS[NODES.index(node)]
    return found


def send(server: sm.Server, nodes: Sequence[str], plans: dict[str, bytes] | None = None) -> None:
    for node in nodes:
        plan = server.plan(node) if plans is None else plans[node]
        server.accept(node, sm.Client(server.run, node).encode(vector(node), server.round, plan))


def play(server: sm.Server, nodes: Sequence[str]) -> sm.Estimate:
    send(server, nodes)
    return server.close_round()


def slots(found: dict[str, Plan]) -> list[int | None]:
    return [plan.slot for plan in found.values()]


# --- how long a plan holds ------------------------------------------------------------------------


def test_a_plan_is_the_same_while_the_round_is_open_and_another_in_the_next() -> None:
    server = sm.Server(RUN)
    play(server, "abc")
    told = {node: server.plan(node) for node in "abcd"}
    digest = server.digest()
    assert {node: server.plan(node) for node in "dcba"} == told
    assert server.digest() == digest
    send(server, "ab", told)
    server.forget("c")
    assert server.plans(list("abcd")) == told
    with pytest.raises(sm.TooFewNodes):
        server.close_round(minimum=5)
    assert {node: server.plan(node) for node in "abcd"} == told
    server.close_round()
    later = {node: server.plan(node) for node in "abcd"}
    assert not set(later.values()) & set(told.values())


def test_a_skipped_round_ends_its_plans_too() -> None:
    server = sm.Server(RUN)
    told = server.plans(list("ab"))
    server.skip_round()
    assert asked(server, "ab") == {"a": Plan(), "b": Plan()}  # nobody was heard
    assert server.plan("a") != told["a"]


def test_to_ask_is_a_change_that_the_digest_shows_and_to_ask_again_is_none() -> None:
    server, other = sm.Server(RUN), sm.Server(RUN)
    fresh = server.digest()
    server.plans(list("ab"))
    assert len({fresh, server.digest()}) == 2
    other.plans(list("ba"))
    assert server.digest() != other.digest()


# --- one call for the cohort ----------------------------------------------------------------------


def test_slots_are_dealt_among_exactly_those_who_are_asked() -> None:
    server = sm.Server(RUN)
    play(server, "abcdef")
    for cohort in ("fa", "bcd", "e", "abcdef"):
        found = terms(RUN, server.round, server.plans(iter(cohort)))
        assert list(found) == list(cohort)
        assert slots(found) == list(range(len(cohort)))
        assert {plan.slots for plan in found.values()} == {len(cohort)}
        send(server, cohort, server.plans(list(cohort)))
        server.close_round()


def test_a_node_that_is_named_twice_has_one_slot() -> None:
    found = terms(RUN, 0, sm.Server(RUN).plans(list("abacab")))
    assert found == {"a": Plan(0, 3), "b": Plan(1, 3), "c": Plan(2, 3)}


def test_later_calls_keep_the_slots_and_others_draw_independently() -> None:
    server = sm.Server(RUN)
    told = server.plans(list("ab"))
    assert server.plans(list("ca")) == {"c": server.plan("c"), "a": told["a"]}
    assert asked(server, "abcd") == {"a": Plan(0, 2), "b": Plan(1, 2), "c": Plan(), "d": Plan()}
    send(server, "abc")
    estimate = server.close_round()
    assert estimate.nodes == ("a", "b", "c")
    at = [drawn(balanced_sample_of(RUN.key(node, 0), DIM, K, slot, 2)) for slot, node in enumerate("ab")]
    at.append(drawn(sample_of(RUN.key("c", 0), DIM, K)))
    assert estimate.counts.tolist() == np.bincount(np.concatenate(at), minlength=DIM).tolist()


def test_who_was_not_asked_may_come_and_counts_as_one_that_draws_by_itself() -> None:
    server = sm.Server(RUN)
    play(server, "abcdef")
    server.plans(list("abc"))
    assert asked(server, "f") == {"f": Plan()}
    send(server, "abcf")
    assert server.close_round().nodes == ("a", "b", "c", "f")


def test_an_empty_cohort_settles_nothing() -> None:
    server = sm.Server(RUN)
    play(server, "abc")
    before = server.digest()
    assert server.plans([]) == {}
    assert server.digest() == before
    assert {plan.slot for plan in asked(server, "abc").values()} == {0, 1, 2}


def test_who_sends_before_any_plan_was_given_is_refused_and_settles_nothing() -> None:
    """Its tag holds no secret: anybody can make the plan of a node without a slot."""
    server, elsewhere = sm.Server(RUN), sm.Server(RUN)
    early = sm.Client(RUN, "early").encode(np.ones(RUN.dim), 0, elsewhere.plan("early"))
    before = server.digest()
    with pytest.raises(sm.WrongPlan, match=r"no plan yet; encode with plan=server\.plan\('early'\)"):
        server.accept("early", early)
    assert server.digest() == before
    plans = server.plans(["a", "b", "c"])
    assert {codec.unpack_plan(RUN, node, 0, plan).slot for node, plan in plans.items()} == {0, 1, 2}
    server.accept("early", early)


# --- each asks by itself --------------------------------------------------------------------------


def test_a_new_node_draws_independently_in_its_first_round_and_has_a_slot_in_the_next() -> None:
    server = sm.Server(RUN)
    assert set(asked(server, "abc").values()) == {Plan()}  # nobody is known yet
    play(server, "abc")
    assert asked(server, "abcd") == {"a": Plan(0, 3), "b": Plan(1, 3), "c": Plan(2, 3), "d": Plan()}
    play(server, "abd")
    found = asked(server, "abcd")
    assert sorted(plan.slot for plan in found.values() if plan.slot is not None) == [0, 1, 2, 3]
    assert {plan.slots for plan in found.values()} == {4}


def test_who_asked_and_was_never_heard_gets_no_slot() -> None:
    server = sm.Server(RUN)
    play(server, "ab")
    server.plan("c")
    play(server, "ab")
    assert asked(server, "abc") == {"a": Plan(0, 2), "b": Plan(1, 2), "c": Plan()}


def test_who_leaves_frees_a_slot_and_who_is_absent_keeps_one() -> None:
    server = sm.Server(RUN)
    play(server, "abcd")
    play(server, "cd")
    assert sorted(slots(asked(server, "abcd"))) == [0, 1, 2, 3]  # type: ignore[type-var]
    server.skip_round()
    server.forget("a")
    found = asked(server, "abcd")
    assert found["a"] == Plan()
    assert sorted(slots({node: found[node] for node in "bcd"})) == [0, 1, 2]  # type: ignore[type-var]
    play(server, "a")  # back again, as a new node
    assert sorted(slots(asked(server, "abcd"))) == [0, 1, 2, 3]  # type: ignore[type-var]


def test_to_forget_a_node_in_a_round_leaves_the_slots_of_that_round() -> None:
    server = sm.Server(RUN)
    play(server, "abc")
    told = {node: server.plan(node) for node in "abc"}
    server.forget("a")
    assert server.plan("a") == told["a"]
    send(server, "abc", told)
    assert server.close_round().nodes == ("a", "b", "c")


def test_nodes_beyond_the_most_slots_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those heard longest ago; the limit of a million is lowered here."""
    monkeypatch.setattr("sparsemean.server.roster.MAX_SLOTS", 2)
    server = sm.Server(RUN)
    play(server, "abc")
    assert asked(server, "abc") == {"a": Plan(), "b": Plan(0, 2), "c": Plan(1, 2)}


@given(st.data())
@settings(max_examples=40)
def test_whatever_is_asked_and_sent_no_two_nodes_have_one_slot(data: st.DataObject) -> None:
    """Nor does any node have two plans in a round, and the counts are those of the samples that were told."""
    listed = data.draw(st.sampled_from([None, ["a", "b", "c"]]))
    server = sm.Server(sm.Run(RUN.scheme, DIM, 3, nodes=listed))
    told: dict[str, bytes] = {}
    for _ in range(data.draw(st.integers(1, 25))):
        act = data.draw(st.sampled_from(["plan", "plans", "send", "close", "skip", "forget"]))
        node = data.draw(st.sampled_from(NODES))
        if act in ("plan", "plans"):
            some = [node] if act == "plan" else data.draw(st.lists(st.sampled_from(NODES)))
            for each, plan in ({node: server.plan(node)} if act == "plan" else server.plans(some)).items():
                assert told.setdefault(each, plan) == plan
        elif act == "send" and (listed or node in told):
            blob = sm.Client(server.run, node).encode(vector(node), server.round, told.get(node))
            if node in told:
                server.accept(node, blob)
            else:  # by the list: right unless slots were dealt otherwise, and then refused
                try:
                    server.accept(node, blob)
                except sm.WrongPlan:
                    assert told
        elif act in ("close", "skip"):
            try:
                server.close_round() if act == "close" else server.skip_round()
                told = {}
            except sm.TooFewNodes:
                pass
        elif act == "forget":
            try:
                server.forget(node)
            except sm.InvalidInput as refused:
                assert "open round" in str(refused)  # noqa: PT017
        found = terms(server.run, server.round, told)
        given_slots = [plan.slot for plan in found.values() if plan.slot is not None]
        assert len(set(given_slots)) == len(given_slots)
        assert len({plan.slots for plan in found.values() if plan.slot is not None}) <= 1


def test_slots_that_are_dealt_while_a_payload_is_read_are_not_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Payloads are read without a lock: one that went by the list may find that the slots were dealt otherwise."""
    run = sm.Run(RUN.scheme, DIM, 3, nodes=["a", "b"])
    blobs = {node: sm.Client(run, node).encode(vector(node), 0) for node in "ab"}
    for accept in (
        lambda server: server.accept("a", blobs["a"]),
        lambda server: _raised(server.accept_many({"a": blobs["a"]})[0][1]),
    ):
        server = sm.Server(run)
        read = sm.server.server.submission_of  # type: ignore[attr-defined]

        def meanwhile(*args: Any) -> Any:
            found = read(*args)  # noqa: B023
            server.plans(list("ca"))  # noqa: B023
            return found

        with monkeypatch.context() as patched:
            patched.setattr("sparsemean.server.server.submission_of", meanwhile)
            with pytest.raises(sm.WrongPlan, match="were dealt while"):
                accept(server)
        send(server, "ac")
        assert server.close_round().nodes == ("a", "c")


def _raised(answer: object) -> None:
    if isinstance(answer, Exception):
        raise answer


def test_threads_that_ask_and_send_at_once_share_the_slots_out() -> None:
    nodes = [f"node-{i}" for i in range(40)]
    server = sm.Server(sm.Run(sm.named("rand-k-balanced", k=3), 60, seed=1))
    for node in nodes:
        server.accept(node, sm.Client(server.run, node).encode(np.ones(60), 0, server.plan(node)))
    server.close_round()

    def one(node: str) -> sm.Receipt:
        return server.accept(node, sm.Client(server.run, node).encode(np.ones(60), 1, server.plan(node)))

    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(one, nodes))) == 40
    assert set(server.close_round().counts.tolist()) == {2}  # np = 2: each coordinate came from exactly two


# --- schemes without plans, and arguments that cannot be ------------------------------------------


@pytest.mark.parametrize("name", [name for name in sm.names() if not ("balanced" in name or "epochs" in name)])
def test_schemes_that_need_no_plan_give_an_empty_one_and_take_it(name: SchemeName) -> None:
    ratio: dict[str, Any] = {"ratio": 2.0} if name.endswith("-opt") else {}
    run = sm.Run(sm.named(name, k=K, **ratio), DIM)
    server = sm.Server(run)
    digest = server.digest()
    assert server.plan("a") == b""
    assert server.plans(["b", "a"]) == {"b": b"", "a": b""}
    assert server.digest() == digest
    client = sm.Client(run, "a")
    assert client.encode(VECTORS[0], 0, b"") == client.encode(VECTORS[0], 0, None) == client.encode(VECTORS[0], 0)
    with pytest.raises(sm.InvalidInput, match="follows no plan"):
        client.encode(VECTORS[0], 0, sm.Server(RUN).plan("a"))


def test_balanced_schemes_say_how_to_get_a_plan() -> None:
    client = sm.Client(RUN, "a")
    with pytest.raises(sm.InvalidInput, match=r"plan=server.plan\('a'\).*nodes="):
        client.encode(VECTORS[0], 0)
    with pytest.raises(sm.InvalidInput, match="not a plan"):
        client.encode(VECTORS[0], 0, b"")
    for wrong in ("text", 7, [1, 2]):
        with pytest.raises(sm.InvalidInput, match="a plan is the bytes"):
            client.encode(VECTORS[0], 0, wrong)  # type: ignore[arg-type]
    plan = sm.Server(RUN).plans(list("a"))["a"]
    assert client.encode(VECTORS[0], 0, bytearray(plan)) == client.encode(VECTORS[0], 0, memoryview(plan))  # type: ignore[arg-type]


def test_arguments_that_cannot_be_are_refused_and_settle_nothing() -> None:
    server = sm.Server(RUN)
    digest = server.digest()
    wrong: list[Any] = [None, 7, "", b"a", ["a"], "x" * 300]
    for node in wrong:
        with pytest.raises(sm.InvalidInput):
            server.plan(node)
    several: list[Any] = ["abc", None, 7, ["a", ""], ["a", None], b"ab", [["a"]]]
    for nodes in several[1:]:
        with pytest.raises(sm.InvalidInput):
            server.plans(nodes)
    with pytest.raises(sm.InvalidInput, match="names of the nodes"):
        server.plans("abc")
    assert server.digest() == digest


def test_more_nodes_than_there_can_be_slots_are_refused_where_slots_are_needed() -> None:
    many = [str(i) for i in range(MAX_SLOTS + 1)]
    server = sm.Server(RUN)
    digest = server.digest()
    with pytest.raises(sm.InvalidInput, match="ask fewer"):
        server.plans(many)
    assert server.digest() == digest
    with pytest.raises(sm.InvalidInput, match="different names"):
        sm.Run(RUN.scheme, DIM, nodes=many)
    assert len(sm.Server(sm.Run(sm.named("rand-k", k=K), DIM)).plans(many)) == MAX_SLOTS + 1
