"""The sampler against the code on its specification page, by enumeration, and by chi-square under fixed seeds."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import time
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.errors import InvalidInput
from sparsemean.kernels import sample as kernel
from sparsemean.kernels.sample import Sample
from sparsemean.kernels.stream import below
from sparsemean.sampling import Key, coordinates, coordinates_between, tile_counts, tile_size, words

HERE = Path(__file__).parents[1]
GOLDEN = json.loads((HERE / "golden" / "sampling_v1.json").read_text())
RNG = np.random.default_rng(2022)


def page() -> SimpleNamespace:
    """The slow twin: plain-Python integers, as printed in the specification."""
    names: dict[str, object] = {}
    for code in re.findall(
        r"```python\n(.*?)```", (HERE.parent / "docs" / "sampling.md").read_text("utf-8"), re.DOTALL
    ):
        exec(code, names)
    return SimpleNamespace(**names)


TWIN = page()

keys = st.builds(
    Key,
    seed=st.integers(0, 2**64 - 1),
    round=st.integers(0, 2**63 - 1),
    node=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    part=st.integers(0, 255),
)


def twin_tile(key: Key, dim: int, k: int, b: int) -> Any:
    inside, counting = TWIN.streams(key.seed, key.round, key.node, key.part)
    return TWIN.tile(dim, k, TWIN.below(dim, counting, 0), b, inside)


def before(off: int, dim: int, k: int, size: int, first: int, last: int) -> np.ndarray:
    return kernel.places(Sample(np.uint64(0), np.uint64(0), off, dim, k, size), first, last)


def deviation(observed, expected, df: int, variance=None) -> float:
    """(chi-square − df) / √(2 df): within ±5 for a correct sampler, but for one seed in 10^5."""
    variance = expected if variance is None else variance
    return float((((observed - expected) ** 2 / variance).sum() - df) / math.sqrt(2 * df))


# --- the specification ----------------------------------------------------------------------------


@given(keys, st.integers(1, 9000), st.data())
@settings(max_examples=60)
def test_equals_the_code_on_the_page(key, dim, data):
    k = data.draw(st.integers(1, dim) | st.just(dim) | st.integers(1, min(dim, 3)))
    found = coordinates(key, dim, k)
    assert found.dtype == np.int64
    assert found.tolist() == TWIN.coordinates(dim, k, key.seed, key.round, key.node, key.part)


@pytest.mark.parametrize(
    "dim", [1, 2, 3, 63, 64, 65, 66, 127, 128, 129, 4095, 4096, 4097, 4160, 4161, 8191, 8192, 12289]
)
def test_equals_the_code_on_the_page_at_edges(dim):
    key = Key(2**64 - 1, 2**63 - 1, "ü")
    for k in {1, 2, dim // 3, dim - 1, dim} & set(range(1, dim + 1)):
        assert coordinates(key, dim, k).tolist() == TWIN.coordinates(dim, k, key.seed, key.round, key.node)


@given(keys, st.integers(2**32 - 5000, 2**40) | st.integers(2**40 - 2**21, 2**40), st.data())
@settings(max_examples=60)
def test_tiles_of_huge_vectors_equal_the_page(key, dim, data):
    size = tile_size(dim)
    tiles = -(-dim // size)
    b = data.draw(st.integers(0, tiles - 1) | st.just(tiles - 1))
    k = data.draw(st.integers(1, 200 * tiles) | st.integers(1, tiles))
    found, place = coordinates_between(key, dim, k, b * size, min((b + 1) * size, dim))
    assert found.tolist() == twin_tile(key, dim, k, b)
    assert place == (TWIN.below(dim, TWIN.streams(key.seed, key.round, key.node, key.part)[1], 0) + b * size * k) // dim


def test_few_coordinates_of_a_huge_vector_are_quick_and_right():
    key, dim = Key(1, 2, "n"), 2**40
    start = time.perf_counter()
    found = coordinates(key, dim, 5)
    assert time.perf_counter() - start < 2.0
    assert found.tolist() == [
        j for b in np.flatnonzero(tile_counts(key, dim, 5)) for j in twin_tile(key, dim, 5, int(b))
    ]
    assert len(set(found.tolist())) == 5


@pytest.mark.parametrize("case", GOLDEN["coordinates"], ids=lambda case: f"{case['dim']}-{case['k']}")
def test_golden_coordinates(case):
    key = Key(int(case["seed"]), int(case["round"]), case["node"], case["part"])
    found = coordinates(key, case["dim"], case["k"])
    assert found[:8].tolist() == case["first"]
    assert int(found.sum()) == case["sum"]
    assert hashlib.sha256(found.astype("<i8").tobytes()).hexdigest() == case["sha256"]


@pytest.mark.parametrize("case", GOLDEN["words"], ids=lambda case: case["label"])
def test_golden_words(case):
    key = Key(int(case["seed"]), int(case["round"]), case["node"], case["part"])
    assert key.digest(case["label"].encode()).hex() == case["digest"]
    found = words(key, case["label"].encode(), len(case["words"]), case["start"])
    assert [f"{word:016x}" for word in found] == case["words"]


@given(keys, st.binary(max_size=255), st.integers(0, 2**62), st.integers(0, 40))
def test_words_equal_the_page(key, label, start, count):
    stream = TWIN.streams(key.seed, key.round, key.node, key.part, label)[0]
    found = words(key, label, count, start)
    assert found.dtype == np.uint64
    assert found.tolist() == [TWIN.word(stream, start + i) for i in range(count)]


# --- structure ------------------------------------------------------------------------------------


@given(keys, st.integers(1, 40_000), st.data())
@settings(max_examples=60)
def test_sample_is_k_distinct_coordinates_and_cuts_into_ranges(key, dim, data):
    k = data.draw(st.integers(1, dim) | st.just(dim))
    found, counts, size = coordinates(key, dim, k), tile_counts(key, dim, k), tile_size(dim)
    assert counts.sum() == k == len(np.unique(found))
    assert found.min() >= 0
    assert found.max() < dim
    assert np.array_equal(found // size, np.repeat(np.arange(len(counts)), counts))
    ends = sorted(data.draw(st.lists(st.integers(0, len(counts)), min_size=1, max_size=4)))
    ends = [min(b * size, dim) for b in [0, *ends, len(counts)]]
    for lo, hi in itertools.pairwise(ends):
        part, place = coordinates_between(key, dim, k, lo, hi)
        assert np.array_equal(part, found[place : place + len(part)])
        assert np.array_equal(part, found[(lo <= found) & (found < hi)])
        assert place == np.count_nonzero(found < lo)


@pytest.mark.parametrize("dim", [1, 50, 4096, 5000, 3 * 4096 + 64, 100_000])
def test_all_coordinates_when_k_is_dim(dim):
    assert np.array_equal(np.sort(coordinates(Key(3, 1, "n"), dim, dim)), np.arange(dim))


@pytest.mark.parametrize("chunk", [1, 1000, 1 << 30])
def test_result_does_not_depend_on_the_chunks(chunk, monkeypatch):
    cases = [(50_000, 7), (50_000, 5000), (50_000, 45_000), (2_000_000, 300), (2_000_000, 3000)]
    expected = [coordinates(Key(5, 5, "c"), dim, k) for dim, k in cases]
    monkeypatch.setattr(kernel, "_CHUNK", chunk)
    for (dim, k), wanted in zip(cases, expected, strict=True):
        assert np.array_equal(coordinates(Key(5, 5, "c"), dim, k), wanted)


def test_int64_is_wide_enough_at_the_extremes():
    dims = [2**e + s for e in (12, 32, 33, 39, 40) for s in (-1, 0, 1) if 2**e + s <= 2**40]
    for dim in dims:
        size = tile_size(dim)
        tiles = -(-dim // size)
        assert size <= 2**20
        assert tiles <= 2**20
        assert (size - 1) * (size - 1) + size < 2**63
        for k, off in itertools.product((1, 2, dim // 3, dim // 2 + 1, dim - 1, dim), (0, dim // 2, dim - 1)):
            q, r = divmod(size * k, dim)
            assert max(size * k, tiles * size, tiles * q + 1 + k, off + tiles * r) < 2**63
            for b in (0, tiles // 2, tiles - 1):
                exact = [(off + min(j * size, dim) * k) // dim for j in (b, b + 1)]
                assert before(off, dim, k, size, b, b + 1).tolist() == exact


def test_full_tiles_never_reach_the_words_of_the_next():
    assert all(kernel.shuffle_words(2**w) + 1 <= kernel.STRIDE for w in range(12, 21))
    assert all(kernel.shuffle_words(m) == TWIN.shuffle_words(m) for m in range(1, 5000))


@pytest.mark.parametrize("w", range(7, 21))
def test_rounds_are_a_bijection(w):
    draws = RNG.integers(0, 2**64, (1, kernel.shuffle_words(2**w)), dtype=np.uint64)
    image = kernel.permuted(np.arange(2**w, dtype=np.uint32)[None], draws, 2**w)
    assert np.array_equal(np.sort(image[0]), np.arange(2**w))


# --- exactness, by enumeration of all offsets -----------------------------------------------------


def members(m: int) -> np.ndarray:
    """[count, y] → for how many of the m values of o a tile of m includes y, under some fixed shuffle."""
    draws = RNG.integers(0, 2**64, kernel.shuffle_words(m), dtype=np.uint64)
    included = np.zeros((m + 1, m), int)
    for o in range(m):
        order = kernel.from_tile(draws, (np.arange(m) + o) % m, m)
        for count in range(m + 1):
            assert count > 4 or np.array_equal(kernel.from_tile(draws, (np.arange(count) + o) % m, m), order[:count])
            included[count, order[:count]] += 1
    return included


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
def test_inclusion_is_exactly_k_over_dim(size):
    tables = {m: members(m) for m in range(1, size + 1)}
    for dim in range(1, 25):
        sizes = [min(size, dim - start) for start in range(0, dim, size)]
        for k in range(1, dim + 1):
            inclusion = [Fraction(0)] * dim
            for off in range(dim):
                counts = np.diff(before(off, dim, k, size, 0, len(sizes))).tolist()
                assert sum(counts) == k
                for b, (m, count) in enumerate(zip(sizes, counts, strict=True)):
                    assert m * k // dim <= count <= -(-m * k // dim)
                    for y in range(m):
                        inclusion[b * size + y] += Fraction(int(tables[m][count, y]), dim * m)
            assert inclusion == [Fraction(k, dim)] * dim


@pytest.mark.parametrize("m", [63, 64, 65, 100, 127, 128, 129])
def test_every_count_includes_every_member_equally_often(m):
    assert np.array_equal(members(m), np.repeat(np.arange(m + 1)[:, None], m, axis=1))


def test_offsets_are_uniform():
    for bound in (1, 2, 3, 5, 7, 1000):
        drawn = [below(bound, (seed, 99), 0) for seed in range(20 * min(bound, 100))]
        assert set(drawn) == set(range(bound)) if bound < 100 else max(drawn) < bound
    counts = np.bincount([below(6, (seed, 5), 0) for seed in range(30_000)], minlength=6)
    assert abs(deviation(counts, 5000.0, 5)) < 5


# --- chi-square, fixed seeds ----------------------------------------------------------------------


def sent(dim: int, k: int, drawn: list[Key]) -> np.ndarray:
    included = np.zeros((len(drawn), dim), bool)
    for row, key in zip(included, drawn, strict=True):
        row[coordinates(key, dim, k)] = True
    return included


@pytest.mark.parametrize(("dim", "k"), [(37, 5), (784, 78), (5000, 500), (9001, 3)])
def test_every_coordinate_is_included_equally_often(dim, k):
    n, p = 4000, k / dim
    counts = sent(dim, k, [Key(1, round, "a") for round in range(n)]).sum(0)
    assert abs(deviation(counts, n * p, dim, n * p * (1 - p))) < 5


@pytest.mark.parametrize("other", ["node", "round", "seed", "part", "shared"])
def test_samples_of_different_keys_are_independent(other):
    n, dim, k = 1000, 4500, 900
    first = [Key(1, 2 * round, "a") for round in range(n)]
    changed = {
        "node": [Key(1, 2 * round, "b") for round in range(n)],
        "round": [Key(1, 2 * round + 1, "a") for round in range(n)],
        "seed": [Key(2, 2 * round, "a") for round in range(n)],
        "part": [key.child(1) for key in first],
        "shared": [key.shared() for key in first],
    }
    both = (sent(dim, k, first) & sent(dim, k, changed[other])).sum(0)
    p = (k / dim) ** 2
    assert abs(both.sum() - n * dim * p) < 5 * math.sqrt(n * dim * p)
    assert abs(deviation(both, n * p, dim, n * p * (1 - p))) < 5


@pytest.mark.parametrize(("m", "k"), [(4, 2), (5, 2), (8, 3), (16, 2)])
def test_small_samples_are_uniform_subsets(m, k):
    n = 8000
    place = {subset: i for i, subset in enumerate(itertools.combinations(range(m), k))}
    drawn = (tuple(sorted(coordinates(Key(9, round, "s"), m, k).tolist())) for round in range(n))
    counts = np.bincount([place[subset] for subset in drawn], minlength=len(place))
    assert abs(deviation(counts, n / len(place), len(place) - 1)) < 5


@pytest.mark.parametrize(("m", "k", "n"), [(100, 20, 4000), (784, 392, 1000), (1000, 100, 2000), (4096, 2048, 400)])
def test_pairs_within_a_tile_are_those_of_a_uniform_subset(m, k, n):
    chosen = np.stack([coordinates(Key(4, round, None), m, k) for round in range(n)])
    for apart in (1, 2, 3):
        pairs = chosen[:, : k // (2 * apart) * 2 * apart].reshape(n, -1, 2, apart)  # disjoint
        x, y = pairs[:, :, 0].ravel(), pairs[:, :, 1].ravel()
        differences = np.bincount((y - x) % m, minlength=m)
        assert differences[0] == 0
        assert abs(deviation(differences[1:], len(x) / (m - 1), m - 2)) < 5
        for group in (np.arange(m) * 12 // m, np.arange(m) % 8):
            width = np.bincount(group)
            expected = (np.outer(width, width) - np.diag(width)) * len(x) / (m * (m - 1))
            joint = np.bincount(group[x] * len(width) + group[y], minlength=expected.size)
            assert abs(deviation(joint, expected.ravel(), expected.size - 1)) < 5


@pytest.mark.parametrize("w", range(7, 21))
def test_law_of_pairs_computed_exactly(w):
    # After a multiplication by a random odd number and a random addition, all that is left of a pair is the lowest bit
    # in which the two differ: a Markov chain on w states, one step for each shift but the last.
    uniform = 2.0 ** np.arange(w - 1, -1, -1) / (2**w - 1)
    law = np.eye(w)
    for r in range(kernel.shuffle_words(2**w) - 1):
        step = np.zeros((w, w))
        for lowest in range(w):
            difference = np.arange(1 << lowest, 1 << w, 2 << lowest)
            difference ^= difference >> ((2 * w + 1) // 3 - r % 2)
            step[lowest] = np.bincount(np.frexp(difference & -difference)[1] - 1, minlength=w) / len(difference)
        law = law @ step
    distance = np.sqrt(((law - uniform) ** 2 / uniform).sum(1))
    assert distance[0] < 1e-5  # places apart by an odd number
    assert distance.max() < 2e-4


@pytest.mark.parametrize(("m", "k"), [(100, 30), (1000, 300), (4096, 410)])
def test_spread_within_a_tile_is_that_of_a_uniform_subset(m, k):
    n, p = 2000, k / m
    chosen = np.stack([coordinates(Key(6, round, None), m, k) for round in range(n)])
    for label, group in (
        ("half", np.arange(m) < m // 2),
        ("odd", np.arange(m) % 2 == 1),
        ("bit", np.arange(m) & 4 > 0),
    ):
        share = group.mean()
        variance = k * share * (1 - share) * (1 - p) * m / (m - 1)  # hypergeometric
        z = (group[chosen].sum(1) - k * share) / math.sqrt(variance)
        assert abs(z.mean()) * math.sqrt(n) < 5, label
        assert abs((z**2).mean() - 1) * math.sqrt(n / 2) < 5, label


# --- keys and arguments ---------------------------------------------------------------------------


def test_no_two_keys_are_confused():
    variants = [
        (Key(seed, round, node, part), label)
        for seed, round, part in itertools.product((0, 1, 256, 2**64 - 1), (0, 1, 12, 256), (0, 1, 255))
        for node in (None, "", "\0", "\1", "1", "12", "2", "a", "ab", "b", "é", "e\u0301")
        for label in (b"", b"\0", b"1", b"12", b"a", b"ab", b"coordinates")
    ]
    assert len({key.digest(label) for key, label in variants}) == len(variants)


def test_every_field_of_the_key_changes_the_sample():
    base = Key(1, 12, "2")
    others = [
        Key(11, 2, "2"),
        Key(1, 1, "22"),
        Key(2, 12, "2"),
        Key(1, 13, "2"),
        Key(1, 12, "3"),
        base.child(1),
        base.shared(),
    ]
    samples = [tuple(coordinates(key, 1000, 100).tolist()) for key in [base, Key(1, 12, ""), *others]]
    assert len(set(samples)) == len(samples)
    assert words(base, b"x", 1) != words(base, b"y", 1)
    assert base.shared() == Key(1, 12, "anyone").shared()
    assert base.child(3).child(0) == base


def test_numpy_integers_are_integers():
    seven, three, one, hundred, nine = (np.uint64(7), np.int64(3), np.uint8(1), np.int32(100), np.int64(9))
    key = Key(seven, three, "n", one)  # type: ignore[arg-type]
    assert key == Key(7, 3, "n", 1)
    assert type(key.seed) is type(key.round) is type(key.part) is int
    found = coordinates(key, hundred, nine)  # type: ignore[arg-type]
    assert np.array_equal(found, coordinates(key, 100, 9))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Key(-1, 0, None),
        lambda: Key(2**64, 0, None),
        lambda: Key(0, 2**63, None),
        lambda: Key(0, -1, None),
        lambda: Key(0, 1.0, None),  # type: ignore[arg-type]
        lambda: Key(True, 0, None),
        lambda: Key(0, 0, None, 256),
        lambda: Key(0, 0, 5),  # type: ignore[arg-type]
        lambda: Key(0, 0, b"n"),  # type: ignore[arg-type]
        lambda: Key(0, 0, "\ud800"),
        lambda: Key(0, 0, None).child(-1),
        lambda: Key(0, 0, None).digest(bytes(256)),
        lambda: words(Key(0, 0, None), b"x", -1),
        lambda: words(Key(0, 0, None), b"x", 1, -1),
        lambda: tile_size(0),
        lambda: tile_size(2**40 + 1),
        lambda: coordinates(Key(0, 0, None), 10, 0),
        lambda: coordinates(Key(0, 0, None), 10, 11),
        lambda: coordinates(Key(0, 0, None), 10, 0.5),  # type: ignore[arg-type]
        lambda: coordinates(Key(0, 0, None), 0, 1),
        lambda: tile_counts(Key(0, 0, None), 10, 11),
        lambda: coordinates_between(Key(0, 0, None), 10_000, 5, 1, 4096),
        lambda: coordinates_between(Key(0, 0, None), 10_000, 5, 0, 4095),
        lambda: coordinates_between(Key(0, 0, None), 10_000, 5, 8192, 4096),
        lambda: coordinates_between(Key(0, 0, None), 10_000, 5, 0, 12_288),
        lambda: coordinates_between(Key(0, 0, None), 10_000, 5, -4096, 0),
    ],
)
def test_wrong_arguments_name_the_remedy(wrong):
    with pytest.raises(InvalidInput, match="give"):
        wrong()
