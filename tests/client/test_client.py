"""A node's side: what it encodes, when its state moves, and how it comes back after a loss."""

from __future__ import annotations

import io
import zipfile
from itertools import product
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean._names import SchemeName, ValueName
from sparsemean.wire.frame import frame_digest

DIM = 12
STATEFUL = [*(name for name in sm.names() if name.startswith("error-feedback")), "diana", "lag"]
IN_STEP = ["diana", "lag"]
STATELESS = [name for name in sm.names() if name not in STATEFUL]


def run_named(name: SchemeName, seed: int = 3, values: ValueName = "float32") -> sm.Run:
    options = {"ratio": 1.5} if name == "rand-k-spatial-opt" else {}
    scheme = sm.named(name, k=4, values=values, **options)
    return sm.Run(scheme, DIM, seed, nodes=["a", "b"] if scheme.encoder.facts.planned else None)


def walk(rounds: int, seed: int = 0) -> np.ndarray:
    """Vectors that move a little, and now and then a lot."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(rounds, DIM)) * np.where(np.arange(rounds) % 3 == 2, 3.0, 0.01)[:, None]
    return 1.0 + np.cumsum(steps, axis=0)


def receipt_of(run: sm.Run, client: sm.Client, blob: bytes, round: int) -> sm.Receipt:
    """What a server that had followed this client would answer; nothing of it depends on the server's state."""
    return sm.Receipt(client.node, round, frame_digest(blob))


def followed(run: sm.Run, vectors: np.ndarray, node: str = "a") -> tuple[sm.Client, list[bytes]]:
    """A client whose payloads were all delivered, and the payloads."""
    client, blobs = sm.Client(run, node), []
    for round, vector in enumerate(vectors):
        blobs.append(client.encode(vector, round))
        client.delivered(receipt_of(run, client, blobs[-1], round))
    return client, blobs


@pytest.mark.parametrize("name", sm.names())
def test_the_same_vector_gives_the_same_bytes_until_it_is_delivered(name):
    run, (first, second) = run_named(name), walk(2)
    client = sm.Client(run, "a")
    blob = client.encode(first, 0)
    assert client.encode(first, 0) == blob
    other = client.encode(second, 0)
    assert other != blob
    assert client.encode(first, 0) == blob == sm.Client(run, "a").encode(first, 0)
    assert sm.Client(run, "b").encode(first, 0) != blob
    assert client.encode(first, 1) != blob


@pytest.mark.parametrize("name", STATELESS)
def test_a_stateless_client_takes_any_receipt_and_any_order_of_rounds(name):
    run, vectors = run_named(name), walk(3)
    client = sm.Client(run, "a")
    blobs = [client.encode(vector, round) for round, vector in enumerate(vectors)]
    client.delivered(sm.Receipt("somebody", 99, "00"))
    assert [client.encode(vectors[round], round) for round in (2, 0, 1)] == [blobs[2], blobs[0], blobs[1]]


@pytest.mark.parametrize("name", STATEFUL)
def test_after_delivery_only_that_payload_can_be_had_again(name):
    run, vectors = run_named(name), walk(4)
    client, blobs = followed(run, vectors[:2])
    assert client.encode(vectors[1], 1) == blobs[1]
    for vector, round in ((vectors[0], 1), (vectors[1], 0), (vectors[0], 0)):
        with pytest.raises(sm.InvalidInput, match="use a later round"):
            client.encode(vector, round)
    assert client.encode(vectors[2], 2) == followed(run, vectors[:3])[1][2]
    assert client.encode(vectors[1], 1) == blobs[1]  # also while another one waits
    client.delivered(receipt_of(run, client, client.encode(vectors[2], 2), 2))
    assert client.encode(vectors[3], 3) == followed(run, vectors)[1][3]


@pytest.mark.parametrize("name", STATEFUL)
def test_state_moves_on_the_receipt_alone_and_only_once(name):
    run, vectors = run_named(name), walk(3)
    client = sm.Client(run, "a")
    for round in range(3):  # never delivered: as if the earlier rounds had not been
        assert client.encode(vectors[2], round) == sm.Client(run, "a").encode(vectors[2], round)
    client, blobs = followed(run, vectors[:2])
    for round in (1, 1):
        client.delivered(receipt_of(run, client, blobs[round], round))
    assert client.encode(vectors[2], 2) == followed(run, vectors)[1][2]
    assert client.encode(vectors[2], 2) != sm.Client(run, "a").encode(vectors[2], 2)


@pytest.mark.parametrize("name", STATEFUL)
def test_a_receipt_for_anything_else_is_refused_and_changes_nothing(name):
    run, vectors = run_named(name), walk(4)
    client, blobs = followed(run, vectors[:2])
    stray = [
        sm.Receipt("a", 2, "00" * 16),
        receipt_of(run, client, blobs[0], 0),
        receipt_of(run, sm.Client(run, "b"), sm.Client(run, "b").encode(vectors[2], 2), 2),
    ]
    for receipt in stray:
        with pytest.raises(sm.OutOfStep, match="reset"):
            client.delivered(receipt)
    blob = client.encode(vectors[2], 2)
    renamed = sm.Receipt("b", 2, receipt_of(run, client, blob, 2).digest)
    for receipt in (*stray, renamed):
        with pytest.raises(sm.OutOfStep, match="reset"):
            client.delivered(receipt)
    client.delivered(receipt_of(run, client, blob, 2))
    assert client.encode(vectors[3], 3) == followed(run, vectors)[1][3]


@pytest.mark.parametrize("name", STATEFUL)
def test_what_is_done_to_the_vector_afterwards_does_not_matter(name):
    run, vectors = run_named(name), walk(3)
    client = sm.Client(run, "a")
    for round, vector in enumerate(vectors[:2]):
        reused = vector.copy()
        blob = client.encode(reused, round)
        reused[:] = np.nan
        client.delivered(receipt_of(run, client, blob, round))
    assert client.encode(vectors[2], 2) == followed(run, vectors)[1][2]


@pytest.mark.parametrize("values", ["float32", "float64"])
@pytest.mark.parametrize("name", ["rand-k", *STATEFUL])
def test_a_restored_client_goes_on_bit_for_bit(name, values):
    run, vectors = run_named(name, values=values), walk(8)
    expected = followed(run, vectors)[1]
    client = sm.Client.restore(run, "a", sm.Client(run, "a").save())
    for round, vector in enumerate(vectors):
        assert client.encode(vector, round) == expected[round]
        client = sm.Client.restore(run, "a", client.save())  # the payload that waits is encoded anew
        blob = client.encode(vector, round)
        assert blob == expected[round]
        client.delivered(receipt_of(run, client, blob, round))
        client = sm.Client.restore(run, "a", client.save())
        assert client.encode(vector, round) == expected[round]
        client.delivered(receipt_of(run, client, blob, round))


@pytest.mark.parametrize("name", ["rand-k", *STATEFUL])
def test_a_state_of_another_run_or_node_is_refused(name):
    run, vectors = run_named(name), walk(2)
    saved = followed(run, vectors)[0].save()
    for other_run, node in ((run_named(name, seed=4), "a"), (run, "b"), (run, "a "), (run_named("top-k"), "a")):
        with pytest.raises(sm.InvalidInput, match=r"another run or node|not a state"):
            sm.Client.restore(other_run, node, saved)
    assert sm.Client.restore(run, "a", saved).run == run


def archive(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def array_file() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


def text_archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name in ("header", "last", "blob", "basis", "state_h"):
            file.writestr(name, "text")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "saved",
    [
        b"",
        b"garbage",
        b"PK\x03\x04 garbage",
        b"\x80\x04N.",  # a pickle
        array_file(),
        text_archive(),
        archive(),
        archive(header=np.zeros(3)),
        archive(header=np.array(["a"], object)),
        archive(header=np.zeros(3), last=np.zeros(3), blob=np.zeros(3), basis=np.zeros(3), state_h=np.zeros(3)),
        "text",
        None,
        3,
    ],
    ids=range(13),
)
def test_garbage_is_no_state(saved):
    with pytest.raises(sm.InvalidInput, match="not a state written by"):
        sm.Client.restore(run_named("diana"), "a", saved)


def test_a_damaged_state_is_refused_or_harmless():
    run, vectors = run_named("diana"), walk(3)
    saved = followed(run, vectors[:2])[0].save()
    expected = followed(run, vectors)[1][2]
    rng = np.random.default_rng(0)
    refused = 0
    damaged = [saved[:cut] for cut in range(0, len(saved), 37)]
    for at in rng.choice(len(saved), 300, replace=False):
        damaged.append(saved[:at] + bytes([saved[at] ^ 1 << int(rng.integers(8))]) + saved[at + 1 :])
    for bad in damaged:
        try:
            client = sm.Client.restore(run, "a", bad)
        except sm.InvalidInput:
            refused += 1
        else:  # a date in the archive, for example
            assert client.encode(vectors[2], 2) == expected
    assert refused > len(damaged) / 2


@pytest.mark.parametrize("name", IN_STEP)
def test_a_lost_receipt_is_noticed_and_cured_by_reset(name):
    run, vectors = run_named(name), walk(9)
    clients = {node: sm.Client(run, node) for node in "ab"}
    server = sm.Server(run)

    def deliver(node: str, round: int) -> None:
        client = clients[node]
        client.delivered(server.accept(node, client.encode(vectors[round] * (1 + (node == "b")), round)))

    for round in (0, 1):
        deliver("a", round)
        deliver("b", round)
        server.close_round()
    server.accept("a", clients["a"].encode(vectors[2], 2))  # the receipt is lost
    deliver("b", 2)
    server.close_round()
    assert np.any(server.expected("a"))
    before = server.digest()
    for _ in range(2):
        with pytest.raises(sm.OutOfStep, match="reset"):
            server.accept("a", clients["a"].encode(vectors[3], 3))
    assert server.digest() == before
    kept = server.expected("b")
    clients["a"].reset()
    deliver("a", 3)
    assert not np.any(server.expected("a"))  # the node begins afresh
    assert np.array_equal(server.expected("b"), kept)
    deliver("b", 3)
    server.close_round()
    fresh = sm.Server(run, round=3)
    fresh.accept("a", sm.Client(run, "a").encode(vectors[3], 3))
    fresh.close_round()
    assert np.array_equal(server.expected("a"), fresh.expected("a"))
    deliver("a", 4)
    deliver("b", 4)
    assert server.close_round().round == 4


@pytest.mark.parametrize("name", IN_STEP)
def test_a_lost_receipt_can_be_fetched_again_in_its_round_and_the_next(name):
    run, vectors = run_named(name), walk(3)
    client, server = sm.Client(run, "a"), sm.Server(run)
    client.delivered(server.accept("a", client.encode(vectors[0], 0)))
    server.close_round()
    server.accept("a", client.encode(vectors[1], 1))
    server.close_round()
    client.delivered(server.accept("a", client.encode(vectors[1], 1)))
    server.accept("a", client.encode(vectors[2], 2))
    assert server.close_round().nodes == ("a",)


@pytest.mark.parametrize("name", ["error-feedback-top-k", "error-feedback-rand-k"])
def test_error_feedback_needs_no_step_with_the_server(name):
    run, vectors = run_named(name), walk(3)
    client, server = sm.Client(run, "a"), sm.Server(run)
    for round, vector in enumerate(vectors):
        server.accept("a", client.encode(vector, round))  # no receipt ever arrives
        server.close_round()


@pytest.mark.parametrize("name", IN_STEP)
def test_node_and_server_hold_the_same_state_to_the_bit(name):
    run, vectors = run_named(name), walk(20)
    client, server = sm.Client(run, "a"), sm.Server(run)
    for round, vector in enumerate(vectors):
        client.delivered(server.accept("a", client.encode(vector, round)))
        server.close_round()
        held = client._state["h" if name == "diana" else "remembered"]
        assert np.array_equal(server.expected("a"), held)
        assert np.any(held)


@pytest.mark.parametrize("name", ["error-feedback-top-k", "error-feedback-rand-k"])
def test_error_feedback_sends_in_the_end_what_it_did_not_send_at_once(name):
    run, vectors = run_named(name, values="float64"), walk(30)
    client = sm.Client(run, "a")
    error, sent = np.zeros(DIM), np.zeros(DIM)
    for round, vector in enumerate(vectors):
        blob = client.encode(vector, round)
        payload = codec.read_payload(run, "a", *codec.open_frame(run, "a", blob))
        assert payload is not None
        (part,) = payload.parts
        assert np.array_equal(part.values, (vector + error)[part.coordinates])
        if name == "error-feedback-top-k":
            largest = np.sort(np.argsort(-np.abs(vector + error), kind="stable")[:4])
            assert part.coordinates.tolist() == largest.tolist()
        error = vector + error - payload.dense(DIM)
        sent += payload.dense(DIM)
        client.delivered(receipt_of(run, client, blob, round))
    np.testing.assert_allclose(sent + error, vectors.sum(axis=0), rtol=1e-12)
    assert np.count_nonzero(sent) == DIM


def test_a_node_that_hardly_moved_sends_a_header_alone():
    run = sm.Run(sm.named("lag", moved=0.1, values="float64"), DIM)
    client, server = sm.Client(run, "a"), sm.Server(run)
    start = np.full(DIM, 2.0)
    sizes: list[int] = []
    remembered: Any = None
    for round, vector in enumerate([start, start, start * 1.2, start * 1.5, start * 1.5, start * 0, start * 0]):
        blob = client.encode(vector, round)
        moved = remembered is None or np.sum((vector - remembered) ** 2) > 0.1 * np.sum(vector**2)
        assert len(blob) == (64 + 8 * DIM if moved else 64)
        assert blob[5] == (0 if moved else 1)
        remembered = vector if moved else remembered
        client.delivered(server.accept("a", blob))
        estimate = server.close_round()
        assert np.array_equal(estimate.mean, remembered)
        assert estimate.bytes == len(blob)
        sizes.append(len(blob))
    assert sizes == [160, 64, 64, 160, 64, 160, 64]


def test_unchanged_nodes_count_with_what_the_server_remembers():
    rounds: list[Any] = [[[1, 1], [2, 2], [6, 9]], [[1, 1.001], [4, 4], [6, 9]]]
    run = sm.Run(sm.named("lag", moved=0.1, values="float64"), 2)
    clients, server = [sm.Client(run, node) for node in "abc"], sm.Server(run)
    for vectors in rounds:
        for client, vector in zip(clients, vectors, strict=True):
            client.delivered(
                server.accept(client.node, client.encode(vector, server.round), weight=1 + (client.node == "a"))
            )
        estimate = server.close_round()
    assert estimate.mean.tolist() == [(2 * 1 + 4 + 6) / 4, (2 * 1 + 4 + 9) / 4]
    assert estimate.bytes == 64 + 80 + 64


@pytest.mark.parametrize("basis", [0, 1, 0xFFFFFFFF])
def test_unchanged_says_nothing_where_the_server_remembers_nothing(basis):
    run = run_named("lag")
    server = sm.Server(run)
    before = server.digest()
    with pytest.raises(sm.OutOfStep, match="reset"):
        server.accept("a", codec.pack(run, "a", 0, None, basis))
    client = sm.Client(run, "a")
    client.delivered(server.accept("a", client.encode(np.ones(DIM), 0)))
    server.close_round()
    assert server.digest() != before
    known, before = server.expected("a"), server.digest()
    with pytest.raises(sm.OutOfStep):  # 0 would begin afresh, and then there is nothing that could be unchanged
        server.accept("a", codec.pack(run, "a", 1, None, basis))
    assert server.digest() == before
    assert np.array_equal(server.expected("a"), known)
    assert len(client.encode(np.ones(DIM), 1)) == 64
    server.accept("a", client.encode(np.ones(DIM), 1))
    assert np.array_equal(server.close_round().mean, np.ones(DIM))
    server.forget("a")
    with pytest.raises(sm.OutOfStep):
        server.accept("a", codec.pack(run, "a", 2, None, client._basis))


GOOD = [3, -1, 4, 1, 5, -9, 2, 6, 5, 3, 5, 8]


# What is given becomes an array of float32 or float64 before an encoder sees it: each kind with an encoder that samples
# and one that sorts, whose kernels would notice; each scheme with an array that is passed on as it is.
KINDS = (list, tuple, np.int8, np.uint16, np.int64, np.float16, np.float64, ">f8", ">f4", np.longdouble)


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, np.float32) for name in sm.names()), *product(("rand-k", "top-k"), KINDS)]
)
def test_any_real_numbers_are_a_vector(name, kind):
    run = run_named(name)
    numbers = [abs(number) for number in GOOD]
    expected = sm.Client(run, "a").encode(np.array(numbers, np.float64), 0)
    vector = kind(numbers) if kind in (list, tuple) else np.array(numbers).astype(kind)
    assert sm.Client(run, "a").encode(vector, 0) == expected
    if isinstance(vector, np.ndarray):
        padded = np.repeat(vector, 2)[::2]
        padded.flags.writeable = False
        assert sm.Client(run, "a").encode(padded, 0) == expected


def test_truth_values_are_numbers():
    run = run_named("identity")
    assert sm.Client(run, "a").encode([True, False] * 6, 0) == sm.Client(run, "a").encode([1, 0] * 6, 0)


NO_VECTORS = [
    (np.array(GOOD, object), "real numbers"),
    ([str(number) for number in GOOD], "real numbers"),
    (np.array(GOOD, complex), "real numbers"),
    (np.array(GOOD, "m8[s]"), "real numbers"),
    ([None] * 12, "real numbers"),
    ([[1], [2, 3]] * 6, "real numbers"),
    ({"a": 1}, "real numbers"),
    ([2**70] * 12, "real numbers"),
    (GOOD[:-1], r"shape \(12,\), got \(11,\)"),
    ([GOOD], r"got \(1, 12\)"),
    (np.array(GOOD)[:, None], r"got \(12, 1\)"),
    (3.0, r"got \(\)"),
    ([], r"got \(0,\)"),
    ([np.nan, *GOOD[1:]], "1 entries that are NaN"),
    ([np.inf, -np.inf, *GOOD[2:]], "2 entries"),
    (np.array([np.nan, *GOOD[1:]], np.float32), "1 entries that are NaN"),
    ([1e101, *GOOD[1:]], "rescale"),
    (np.full(12, -1.7e308), "12 entries"),
]


@pytest.mark.parametrize(
    ("name", "vector", "why"),
    [
        *(("diana", vector, why) for vector, why in NO_VECTORS),
        *((name, [np.nan, *GOOD[1:]], "1 entries that are NaN") for name in ("rand-k", "wangni", "lag")),
    ],
)
def test_what_is_no_vector_is_refused_and_changes_nothing(name, vector, why):
    client = sm.Client(run_named(name), "a")
    with pytest.raises(sm.InvalidInput, match=why):
        client.encode(vector, 0)
    assert client.encode(GOOD, 0) == sm.Client(run_named(name), "a").encode(GOOD, 0)


@pytest.mark.parametrize("name", ["identity", *STATEFUL])
def test_what_does_not_fit_the_kind_of_value_is_refused(name):
    client = sm.Client(run_named(name), "a")
    with pytest.raises(sm.InvalidInput, match="must fit float32"):
        client.encode(np.full(DIM, 1e39), 0)
    assert client.encode(GOOD, 0) == sm.Client(run_named(name), "a").encode(GOOD, 0)
    assert sm.Client(run_named(name, values="float64"), "a").encode(np.full(DIM, 1e39), 0)


@pytest.mark.parametrize("node", ["", None, 3, b"a", ["a"], "\ud800"])
def test_a_node_has_a_name(node):
    with pytest.raises(sm.InvalidInput, match="node"):
        sm.Client(run_named("rand-k"), node)


@pytest.mark.parametrize("round", [-1, 1 << 63, 1.0, "0", None, True])
def test_a_round_is_a_number_from_0_on(round):
    with pytest.raises(sm.InvalidInput, match="round"):
        sm.Client(run_named("rand-k"), "a").encode(GOOD, round)


def test_a_round_may_be_a_numpy_integer():
    client = sm.Client(run_named("rand-k"), "a")
    seven: Any = np.int32(7)
    assert client.encode(GOOD, seven) == client.encode(GOOD, 7)
