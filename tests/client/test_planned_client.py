"""Clients by plans: state that is saved and restored, and payloads that are sent again after they were delivered."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean.sampling import Plan

DIM = 12
ENCODERS: dict[str, sm.Scheme] = {
    "difference": sm.Scheme(sm.Difference(sm.RandK(4, draw=sm.Balanced())), memory=sm.Offset()),
    "error feedback": sm.Scheme(sm.ErrorFeedback(sm.RandK(4, draw=sm.Balanced()))),
    "lazy": sm.Scheme(sm.Lazy(sm.RandK(4, draw=sm.Balanced()), 0.1), memory=sm.PerNode()),
}
VECTOR = np.arange(DIM) / 4.0


@pytest.fixture(params=ENCODERS)
def run(request: pytest.FixtureRequest) -> sm.Run:
    return sm.Run(ENCODERS[request.param], DIM, seed=3)


def after(run: sm.Run, rounds: int) -> tuple[sm.Server, sm.Client, bytes]:
    """A server in its next round, a client whose payloads were all delivered, and the last plan it had."""
    server, client, plan = sm.Server(run), sm.Client(run, "a"), b""
    for round in range(rounds):
        plan = server.plans(["b", "a"])["a"]
        client.delivered(server.accept("a", client.encode(VECTOR * (1 + round), round, plan)))
        server.close_round()
    return server, client, plan


def fields_of(saved: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(saved)) as found:
        return dict(found)


def archive(fields: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **fields)
    return buffer.getvalue()


def test_a_restored_client_goes_on_as_the_one_that_was_saved(run: sm.Run) -> None:
    for rounds in range(3):
        server, client, plan = after(run, rounds)
        restored = sm.Client.restore(run, "a", client.save())
        assert restored.save() == client.save()
        if rounds:  # the last payload may still be asked for
            assert restored.encode(VECTOR * rounds, rounds - 1, plan) == client.encode(
                VECTOR * rounds, rounds - 1, plan
            )
        told = server.plans(["a"])["a"]
        blob = client.encode(-VECTOR - rounds, rounds, told)
        assert restored.encode(-VECTOR - rounds, rounds, told) == blob
        receipt = server.accept("a", blob)
        for each in (client, restored):
            each.delivered(receipt)
        assert restored.save() == client.save()


def test_an_earlier_payload_is_sent_again_only_with_its_own_vector_and_plan(run: sm.Run) -> None:
    server, client, plan = after(run, 2)
    blob = client.encode(VECTOR * 2, 1, plan)
    assert server.accept("a", blob).round == 1
    with pytest.raises(sm.InvalidInput, match="was delivered"):
        client.encode(VECTOR * 3, 1, plan)
    with pytest.raises(sm.InvalidInput, match="another run, node or round"):
        client.encode(VECTOR * 2, 1, server.plan("a"))
    with pytest.raises(sm.InvalidInput, match="needs a plan"):
        client.encode(VECTOR * 2, 1)


def test_a_plan_that_is_refused_leaves_the_client_as_it_was(run: sm.Run) -> None:
    server, client, _ = after(run, 2)
    told, saved = server.plans(["b", "a"]), client.save()
    with pytest.raises(sm.InvalidInput):
        client.encode(VECTOR, 2, told["b"])
    assert client.save() == saved
    blob = client.encode(VECTOR, 2, told["a"])
    with pytest.raises(sm.InvalidInput):
        client.encode(VECTOR * 5, 2, told["b"])
    client.delivered(server.accept("a", blob))  # what waits for its receipt is still the good one


@pytest.mark.parametrize(
    "plan",
    [
        b"",
        b"\1",
        bytes(13),
        codec.pack_plan(sm.Run(ENCODERS["difference"], DIM, seed=3), "a", 0, Plan(1, 2)),
        codec.pack_plan(sm.Run(ENCODERS["difference"], DIM, seed=3), "a", 1, Plan(0, 2)),
        codec.pack_plan(sm.Run(ENCODERS["difference"], DIM, seed=3), "a", 1, Plan()),
        codec.pack_plan(sm.Run(ENCODERS["difference"], DIM, seed=3), "b", 1, Plan(1, 2)),
        bytes(14),
        bytes(10_000),
    ],
    ids=["none", "short", "zeros", "round", "slot", "no slot", "node", "long", "huge"],
)
def test_a_saved_state_whose_plan_is_not_that_of_its_payload_is_refused(plan: bytes) -> None:
    run = sm.Run(ENCODERS["difference"], DIM, seed=3)
    _, client, good = after(run, 2)
    fields = fields_of(client.save())
    assert fields["plan"].tobytes() == good == codec.pack_plan(run, "a", 1, Plan(1, 2))
    assert sm.Client.restore(run, "a", archive(fields)).save() == client.save()
    with pytest.raises(sm.InvalidInput, match=r"not a state written by Client\.save"):
        sm.Client.restore(run, "a", archive({**fields, "plan": np.frombuffer(plan, np.uint8)}))


def test_states_of_schemes_without_plans_have_no_place_for_one() -> None:
    run = sm.Run(sm.named("diana", k=4), DIM)
    client = sm.Client(run, "a")
    fields = fields_of(client.save())
    assert "plan" not in fields
    with pytest.raises(sm.InvalidInput):
        sm.Client.restore(run, "a", archive({**fields, "plan": np.zeros(13, np.uint8)}))
    without = fields_of(sm.Client(sm.Run(ENCODERS["difference"], DIM), "a").save())
    del without["plan"]
    with pytest.raises(sm.InvalidInput):
        sm.Client.restore(sm.Run(ENCODERS["difference"], DIM), "a", archive(without))


def test_where_nodes_are_listed_state_moves_on_without_plans() -> None:
    run = sm.Run(ENCODERS["difference"], DIM, seed=3, nodes=["b", "a"])
    server, client = sm.Server(run), sm.Client(run, "a")
    for round in range(3):
        client.delivered(server.accept("a", client.encode(VECTOR * (1 + round), round)))
        server.close_round()
        client = sm.Client.restore(run, "a", client.save())
    _, asked, _ = after(sm.Run(ENCODERS["difference"], DIM, seed=3), 3)
    assert fields_of(client.save())["state_h"].tolist() == fields_of(asked.save())["state_h"].tolist()


def test_an_encoder_of_several_may_be_named_without_its_draw() -> None:
    run = sm.Run(sm.named("rand-k-balanced", k=(6, 3)), 24)
    for number, k in enumerate((6, 3)):
        for encoder in (sm.RandK(k), sm.RandK(k, draw=sm.Balanced())):
            assert sm.Client(run, "a", encoder).choice == number
    for other in (sm.RandK(5), sm.RandK(6, shared=True), sm.TopK(6)):
        with pytest.raises(sm.InvalidInput, match="none of the run's encoders"):
            sm.Client(run, "a", other)


def test_coordinates_of_a_planned_run_need_a_plan() -> None:
    run = sm.Run(sm.named("rand-k-balanced", k=6), 24)
    with pytest.raises(sm.InvalidInput, match="needs the node's slot"):
        run.coordinates("a", 0)
    with pytest.raises(sm.InvalidInput, match="plan is a"):
        run.coordinates("a", 0, plan=sm.Server(run).plan("a"))  # type: ignore[arg-type]
    found = [run.coordinates("a", 0, plan=Plan(slot, 4))[0] for slot in range(4)]
    assert sorted(np.concatenate(found)) == list(range(24))
