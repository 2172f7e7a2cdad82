"""Restoring a client from bytes that anybody may have made: a state that fits this run, or InvalidInput."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, scalar_dtypes

import sparsemean as sm
from sparsemean._names import SchemeName
from sparsemean.wire.frame import frame_digest

DIM = 12
VECTORS = 1.0 + np.random.default_rng(0).normal(size=(4, DIM))
STATEFUL = [*(name for name in sm.names() if name.startswith("error-feedback")), "diana", "lag"]
FIELDS = ("header", "choice", "basis", "last", "blob", "state_h")


def run_named(name: SchemeName, dim: int = DIM) -> sm.Run:
    return sm.Run(sm.named(name, k=4), dim, seed=3)


def client_after(run: sm.Run, rounds: int) -> sm.Client:
    """A client whose payloads were all delivered."""
    client = sm.Client(run, "a")
    for round in range(rounds):
        blob = client.encode(VECTORS[round], round)
        client.delivered(sm.Receipt("a", round, frame_digest(blob)))
    return client


DIANA = run_named("diana")
SAVED = client_after(DIANA, 2).save()
NEXT = client_after(DIANA, 2).encode(VECTORS[2], 2)


def fields_of(saved: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(saved)) as found:
        return dict(found)


def archive(fields: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **fields)
    return buffer.getvalue()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def members_of(saved: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(saved)) as file:
        return {name: file.read(name) for name in file.namelist()}


def restored_or_refused(saved: bytes) -> sm.Client | None:
    """Nothing but InvalidInput is raised."""
    try:
        return sm.Client.restore(DIANA, "a", saved)
    except sm.InvalidInput:
        return None


def test_every_flipped_byte_is_refused_or_harmless():
    rng = np.random.default_rng(1)
    taken = 0
    for at in range(len(SAVED)):
        for flip in (0xFF, int(rng.integers(1, 256))):
            client = restored_or_refused(SAVED[:at] + bytes([SAVED[at] ^ flip]) + SAVED[at + 1 :])
            if client is not None:  # a date in the archive, for example
                taken += 1
                assert client.encode(VECTORS[2], 2) == NEXT
    assert 0 < taken < len(SAVED)


def test_every_truncation_is_refused():
    for end in range(len(SAVED)):
        assert restored_or_refused(SAVED[:end]) is None


@settings(max_examples=150)
@given(st.data())
def test_any_array_in_place_of_one_is_refused_or_was_possible(data):
    name = data.draw(st.sampled_from(FIELDS))
    shape = data.draw(st.sampled_from([(), (0,), (1,), (DIM,), (DIM, 1), (2, DIM), (52,), (1000,)]))
    array = data.draw(arrays(data.draw(scalar_dtypes()), shape))
    client = restored_or_refused(archive({**fields_of(SAVED), name: array}))
    if client is not None:
        assert name in ("basis", "state_h")  # a checksum and numbers that could have been
        assert (array.dtype.newbyteorder("="), shape) in ((np.dtype(np.uint32), ()), (np.dtype(np.float64), (DIM,)))
        assert np.isfinite(array).all()


LAST = fields_of(SAVED)["last"].tobytes()
BLOB = fields_of(SAVED)["blob"]
FIRST_BLOB = fields_of(client_after(DIANA, 1).save())["blob"]


def characters(text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8)


@pytest.mark.parametrize(
    "changed",
    [
        {"choice": np.array(1, np.uint8)},
        {"choice": np.array(-1, np.int8)},
        {"choice": np.array(-1)},
        {"choice": np.array([0], np.uint8)},
        {"choice": np.array(0.0)},
        {"basis": np.array(0, np.uint32)},
        {"basis": np.array(-1)},
        {"basis": np.array(2**40)},
        {"basis": np.array([], np.uint32)},
        {"header": characters(b"")},
        {"header": np.zeros((2, 2), np.uint8)},
        {"last": characters(b"")},
        {"last": characters(b"1")},
        {"last": characters(b"one " + LAST[2:])},
        {"last": characters(b"-1 " + LAST[2:])},
        {"last": characters(b"01 " + LAST[2:])},
        {"last": characters(b"0 " + LAST[2:])},  # the payload is of round 1
        {"last": characters(b"9" * 19 + b" " + LAST[2:])},
        {"last": characters(LAST + b" 1")},
        {"last": characters("١ ".encode() + LAST[2:])},  # a digit, but not ours
        {"last": characters(b"\xff\xfe")},
        {"last": characters(LAST.upper())},
        {"last": characters(b"9" * 5000 + b" " + LAST[2:])},
        {"blob": characters(b"")},
        {"blob": BLOB[:-1]},
        {"blob": np.append(BLOB, BLOB[:1])},
        {"blob": BLOB ^ np.uint8(1)},
        {"blob": FIRST_BLOB},
        {"blob": np.zeros(10**6, np.uint8)},
        {"blob": characters(sm.Client(DIANA, "b").encode(VECTORS[1], 1))},
        {"blob": BLOB.astype(np.int16)},
        {"state_h": np.zeros(DIM - 1)},
        {"state_h": np.zeros((DIM, 1))},
        {"state_h": np.zeros(DIM, np.float32)},
        {"state_h": np.zeros(DIM, complex)},
        {"state_h": np.full(DIM, np.nan)},
        {"state_h": np.array([*np.zeros(DIM - 1), np.inf])},
        {"state_h": np.zeros(10**6)},
        {"more": np.zeros(1)},
    ],
)
def test_a_field_that_no_client_of_this_run_can_have_is_refused(changed):
    with pytest.raises(sm.InvalidInput, match=r"not a state written by|another run or node"):
        sm.Client.restore(DIANA, "a", archive({**fields_of(SAVED), **changed}))


@pytest.mark.parametrize("missing", FIELDS)
def test_a_field_that_is_missing_is_refused(missing):
    kept = {name: array for name, array in fields_of(SAVED).items() if name != missing}
    with pytest.raises(sm.InvalidInput, match="its arrays are not"):
        sm.Client.restore(DIANA, "a", archive(kept))


@pytest.mark.parametrize("name", ["rand-k", "top-k"])
def test_a_node_without_state_has_no_payload_to_repeat(name):
    run = run_named(name)
    fields = fields_of(sm.Client(run, "a").save())
    blob = characters(sm.Client(run, "a").encode(VECTORS[0], 1))
    with pytest.raises(sm.InvalidInput, match="keeps no state"):
        sm.Client.restore(run, "a", archive({**fields, "last": characters(LAST), "blob": blob}))


def test_a_choice_among_encoders_survives_and_one_beyond_them_is_refused():
    run = sm.Run(sm.named("rand-k", k=(2, 4)), DIM)
    saved = sm.Client(run, "a", sm.RandK(4)).save()
    assert sm.Client.restore(run, "a", saved).encoder == sm.RandK(4)
    for choice in (np.array(2, np.uint8), np.array(255, np.uint8), np.array(-1, np.int64), np.array(-1, np.int8)):
        with pytest.raises(sm.InvalidInput):
            sm.Client.restore(run, "a", archive({**fields_of(saved), "choice": choice}))


@pytest.mark.parametrize("name", STATEFUL)
def test_a_state_written_on_a_machine_of_the_other_byte_order_is_the_same(name):
    run = run_named(name)
    client = client_after(run, 2)
    swapped = {key: array.astype(array.dtype.newbyteorder(">")) for key, array in fields_of(client.save()).items()}
    assert sm.Client.restore(run, "a", archive(swapped)).save() == client.save()


def test_what_was_restored_can_be_gone_on_with():
    client = sm.Client.restore(DIANA, "a", SAVED)
    client.delivered(sm.Receipt("a", 2, frame_digest(client.encode(VECTORS[2], 2))))
    assert client.encode(VECTORS[3], 3) == client_after(DIANA, 3).encode(VECTORS[3], 3)


# --- Sizes are checked before anything is allocated.


def npy_header(shape: str, descr: str = "<f8") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def bomb(size: int, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive whose state_h unpacks to so many bytes."""
    return zipped({**members_of(SAVED), "state_h.npy": npy_header(f"({size // 8},)") + bytes(size)}, method)


def with_directory(saved: bytes, name: str, **changes: int) -> bytes:
    """The archive with other numbers in the central directory's entry of this member."""
    places = {"method": (10, "<H"), "crc": (16, "<I"), "compressed": (20, "<I"), "size": (24, "<I")}
    at = saved.index(b"PK\x01\x02", saved.rindex(name.encode()) - 60)
    forged = bytearray(saved)
    for field, number in changes.items():
        offset, form = places[field]
        struct.pack_into(form, forged, at + offset, number)
    return bytes(forged)


def hostile_sizes() -> dict[str, bytes]:
    large = bomb(1 << 26)
    own = members_of(SAVED)["state_h.npy"]
    short = zlib.crc32(own[:128])
    return {
        "a bomb": large,
        "a bomb that declares a small size": with_directory(large, "state_h.npy", size=len(own)),
        "a bomb that declares to be stored": with_directory(large, "state_h.npy", method=0, size=len(own)),
        "a bomb by bzip2": bomb(1 << 26, zipfile.ZIP_BZIP2),
        "a bomb by lzma": bomb(1 << 24, zipfile.ZIP_LZMA),
        "many values stored": bomb(1 << 24, zipfile.ZIP_STORED),
        "a size of 4 GiB in the directory": with_directory(SAVED, "state_h.npy", size=2**32 - 2, compressed=2**32 - 2),
        "too small a size in the directory": with_directory(SAVED, "state_h.npy", size=128, compressed=128, crc=short),
        **{
            f"shape {shape} of {descr}": zipped(
                {**members_of(SAVED), "state_h.npy": npy_header(shape, descr) + own[128:]}
            )
            for shape in ("(12)", "(1099511627776,)", "(12, 1099511627776)", "(0, 0)", "(-12,)", f"({'9' * 60},)", "()")
            for descr in ("<f8", "|u1", "|O", "<U1000")
        },
        "a header without end": zipped({**members_of(SAVED), "state_h.npy": own[:8] + b"\xff\xff" + own[10:]}),
        "no header": zipped({**members_of(SAVED), "state_h.npy": b""}),
        "code for a header": zipped({**members_of(SAVED), "state_h.npy": own.replace(b"(12,)", b"2*6,,")}),
    }


def test_a_declared_size_takes_no_memory():
    for what, hostile in hostile_sizes().items():
        tracemalloc.start()
        try:
            with pytest.raises(sm.InvalidInput, match="not a state written by"):
                sm.Client.restore(DIANA, "a", hostile)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 4 * len(hostile) + (1 << 20), what


def test_two_arrays_of_one_name_are_refused():
    buffer = io.BytesIO(SAVED)
    with zipfile.ZipFile(buffer, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("state_h.npy", members_of(SAVED)["state_h.npy"])
    assert restored_or_refused(buffer.getvalue()) is None
