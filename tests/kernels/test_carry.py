"""Changes of rows: carried into the sums and written to the rows alike by both twins, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels import Changes, Columns, Fit, Sample, carry, check_of, compiled, fit_sums, put
from sparsemean.kernels.carry import CANCELLED, carry_numpy, put_numpy
from sparsemean.kernels.fit_sums import fit_sums_numpy
from sparsemean.kernels.sample import drawn


@st.composite
def cases(draw: st.DrawFn) -> tuple[Changes, Columns]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = 1 << draw(st.integers(7, 9))
    dim = draw(st.integers(1, 6 * size))
    k, n, columns = draw(st.integers(1, dim)), draw(st.integers(1, 5)), draw(st.integers(0, 2))
    samples = [Sample.keyed(rng.bytes(32), dim, k, size) for _ in range(n)]
    if slots := draw(st.sampled_from([0, 1, 2, 9, 1 << 20])):
        hand = 1 << draw(st.integers(1, 7))
        samples = [each.balanced(rng.bytes(32), hand, int(rng.integers(slots)), slots) for each in samples]
    starts = np.unique(np.append(0, rng.integers(0, dim, draw(st.sampled_from([0, 1, 4])))))
    kind = draw(st.sampled_from(["f4", "f8", "u1"]))
    high = 2 if kind == "u1" else 2000
    values = [rng.integers(0, high, k).astype(kind) for _ in range(n)]
    rows = [rng.integers(0, high, dim).astype(kind) for _ in range(n)]
    weights = rng.random((columns, n, starts.size)) * rng.integers(0, 3, (columns, n, starts.size))
    sums = [rng.normal(size=dim) for _ in range(columns)]
    if draw(st.booleans()):  # sums that are those of the rows, so that some of them cancel
        sums = [sum((w[0] * row for w, row in zip(each, rows, strict=True)), np.zeros(dim)) for each in weights]
        values = [np.zeros(k, kind) for _ in range(n)]
    return Changes(samples, values, rows), Columns(sums, weights, starts)


def copied(columns: Columns) -> Columns:
    return columns._replace(sums=[each.copy() for each in columns.sums])


@given(cases())
@settings(max_examples=200)
def test_both_carry_the_same(case: tuple[Changes, Columns]) -> None:
    changes, columns = case
    one, other, threaded = copied(columns), copied(columns), copied(columns)
    checks = np.random.default_rng(0).integers(0, 1 << 63, (3, len(changes.rows)), np.uint64)
    checks[:] = checks[0]
    lost = carry_numpy(one, changes, 1, checks[0])
    assert np.array_equal(carry(other, changes, 1, checks[1]), lost)
    assert np.array_equal(carry(threaded, changes, 3, checks[2]), lost)
    assert np.array_equal(carry(copied(columns), changes, 1, None), lost)
    assert np.array_equal(checks[0], checks[1])
    assert np.array_equal(checks[0], checks[2])
    for sums, *others in zip(one.sums, other.sums, threaded.sums, strict=True):
        assert all(each.tobytes() == sums.tobytes() for each in others)


@given(cases())
@settings(max_examples=50)
def test_checksums_are_those_of_the_rows_once_they_are_written(case: tuple[Changes, Columns]) -> None:
    changes, columns = case
    every = np.arange(changes.rows[0].size)
    checks = np.array([check_of(row, every) for row in changes.rows], np.uint64)
    carry(copied(columns), changes, 1, checks)
    put_numpy(changes)
    assert checks.tolist() == [check_of(row, every) for row in changes.rows]


@pytest.mark.parametrize("kind", ["f4", "f8", "u1", "i4", "i8"])
def test_every_single_bit_of_a_row_counts(kind: str) -> None:
    row, every = np.random.default_rng(1).integers(0, 200, 40).astype(kind), np.arange(40)
    known, bits = check_of(row, every), row.view(np.uint8)
    for at in range(bits.size):
        for bit in range(8):
            bits[at] ^= 1 << bit
            assert check_of(row, every) != known
            bits[at] ^= 1 << bit
    assert check_of(row, every) == known


@given(cases())
@settings(max_examples=50)
def test_both_write_the_same(case: tuple[Changes, Columns]) -> None:
    changes, _ = case
    one, other = (changes._replace(rows=[row.copy() for row in changes.rows]) for _ in range(2))
    put_numpy(one)
    put(other, 2)
    assert [row.tobytes() for row in one.rows] == [row.tobytes() for row in other.rows]
    for sample, values, row in zip(*other, strict=True):
        assert np.array_equal(row[drawn(sample)], values)


@pytest.mark.parametrize("twin", [carry_numpy, compiled.carry], ids=["numpy", "numba"])
def test_sums_that_a_far_larger_value_left_are_told(twin) -> None:
    sample = Sample.keyed(bytes(range(32)), 1000, 1000, 4096)
    row, values = np.ones(1000), np.ones(1000)
    row[[7, 500]] = 1e9
    changes = Changes([sample], [values], [row])
    assert twin(Columns([row.copy()], np.ones((1, 1, 1)), np.zeros(1, np.int64)), changes, 1).tolist() == [7, 500]
    assert CANCELLED * 1e9 > 1.0


@given(case=cases(), data=st.data())
@settings(max_examples=100)
def test_both_sum_the_same_for_the_fit(case: tuple[Changes, Columns], data: st.DataObject) -> None:
    changes, columns = case
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dim, n, blocks = changes.samples[0].dim, len(changes.samples), columns.starts.size
    known = [rng.random() < 0.7 for _ in range(n)]
    rows = [row.astype(np.float32) if has else None for row, has in zip(changes.rows, known, strict=True)]
    heard = [rng.integers(0, 2, dim, np.uint8) if has else None for has in known]
    values = [each.astype(np.float32) for each in changes.values]
    common = np.round(rng.normal(size=dim) * 1000)
    fit = Fit(changes.samples, values, rows, heard, rng.random((n, blocks)), columns.starts, common, 1e-9)
    found = fit_sums(fit, 1)
    np.testing.assert_allclose(found, fit_sums_numpy(fit), rtol=1e-10, atol=1e-6)
    assert fit_sums(fit, 3).tobytes() == found.tobytes()
