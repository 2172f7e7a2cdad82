"""Payloads that follow another plan than the server gave: each is refused with a typed error, and changes nothing."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean import codec
from sparsemean._types import Doubles
from sparsemean.sampling import Plan
from sparsemean.wire import plan as wire_plan

DIM, K = 24, 6
SCHEMES = {
    "plain": sm.named("rand-k-balanced", k=K),
    "memory": sm.named("rand-k-balanced-hybrid", k=K, values="int8"),
    "several": sm.named("rand-k-balanced", k=(K, 3)),
    "in step": sm.Scheme(sm.Difference(sm.RandK(K, draw=sm.Balanced())), memory=sm.Offset()),
}
VECTOR: Doubles = np.arange(DIM) / 8.0


def resealed(blob: bytes, changes: dict[int, bytes]) -> bytes:
    """The frame with other bytes at these places, and a checksum that fits."""
    data = bytearray(blob)
    for at, new in changes.items():
        data[at : at + len(new)] = new
    data[60:64] = struct.pack("<I", zlib.crc32(data[64:], zlib.crc32(data[:60])))
    return bytes(data)


class Standing:
    """A server in its third round, with a, b and c in slots 0 to 2, where a has come and b and c have not."""

    def __init__(self, scheme: sm.Scheme, listed: bool = False) -> None:
        nodes = ["a", "b", "c"]
        self.run = sm.Run(scheme, DIM, seed=3, nodes=nodes if listed else None)
        self.server = sm.Server(self.run)
        self.clients = {node: sm.Client(self.run, node) for node in nodes}
        self.old: dict[str, bytes] = {}
        self.blobs: dict[str, bytes] = {}
        for round in range(3):
            self.before, self.old = self.old, self.server.plans(nodes)
            for node, client in self.clients.items():
                self.blobs[node] = client.encode(VECTOR + round, round, self.old[node])
                if round < 2 or node == "a":
                    client.delivered(self.server.accept(node, self.blobs[node]))
            if round < 2:
                self.server.close_round()
        self.told, self.digest = self.old, self.server.digest()

    def made(self, node: str, plan: Plan, round: int = 2) -> bytes:
        """What a client of its own would send by this plan: whole, with a tag that fits."""
        payload = codec.read_payload(
            self.run,
            "b",
            *codec.open_frame(self.run, "b", self.blobs["b"]),
            codec.unpack_plan(self.run, "b", 2, self.told["b"]),
        )
        basis = struct.unpack_from("<I", self.blobs[node], 56)[0]
        return codec.pack(self.run, node, round, payload, basis, plan)

    def plan_of_b(self, round: int = 2) -> Plan:
        """What the server asked of b in this round or the last one, scale and all."""
        return codec.unpack_plan(self.run, "b", round, (self.told if round == 2 else self.before)["b"])

    def refuse(self, node: str, blob: bytes, error: type[sm.PayloadError], words: str) -> None:
        with pytest.raises(error, match=words):
            self.server.accept(node, blob)
        ((_, answer),) = self.server.accept_many({node: blob})
        assert type(answer) is error
        assert self.server.digest() == self.digest

    def goes_on(self) -> None:
        """All is as if nothing had been tried."""
        for node in "bc":
            assert self.server.accept(node, self.blobs[node]).node == node
        calm = Standing(self.run.scheme, bool(self.run.nodes))
        for node in "bc":
            calm.server.accept(node, calm.blobs[node])
        assert self.server.digest() == calm.server.digest()
        assert np.array_equal(self.server.close_round().mean, calm.server.close_round().mean)


@pytest.fixture(params=[(name, listed) for name in SCHEMES for listed in (False, True)], ids=str)
def standing(request: pytest.FixtureRequest) -> Iterator[Standing]:
    name, listed = request.param
    found = Standing(SCHEMES[name], listed)
    yield found
    found.goes_on()


def test_a_client_refuses_the_plan_of_another_node_round_or_run(standing: Standing) -> None:
    client = sm.Client(standing.run, "b")
    elsewhere = sm.Server(sm.Run(standing.run.scheme, DIM, seed=4), round=2).plans(["a", "b", "c"])
    for plan in (standing.told["a"], standing.told["c"], standing.before["b"], elsewhere["b"]):
        with pytest.raises(sm.InvalidInput, match="another run, node or round"):
            client.encode(VECTOR, 2, plan)


def test_the_slot_of_another_node_is_refused_however_well_it_is_forged(standing: Standing) -> None:
    for plan in (Plan(0, 3), Plan(2, 3), Plan(1, 2), Plan(1, 4), Plan(0, 1), Plan()):
        standing.refuse("b", standing.made("b", plan), sm.WrongPlan, r"plan=server.plan\('b'\)")
    plan = standing.plan_of_b()
    for scale in () if plan.scale is None else (plan.scale / 2, 2.0**126, 2.0**-133):
        standing.refuse("b", standing.made("b", replace(plan, scale=scale)), sm.WrongPlan, "another plan")
    same = slice(0, 48) if plan.scale is not None else slice(0, 60)  # what was rounded already is not rounded alike
    assert (plan.slot, plan.slots) == (1, 3)
    assert standing.made("b", plan)[same] == standing.blobs["b"][same]


def test_another_slot_or_tag_in_the_header_is_refused_though_the_checksum_fits(standing: Standing) -> None:
    good, told = standing.blobs["b"], standing.told
    for slot in (0, 2, 3, 2**20, 2**32 - 1):
        standing.refuse("b", resealed(good, {40: struct.pack("<I", slot)}), sm.WrongPlan, "another plan")
    for tag in (told["a"][-4:], told["c"][-4:], bytes(4), standing.before["b"][-4:]):
        standing.refuse("b", resealed(good, {44: tag}), sm.WrongPlan, "another plan")
    for other in "ac":
        both = {40: told[other][1:5], 44: told[other][-4:]}
        standing.refuse("b", resealed(good, both), sm.WrongPlan, "another plan")
    assert resealed(good, {40: told["b"][1:5], 44: told["b"][-4:]}) == good


def test_a_payload_by_the_plan_of_an_earlier_round_is_refused(standing: Standing) -> None:
    tag = wire_plan.tag(
        standing.plan_of_b(1), standing.run.run_digest + codec.node_digest("b") + (1).to_bytes(8, "little")
    )
    assert tag == standing.before["b"][-4:]
    standing.refuse("b", resealed(standing.blobs["b"], {44: tag}), sm.WrongPlan, "for round 2")
    standing.refuse("b", standing.made("b", Plan(1, 3), round=0), sm.WrongRound, "round 0 is over")
    standing.refuse("b", standing.made("b", standing.plan_of_b(1), round=1), sm.WrongRound, "round 1 is over")
    standing.refuse("b", standing.made("b", Plan(), round=1), sm.WrongPlan, "for round 1")
    standing.refuse("b", standing.made("b", Plan(1, 3), round=3), sm.WrongRound, "round 3 has not begun")


def test_a_payload_of_another_run_or_node_is_foreign_whatever_its_plan(standing: Standing) -> None:
    run = standing.run
    other = sm.Run(run.scheme, DIM, seed=4)
    plan = sm.Server(other, round=2).plans(["a", "b", "c"])["b"]
    standing.refuse("b", sm.Client(other, "b").encode(VECTOR, 2, plan), sm.ForeignPayload, "seed")
    standing.refuse("c", standing.blobs["b"], sm.ForeignPayload, "not made by node 'c'")
    renamed = resealed(standing.blobs["b"], {24: codec.node_digest("c")})
    standing.refuse("c", renamed, sm.WrongPlan, "another plan")


def test_a_payload_that_was_encoded_without_a_plan_is_refused(standing: Standing) -> None:
    independent = sm.Run(sm.named("rand-k", k=K), DIM, seed=3)
    plain = sm.Client(independent, "b").encode(VECTOR, 2)
    standing.refuse("b", plain, sm.ForeignPayload, "another encoder")
    run = standing.run
    disguised = resealed(plain, {8: run.scheme_digest, 16: run.run_digest})  # and still of version 1
    standing.refuse("b", disguised, sm.MalformedPayload, "version contradicts")
    older = resealed(standing.blobs["b"], {4: b"\1", 40: struct.pack("<Q", DIM)})
    standing.refuse("b", older, sm.MalformedPayload, "version contradicts")
    standing.refuse("b", resealed(standing.blobs["b"], {4: b"\3"}), sm.MalformedPayload, "version 3 is not known")


def test_frames_of_version_2_are_refused_where_there_are_no_plans() -> None:
    run = sm.Run(sm.named("rand-k", k=K), DIM, seed=3)
    server = sm.Server(run)
    digest, good = server.digest(), sm.Client(run, "b").encode(VECTOR, 0)
    with pytest.raises(sm.MalformedPayload, match="version contradicts"):
        server.accept("b", resealed(good, {4: b"\2"}))
    assert server.digest() == digest


ATTACKED = Standing(SCHEMES["plain"])


@given(st.binary(min_size=8, max_size=8))
def test_of_all_that_can_stand_for_slot_and_tag_one_is_right(field: bytes) -> None:
    good = ATTACKED.blobs["b"]
    if field != good[40:48]:
        ATTACKED.refuse("b", resealed(good, {40: field}), sm.WrongPlan, "another plan")


def test_a_node_without_a_slot_cannot_take_one() -> None:
    standing = Standing(SCHEMES["plain"])
    assert codec.unpack_plan(standing.run, "d", 2, standing.server.plan("d")) == Plan()
    for plan in (Plan(0, 3), Plan(1, 3), Plan(3, 4), Plan(0, 1)):
        forged = resealed(standing.made("b", plan), {24: codec.node_digest("d")})
        tag = wire_plan.tag(plan, standing.run.run_digest + codec.node_digest("d") + (2).to_bytes(8, "little"))
        standing.refuse("d", resealed(forged, {44: tag}), sm.WrongPlan, "another plan")
    blob = sm.Client(standing.run, "d").encode(VECTOR, 2, standing.server.plan("d"))
    assert standing.server.accept("d", blob).node == "d"


def test_the_conflict_of_two_payloads_of_one_plan_is_called_that() -> None:
    standing = Standing(SCHEMES["plain"])
    other = standing.clients["a"].encode(VECTOR + 9, 2, standing.told["a"])
    standing.refuse("a", other, sm.ConflictingPayload, "other bytes")
    assert standing.server.accept("a", standing.blobs["a"]).node == "a"  # the very same one is harmless
    assert standing.server.digest() == standing.digest
