"""More than 2^31 coordinates and more than 2 GiB of payload: every index, product and length is one of 64 bits.

Nothing here needs the memory that such vectors take: they lie in mappings of which only the touched pages exist.
"""

from __future__ import annotations

import mmap
import sys
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sparsemean as sm
from sparsemean import codec, extending
from sparsemean._names import SchemeName, ValueName
from sparsemean.decoding.moment_sample import moment_sample
from sparsemean.encoders.top_k import TopK
from sparsemean.kernels.fold import fold_numpy
from sparsemean.kernels.sample import Sample, gather_numpy, sample_numpy
from sparsemean.kernels.twin import chosen
from sparsemean.payload.blocks import Blocks
from sparsemean.sampling import Key, coordinates, coordinates_between, sample_of, tile_size
from sparsemean.wire import coordinates as listed
from sparsemean.wire import frame
from sparsemean.wire.reader import Reader

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="maps memory that is not there as Linux does")

HALF = 1 << 31
DIMS = [HALF - 1, HALF, HALF + 1, (1 << 32) + 5, 1 << 33]
FAR = 1 << 33
NO_RESERVE = 0x4000  # of Linux: no memory is set aside for pages that nobody touches


def nothing(count: int, dtype: npt.DTypeLike = np.float64, read_only: bool = False) -> npt.NDArray[Any]:
    """So many zeros. If they are only read, large pages make that quick; written, small ones take less memory."""
    kind = np.dtype(dtype)
    room = mmap.mmap(-1, count * kind.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    room.madvise(mmap.MADV_HUGEPAGE if read_only else mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(room, kind)


@pytest.fixture
def lazy_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """np.zeros of large arrays is a mapping: the library itself is as it is."""
    usual = np.zeros

    def zeros(shape: Any, dtype: npt.DTypeLike = np.float64, **options: Any) -> npt.NDArray[Any]:
        count = int(np.prod(shape, dtype=np.float64))
        if count < HALF // 8:
            return usual(shape, dtype, **options)
        return nothing(count, dtype).reshape(shape)

    monkeypatch.setattr(np, "zeros", zeros)


# --- drawing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", DIMS)
def test_coordinates_reach_every_part_of_the_vector(dim: int) -> None:
    """Of 4,000 draws the share in each eighth is 1/8 within 5 standard errors of a plain sample."""
    drawn = coordinates(Key(7, 0, "a"), dim, 4_000)
    assert drawn.dtype == np.int64
    assert len(set(drawn.tolist())) == 4_000
    assert 0 <= drawn.min() < drawn.max() < dim
    counts = np.bincount(drawn // -(-dim // 8), minlength=8)
    assert np.all(np.abs(counts - 500) < 5 * np.sqrt(4_000 * 7 / 64))


@pytest.mark.parametrize("dim", DIMS)
def test_ranges_beyond_2_to_the_31_are_the_same_as_drawn_in_one_go(dim: int) -> None:
    run = sm.Run(sm.named("rand-k", k=3_000), dim)
    whole, _ = run.coordinates("a", 0)
    cuts = [0, dim // 4, dim // 2, dim - 5, dim]
    size = tile_size(dim)
    ends = [cut if cut == dim else cut // size * size for cut in cuts]
    found, places = zip(*(run.coordinates("a", 0, lo, hi) for lo, hi in pairwise(ends)), strict=True)
    assert np.array_equal(np.concatenate(found), whole)
    assert list(places) == np.cumsum([0, *map(len, found[:-1])]).tolist()


@pytest.mark.parametrize("dim", [*DIMS, 1 << 40])
def test_a_single_far_tile_is_drawn_the_same_by_both_twins(dim: int) -> None:
    """With k = d/2 the places on the wire leave 32 bits too, and the last tiles have the largest of them."""
    key, k, size = Key(3, 1, "b"), dim // 2, tile_size(dim)
    sample, last = sample_of(key, dim, k), -(-dim // size)
    far, place = coordinates_between(key, dim, k, (last - 2) * size, dim)
    assert place + far.size == k
    assert far.min() >= (last - 2) * size
    assert far.max() < dim
    for draw in (chosen(sample_numpy, "sample"), sample_numpy):
        out = np.empty(far.size, np.int64)
        draw(sample, last - 2, last, out)
        assert np.array_equal(out, far)


# --- a node ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def far_vector() -> npt.NDArray[np.float32]:
    """A vector of 2^33 entries, zero but for those that node "a" sends: there each is its coordinate, in single."""
    vector = nothing(FAR, np.float32)
    drawn = coordinates(Key(0, 0, "a"), FAR, 1_000)
    vector[drawn] = drawn
    return vector


@pytest.mark.parametrize("twin", [gather_numpy, chosen(gather_numpy, "gather")], ids=["numpy", "compiled"])
def test_values_are_gathered_beyond_2_to_the_31(twin: Callable[..., None], far_vector) -> None:
    sample, out = sample_of(Key(0, 0, "a"), FAR, 1_000), np.empty(1_000, np.float32)
    twin(sample, far_vector, out)
    assert np.array_equal(out, coordinates(Key(0, 0, "a"), FAR, 1_000).astype(np.float32))
    assert np.count_nonzero(out > HALF) > 600


@pytest.mark.parametrize("values", ["float32", "float64", "bfloat16", "int8"])
def test_a_payload_from_2_to_the_33_coordinates_comes_back(values: ValueName, far_vector) -> None:
    run = sm.Run(sm.named("rand-k", k=1_000, values=values), FAR)
    payload = sm.RandK(1_000).encode(far_vector, run.key("a", 0), {})
    blob = codec.pack(run, "a", 0, payload)
    assert len(blob) == run.payload_bytes
    header, body = codec.open_frame(run, "a", blob)
    read = codec.read_payload(run, "a", header, body)
    assert header.dim == FAR
    assert read is not None
    (part,) = read.parts
    drawn = coordinates(run.key("a", 0), FAR, 1_000)
    assert np.array_equal(part.coordinates, drawn)
    noise = np.sqrt(12 * np.max(part.noise))  # the width of the rounding, 0 for exact ones
    assert np.all(np.abs(part.values - drawn.astype(np.float32)) <= 1.001 * noise)


def test_a_client_encodes_a_vector_of_more_than_2_to_the_31() -> None:
    """Through the front door, with its check of every entry."""
    dim = HALF + 4_097
    client = sm.Client(sm.Run(sm.named("rand-k", k=1_000), dim), "a")
    assert len(client.encode(nothing(dim, np.float32, read_only=True), 0)) == 4_064


@pytest.mark.parametrize("dim", [1 << 32, 1 << 33, 1 << 40])
def test_listed_coordinates_beyond_32_bits_come_back(dim: int) -> None:
    chosen = np.unique(np.array([0, HALF - 1, HALF, (1 << 32) - 1, dim // 2 + 1, dim - 1]))
    packed = listed.pack(chosen, dim)
    assert len(packed) <= listed.most_bytes(chosen.size, dim)
    reader = Reader(memoryview(packed))
    assert np.array_equal(listed.unpack(reader, dim, chosen.size), chosen)
    reader.finish()


# --- a server -------------------------------------------------------------------------------------


def through_bytes(run: sm.Run, node: str, values: npt.NDArray[np.float32]) -> extending.Payload:
    """What a server gets of a node that sends these values."""
    sent = extending.Payload((extending.Part(coordinates(run.key(node, 0), run.dim, values.size), values),))
    payload = codec.read_payload(run, node, *codec.open_frame(run, node, codec.pack(run, node, 0, sent)))
    assert payload is not None
    return payload


@pytest.mark.parametrize("add", [fold_numpy, chosen(fold_numpy, "fold")], ids=["numpy", "compiled"])
@pytest.mark.usefixtures("lazy_zeros")
def test_totals_are_summed_beyond_2_to_the_31(add: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """2^33 coordinates in two blocks, of which three nodes sent 500 each."""
    monkeypatch.setattr("sparsemean.decoding.totals.fold", add)
    run = sm.Run(sm.named("rand-k-spatial-avg", k=500), FAR, blocks=[HALF + 3, FAR - HALF - 3])
    values = np.random.default_rng(0).standard_normal((3, 500)).astype(np.float32)
    parts = [through_bytes(run, node, sent).parts[0] for node, sent in zip("abc", values, strict=True)]
    totals = extending.RoundTotals(run.ranges, moments=True)
    totals.add_samples(np.tile([1.0, 2.0], (3, 1)), parts, [None] * 3)
    at = np.concatenate([coordinates(run.key(node, 0), FAR, 500) for node in "abc"])
    assert len(set(at.tolist())) == 1_500  # nothing was drawn twice, so each sum is one value
    assert np.count_nonzero(at > HALF) > 900
    y = np.where(at < HALF + 3, 1.0, 2.0) * (FAR / 500 * values.ravel().astype(np.float64))
    assert np.allclose(totals.sums[at], y, rtol=1e-12, atol=0)
    assert np.all(totals.counts[at] == 1)
    assert totals.nodes.tolist() == [3, 3]
    energy = [np.sum(y[at < HALF + 3] ** 2), np.sum(y[at >= HALF + 3] ** 2)]
    assert np.allclose(totals.class_squares[0], energy)


@pytest.mark.parametrize("name", ["rand-k-temporal", "rand-k-temporal-window"])
@pytest.mark.usefixtures("lazy_zeros")
def test_rows_of_nodes_reach_beyond_2_to_the_31(name: SchemeName) -> None:
    """A row of 2^33 entries, 32 GB or more if they were there, holds what was sent."""
    run, sent = sm.Run(sm.named(name, k=500), FAR), np.arange(1, 501, dtype=np.float32)
    memory = run.scheme.memory.start(extending.MemorySpec(run.ranges, run.scheme.encoder, np.dtype(np.float32)))
    payload = through_bytes(run, "a", sent)
    memory.take([extending.Arrival("a", np.ones(1), payload)])
    memory.learn(0, None)
    memory.settle()
    assert np.array_equal(memory.expected("a", payload.parts[0].coordinates), sent)


def test_blocks_and_kept_powers_beyond_2_to_the_31() -> None:
    blocks = Blocks((HALF + 1, HALF, FAR - 2 * HALF - 1))
    assert blocks.starts.tolist() == [0, HALF + 1, 2 * HALF + 1]
    assert blocks.of(np.array([HALF, HALF + 1, 2 * HALF, 2 * HALF + 1, FAR - 1])).tolist() == [0, 1, 1, 2, 2]
    held = moment_sample(blocks)
    far = np.arange(FAR - held.size, FAR)
    assert held.places(np.array([0]))[0] == 0
    assert held.count <= FAR // 8 + 3 * held.size
    assert held.begin.max() + held.size <= held.count
    assert np.all((held.places(far) >= 0) == (held.begin[-1] >= 0))


# --- bytes ----------------------------------------------------------------------------------------


def test_a_payload_of_more_than_2_gib_is_checked_and_read_without_a_copy() -> None:
    """2^29 + 1 values of 2^30 + 7: a frame of zeros in a mapping, with a header written in front."""
    run = sm.Run(sm.named("rand-k", k=(1 << 29) + 1), (1 << 30) + 7)
    assert run.payload_bytes == 64 + HALF + 4
    blob = nothing(run.payload_bytes, np.uint8, read_only=True)
    body = blob.data[frame.HEADER_BYTES :]
    start = frame.HEADER.pack(
        *(frame.MAGIC, frame.PLAIN, frame.VALUES, 1, 1, run.scheme_digest, run.run_digest),
        *(codec.node_digest("a"), 0, frame.DIM.pack(run.dim), len(body), 0),
    )
    blob[: frame.HEADER_BYTES] = np.frombuffer(start + frame.CRC.pack(zlib.crc32(body, zlib.crc32(start))), np.uint8)
    header, opened = codec.open_frame(run, "a", blob.data)
    payload = codec.read_payload(run, "a", header, opened)
    assert payload is not None
    (part,) = payload.parts
    assert part.values.size == (1 << 29) + 1
    assert np.shares_memory(part.values, blob)
    assert isinstance(part.where, Sample)  # of which nothing is drawn yet
    with pytest.raises(sm.MalformedPayload, match=f"announces {HALF + 4} bytes of body and has {HALF + 3}"):
        codec.open_frame(run, "a", blob.data[:-1])


@pytest.mark.parametrize("dim", [1 << 33, 1 << 40])
def test_sizes_of_payloads_are_exact_however_large(dim: int) -> None:
    bytes_of = {kind: sm.Run(sm.named("identity", values=kind), dim).payload_bytes for kind in ("float32", "int4")}
    assert bytes_of == {"float32": 64 + 4 * dim, "int4": 64 + dim // 2 + dim // 128}
    assert sm.Run(sm.named("rand-k", k=0.5), dim).payload_bytes == 64 + 2 * dim
    few = sm.Run(sm.Scheme(TopK(10)), dim)
    assert few.payload_bytes <= 64 + 40 + 10 * 6 + 8
