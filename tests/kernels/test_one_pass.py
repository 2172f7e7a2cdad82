"""A round in one pass: the compiled loop against its NumPy twin, and against the kernels that a server calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsemean.decoding.moment_sample import moment_sample
from sparsemean.kernels import Batch, Fit, Sample, Totals, arrays, compiled, compiled_arrays, compiled_pass
from sparsemean.kernels.one_pass import PassSums, Powers, Remembered, Sent, one_pass_numpy
from sparsemean.payload.blocks import Blocks
from sparsemean.sampling import Key, balanced_sample_of, sample_of

ROUNDING = 1e-9
GAINS = np.array([0.3, 0.9, 0.4, 0.2])


def samples(n: int, dim: int, k: int, step: int, balanced: bool = False) -> list[Sample]:
    if balanced:
        return [balanced_sample_of(Key(1, step, None), dim, k, slot, n) for slot in range(n)]
    return [sample_of(Key(1, step, str(node)), dim, k) for node in range(n)]


def memory(kind: str, n: int, dim: int, dtype: Any) -> Remembered | None:
    if kind == "none":
        return None
    heard = np.zeros((n, dim) if kind == "hybrid" else (0, 0), np.uint8)
    return Remembered(np.zeros((n, dim), dtype), np.zeros(dim), heard, np.array([0.9, 0.5, 0.7]), ROUNDING)


def values(n: int, k: int, step: int, dtype: Any) -> list[np.ndarray]:
    """In the second step huge ones, which leave in the third and take the digits of sums with them."""
    drawn = np.random.default_rng(step).standard_normal((n, k))
    if step == 1:
        drawn[0] *= 1e14
    return list(drawn.astype(dtype))


def every_power(dim: int) -> Powers:
    held = moment_sample(Blocks((dim,)))
    return Powers(held.begin, held.size)


@pytest.mark.parametrize("kind", ["none", "rows", "hybrid"])
@pytest.mark.parametrize(
    ("dim", "k", "dtype", "draw"),
    [
        (100, 10, np.float32, "independent"),
        (10_000, 6_000, np.float64, "balanced"),
        (300_000, 60_000, np.float32, "independent"),  # of which not every tile keeps higher powers
        (5_000, 5_000, np.float32, "everywhere"),
    ],
)
def test_compiled_and_numpy_leave_the_same_bits_but_for_the_order_of_sums(kind, dim, k, dtype, draw):
    n, kept = 3, [memory(kind, 3, dim, dtype) for _ in range(2)]
    outs = np.empty((2, dim), dtype)
    for step in range(3):
        where = None if draw == "everywhere" else samples(n, dim, k, step, draw == "balanced")
        sent = Sent(where, values(n, k, step, dtype), dim / k, dim)
        found = [
            function(sent, GAINS, 0.0, out, every_power(dim), remembered)
            for function, out, remembered in zip((compiled_pass.one_pass, one_pass_numpy), outs, kept, strict=True)
        ]
        assert np.array_equal(outs[0], outs[1])
        for name in PassSums._fields:
            mine, theirs = (getattr(each, name) for each in found)
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max(), err_msg=name)
        if kept[0] is not None and kept[1] is not None:
            for name in ("last", "sums", "heard"):
                assert np.array_equal(getattr(kept[0], name), getattr(kept[1], name))
            if draw != "everywhere":
                np.testing.assert_allclose(kept[0].sums, kept[0].last.sum(axis=0, dtype=np.float64), rtol=1e-6)


def test_sums_are_those_of_the_kernels_of_a_server_bit_for_bit():
    n, dim, k = 3, 600_000, 150_000
    held, one_block = moment_sample(Blocks((dim,))), np.zeros(1, np.int64)
    kept = memory("hybrid", n, dim, np.float32)
    assert kept is not None
    for step in range(2):
        where, came = samples(n, dim, k, step), values(n, k, step + 2, np.float32)
        fit = Fit(where, came, list(kept.last), list(kept.heard), np.ones((n, 1)), one_block, kept.common, ROUNDING)
        fits = compiled.fit_sums(fit)
        found = compiled_pass.one_pass(
            Sent(where, came, dim / k, dim), GAINS, 0.0, np.empty(dim), every_power(dim), kept
        )
        np.testing.assert_array_equal(found.fits, fits[:, 0])
    plain = compiled_pass.one_pass(Sent(where, came, dim / k, dim), GAINS, 0.0, None, every_power(dim))
    squares, cubes = np.zeros((2, held.count))
    totals = Totals(np.zeros(dim), np.zeros(dim, np.int32), np.zeros(1), held.begin, squares, cubes, np.zeros(1))
    compiled.fold(totals, Batch(where, came, [None] * n, np.ones((n, 1)), one_block, dim / k))
    power = totals.squares, totals.cubes, totals.counts, held.begin, held.size, one_block
    sums, _ = compiled_arrays.power_sums(totals.sums, *power, 0, n + 1)
    np.testing.assert_array_equal(plain.powers, sums[:, 0])
    assert [np.add.accumulate(plain.energy)[-1], np.add.accumulate(plain.fourths)[-1]] == [
        totals.energy[0],
        totals.fourths[0],
    ]
    assert plain.most[0] == totals.counts.max()


def test_neither_threads_nor_looking_first_change_a_bit():
    n, dim, k = 2, 1_200_000, 100_000
    sent = Sent(samples(n, dim, k, 0), values(n, k, 0, np.float32), dim / k, dim)
    outs = np.empty((2, dim))
    looked = compiled_pass.one_pass(sent, GAINS[:3], 0.0, None, every_power(dim))
    for threads, out in ((1, outs[0]), (4, outs[1])):
        found = compiled_pass.one_pass(sent, GAINS[:3], 0.0, out, every_power(dim), None, threads)
        assert all(np.array_equal(getattr(found, name), getattr(looked, name)) for name in PassSums._fields)
    assert np.array_equal(outs[0], outs[1])


def test_nothing_is_learnt_while_it_only_looks():
    kept = memory("hybrid", 2, 5_000, np.float32)
    assert kept is not None
    sent = Sent(samples(2, 5_000, 900, 0), values(2, 900, 0, np.float32), 5.0, 5_000)
    compiled_pass.one_pass(sent, GAINS[:3], 0.0, None, every_power(5_000), kept)
    assert not any(np.any(array) for array in (kept.last, kept.heard, kept.sums))


def test_minus_zero_stays_where_zero_is_minus_zero():
    """As between ``add_scaled``, by which Mean decodes, and ``reweigh``, by which Spatial does."""
    tiny, out = np.array([-5e-324]), np.empty(1)
    one_pass_numpy(Sent(None, [tiny], 1.0, 1), np.array([0.0, 0.25]), -0.0, out, None)
    expected = np.empty(1)
    arrays.add_scaled(tiny, 0.25, expected, True)
    assert np.signbit(out[0]) == np.signbit(expected[0]) == True  # noqa: E712
    one_pass_numpy(Sent(None, [tiny], 1.0, 1), np.array([0.0, 0.25]), 0.0, out, None)
    assert not np.signbit(out[0])
