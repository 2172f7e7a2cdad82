"""Plans on the wire: as the specification page has them, and refused wherever a bit, the node, round or run differs."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean import codec
from sparsemean._names import ValueName
from sparsemean.kernels.tiled import Tiled
from sparsemean.sampling import MAX_SLOTS, Plan
from sparsemean.wire import plan as wire_plan
from sparsemean.wire.reader import Reader

RUN = sm.Run(sm.named("rand-k-balanced", k=3), 10, seed=5)
PLAN = Plan(2, 7)
BLOB = codec.pack_plan(RUN, "a", 4, PLAN)

plans = st.integers(1, MAX_SLOTS).flatmap(lambda slots: st.builds(Plan, st.integers(0, slots - 1), st.just(slots)))
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


def on_the_page(run: sm.Run, node: str, round: int, slot: int, slots: int) -> bytes:
    """As docs/wire.md has it, in words of its own."""
    terms = bytes([1]) + slot.to_bytes(4, "little") + slots.to_bytes(4, "little")
    bound = run.run_digest + hashlib.blake2b(node.encode(), digest_size=8).digest() + round.to_bytes(8, "little")
    return terms + hashlib.blake2b(b"sparsemean plan" + bound + terms, digest_size=4).digest()


@given(plans | st.just(Plan()), names, st.integers(0, 2**63 - 1))
def test_a_plan_comes_back_and_has_the_bytes_of_the_page(plan: Plan, node: str, round: int) -> None:
    blob = codec.pack_plan(RUN, node, round, plan)
    assert len(blob) == 13
    assert codec.unpack_plan(RUN, node, round, blob) == plan
    assert blob == on_the_page(RUN, node, round, 2**32 - 1 if plan.slot is None else plan.slot, plan.slots)


def test_golden_bytes() -> None:
    """They change with nothing but the format: a plan that is told by one release is read by the next."""
    assert RUN.digest == "9fe03b7f93861df0"
    assert BLOB.hex() == "0102000000070000003bc89d86"
    assert codec.pack_plan(RUN, "a", 4, Plan()).hex() == "01ffffffff000000004190032c"


def test_golden_bytes_of_a_plan_with_an_option() -> None:
    run = sm.Run(sm.named("auto", bytes=200), 1000, seed=5)
    told = Plan(2, 7, option=1), Plan(2, 7, epoch=1, ratios=bytes([16, 32]), option=2)
    assert [run.options[each.option or 0].epochs is not None for each in told] == [False, True]
    blobs = [codec.pack_plan(run, "a", 4, each) for each in told]
    assert [codec.unpack_plan(run, "a", 4, blob) for blob in blobs] == list(told)
    assert run.digest == "b9d74d51f96f64e5"
    first, later = "04010102000000070000007e17c49d", "04020202000000070000000100000000000000020010209abea933"
    assert [blob.hex() for blob in blobs] == [first, later]
    plain = codec.pack_plan(run, "a", 4, Plan(2, 7))
    assert (blobs[0][:2], blobs[0][2:-4]) == (bytes([4, 1]), plain[:-4])


def refused(blob: bytes, run: sm.Run = RUN, node: str = "a", round: int = 4) -> str:
    """The message of the refusal, which must be the same for who reads plans and for a client that is given one."""
    with pytest.raises(sm.InvalidInput) as read:
        codec.unpack_plan(run, node, round, blob)
    with pytest.raises(sm.InvalidInput) as encoded:
        sm.Client(run, node).encode(np.zeros(run.dim), round, blob)
    assert str(read.value) == str(encoded.value)
    return str(read.value)


@pytest.mark.parametrize("plan", [PLAN, Plan(), Plan(0, 1), Plan(MAX_SLOTS - 1, MAX_SLOTS)])
def test_every_bit_counts(plan: Plan) -> None:
    blob = codec.pack_plan(RUN, "a", 4, plan)
    assert sm.Client(RUN, "a").encode(np.zeros(10), 4, blob)
    for at in range(13):
        for bit in range(8):
            refused(bytes(byte ^ (1 << bit if i == at else 0) for i, byte in enumerate(blob)))


def test_every_truncation_and_what_is_too_long_is_refused() -> None:
    for length in range(13):
        assert "not a plan of this release" in refused(BLOB[:length])
    for more in (b"\0", BLOB):
        assert "not a plan of this release" in refused(BLOB + more)


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_version_is_refused_by_its_own_words(version: int) -> None:
    assert "not a plan of this release" in refused(bytes([version]) + BLOB[1:])


@pytest.mark.parametrize(
    ("run", "node", "round"),
    [
        (RUN, "b", 4),
        (RUN, "a", 3),
        (RUN, "a", 5),
        (sm.Run(RUN.scheme, 10, seed=6), "a", 4),
        (sm.Run(RUN.scheme, 11, seed=5), "a", 4),
        (sm.Run(RUN.scheme, 10, seed=5, blocks=[4, 6]), "a", 4),
        (sm.Run(sm.named("rand-k-balanced", k=2), 10, seed=5), "a", 4),
        (sm.Run(sm.named("rand-k-balanced", k=3, values="float64"), 10, seed=5), "a", 4),
    ],
    ids=["node", "round before", "round after", "seed", "dim", "blocks", "k", "values"],
)
def test_a_plan_is_for_one_node_round_and_run(run: sm.Run, node: str, round: int) -> None:
    assert "another run, node or round" in refused(BLOB, run, node, round)


def test_a_plan_is_for_a_run_whoever_is_in_its_list() -> None:
    """Nor for whoever decodes: the list, the decoder and the memory are no part of what both sides agree on."""
    for run in (
        sm.Run(RUN.scheme, 10, seed=5, nodes=["x", "a"]),
        sm.Run(sm.Scheme(RUN.scheme.encoder, sm.Spatial("max"), sm.PerNode()), 10, seed=5),
    ):
        assert codec.unpack_plan(run, "a", 4, BLOB) == PLAN


def sealed(slot: int, slots: int) -> bytes:
    """Terms that no server gives, with a tag that fits them."""
    return on_the_page(RUN, "a", 4, slot, slots)


@pytest.mark.parametrize(
    ("slot", "slots"), [(7, 7), (8, 7), (0, 0), (2**32 - 1, 7), (0, MAX_SLOTS + 1), (2**32 - 2, 2**32 - 1)]
)
def test_terms_that_cannot_be_are_refused_though_their_tag_fits(slot: int, slots: int) -> None:
    assert codec.unpack_plan(RUN, "a", 4, sealed(6, 7)) == Plan(6, 7)
    assert "a slot is a number below slots" in refused(sealed(slot, slots))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Plan(3, 3),
        lambda: Plan(-1, 3),
        lambda: Plan(None, 3),
        lambda: Plan(0, MAX_SLOTS + 1),
        lambda: Plan(0),
        lambda: Plan(0.0, 2),  # type: ignore[arg-type]
        lambda: Plan("0", 2),  # type: ignore[arg-type]
    ],
)
def test_a_plan_that_cannot_be_is_not_made(wrong: Callable[[], object]) -> None:
    with pytest.raises(sm.InvalidInput, match="a slot is a number below slots"):
        wrong()


@pytest.mark.parametrize("plan", [PLAN, Plan()])
def test_a_frame_repeats_slot_and_tag_and_is_of_version_2(plan: Plan) -> None:
    told = codec.pack_plan(RUN, "a", 4, plan)
    frame = sm.Client(RUN, "a").encode(np.arange(10.0), 4, told)
    assert frame[4] == 2
    assert frame[40:44] == told[1:5]
    assert frame[44:48] == told[9:]
    header, _ = codec.open_frame(RUN, "a", frame)
    assert header == codec.implied_header(RUN, "a", 4, plan)
    assert (header.slot, header.plan) == (wire_plan.slot_field(plan), told[9:])


def test_the_plan_alone_decides_which_coordinates_are_sent() -> None:
    sent = {}
    for slot in range(3):
        blob = sm.Client(RUN, "a").encode(np.arange(10.0), 4, codec.pack_plan(RUN, "a", 4, Plan(slot, 3)))
        sent[slot] = set(struct.unpack("<3f", blob[64:]))
        assert sent[slot] == set(RUN.coordinates("a", 4, plan=Plan(slot, 3))[0])
    assert len(set[float]().union(*sent.values())) == 9


# --- epochs ---------------------------------------------------------------------------------------

EPOCHS = sm.Run(sm.Scheme(sm.RandK(3, draw=sm.Epochs())), 10, seed=5)
told = st.binary(max_size=9).map(lambda text: bytes(16 + byte % 145 for byte in text))


@given(plans | st.just(Plan()), names, st.integers(0, 2**62), told)
def test_a_plan_of_an_epoch_comes_back_and_has_the_bytes_of_the_page(
    plan: Plan, node: str, epoch: int, ratios: bytes
) -> None:
    plan, round = Plan(plan.slot, plan.slots, epoch, ratios), epoch + len(ratios)
    blob = codec.pack_plan(EPOCHS, node, round, plan)
    assert codec.unpack_plan(EPOCHS, node, round, blob) == plan
    slot = 2**32 - 1 if plan.slot is None else plan.slot
    terms = struct.pack("<BIIQH", 2, slot, plan.slots, epoch, len(ratios)) + ratios
    bound = EPOCHS.run_digest + hashlib.blake2b(node.encode(), digest_size=8).digest() + round.to_bytes(8, "little")
    assert blob == terms + hashlib.blake2b(b"sparsemean plan" + bound + terms, digest_size=4).digest()


def test_every_bit_and_the_length_of_a_plan_of_an_epoch_count() -> None:
    blob = codec.pack_plan(EPOCHS, "a", 4, Plan(2, 7, 2, bytes([16, 160])))
    assert sm.Client(EPOCHS, "a").encode(np.zeros(10), 4, blob)
    for at in range(len(blob)):
        for bit in range(8):
            refused(bytes(byte ^ (1 << bit if i == at else 0) for i, byte in enumerate(blob)), EPOCHS)
        assert "not a plan of this release" in refused(blob[:at], EPOCHS)
    assert "not a plan of this release" in refused(blob + b"\0", EPOCHS)
    assert "another run, node or round" in refused(blob, EPOCHS, "b")
    assert "another run, node or round" in refused(blob, EPOCHS, round=5)


def test_a_plan_of_one_kind_of_draw_is_none_of_the_other() -> None:
    assert "not a plan of this release" in refused(codec.pack_plan(RUN, "a", 4, PLAN), EPOCHS)
    assert "not a plan of this release" in refused(codec.pack_plan(EPOCHS, "a", 4, Plan(2, 7, 4)), RUN)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Plan(0, 2, None, bytes([16])),
        lambda: Plan(0, 2, -1),
        lambda: Plan(0, 2, 1 << 63),
        lambda: Plan(0, 2, True),
        lambda: Plan(0, 2, 0, bytes([15])),
        lambda: Plan(0, 2, 0, bytes([16, 161])),
        lambda: Plan(0, 2, 0, bytes([16]) * (1 << 16)),
        lambda: Plan(0, 2, 0, [16]),  # type: ignore[arg-type]
    ],
)
def test_an_epoch_that_cannot_be_is_not_made(wrong: Callable[[], object]) -> None:
    with pytest.raises(sm.InvalidInput, match=r"an epoch begins|ratios are from"):
        wrong()


@pytest.mark.parametrize("values", ["float64", "float32", "int8", "1-bit", "bfloat16"])
@pytest.mark.parametrize("k", [1, 2, 300])
def test_values_of_both_classes_travel_as_one_part_and_come_back_as_two(values: ValueName, k: int) -> None:
    dim = 700
    run = sm.Run(sm.Scheme(sm.RandK(k, draw=sm.Epochs()), values=values), dim, seed=5)
    x = np.random.default_rng(0).normal(size=dim)
    plan = Plan(2, 7, 1, bytes([16, 40, 90]))
    blob = sm.Client(run, "a").encode(x, 4, codec.pack_plan(run, "a", 4, plan))
    assert len(blob) == run.payload_bytes
    header, body = codec.open_frame(run, "a", blob)
    assert header.parts == 1
    payload = codec.read_payload(run, "a", header, body, plan)
    assert payload is not None
    drawn = run.layout[0].drawn(run.key("a", 4, plan), dim)
    at = np.concatenate([part.coordinates for part in payload.parts])
    sent, noise = run.value_kind.unpack(Reader(body), k, run.key("a", 4, plan))
    np.testing.assert_array_equal(np.concatenate([part.values for part in payload.parts]), sent)
    spread = np.concatenate([np.broadcast_to(np.asarray(p.noise), p.values.shape) for p in payload.parts])
    np.testing.assert_array_equal(spread, np.broadcast_to(np.asarray(noise), k))
    for part, each in zip(payload.parts, drawn, strict=True):
        assert isinstance(each.where, Tiled)
        np.testing.assert_array_equal(part.coordinates, each.where.coordinates)
        assert part.scale == each.of / each.sent
    assert np.array_equal(at, run.coordinates("a", 4, plan=plan)[0])
    if run.value_kind.exact:
        np.testing.assert_array_equal(sent, x[at].astype(run.value_kind.dtype))
        assert codec.pack(run, "a", 4, payload, plan=plan) == blob
