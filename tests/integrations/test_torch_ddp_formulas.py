"""Formulas that NumPy and torch share give both the same numbers, also for zeros, infinities and NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from sparsemean._types import Doubles
from sparsemean.kernels import at
from sparsemean.kernels.fit_sums import fit_products
from sparsemean.memory import fit
from sparsemean.theory import CountLaw, estimated, gains
from sparsemean.theory.binomial import count_given_sent
from sparsemean.theory.estimated import Moments
from sparsemean.theory.scaling import likeliest_count, mean_and_deviations, scaled_inverse
from sparsemean.theory.spatial import coefficients_of, constants_of, error_coefficients, pair_ratios
from sparsemean.theory.weighting import linear_weights

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sparsemean[torch]'")

CASES = 5_000
ROOTS = ("unit_pair", "hybrid_coefficients")
"""Formulas with square roots, which torch may leave wrong in the last bit."""
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 1e-300, 1e300, -1e300]


def numbers(count: int, kind: str) -> list[Doubles]:
    """``count`` arrays of ``CASES`` numbers, some of them special; "wide" ones have sizes from 1e-200 to 1e200."""
    rng = np.random.default_rng(count)
    drawn = rng.standard_normal((count, CASES))
    if kind == "wide":
        drawn *= 10.0 ** rng.integers(-200, 200, drawn.shape)
    special = rng.random(drawn.shape) < 0.15
    drawn[special] = rng.choice(SPECIAL, np.count_nonzero(special))
    return list(drawn)


def flags(xp: Any) -> Any:
    """Ones and zeros."""
    drawn = np.random.default_rng(0).integers(0, 2, CASES).astype(np.float64)
    return drawn if xp is np else torch.from_numpy(drawn)


def moments_of(sums: Sequence[Any], xp: Any) -> Moments:
    """Moments of these sizes, with sums of squares that are not negative."""
    s2, q, p4, sp3, q2, qs2, noise = sums
    return Moments(xp.abs(s2), xp.abs(q), xp.abs(p4), sp3, xp.abs(q2), xp.abs(qs2), 0.1 * xp.abs(noise))


FORMULAS: dict[str, tuple[int, Callable[..., Any]]] = {
    "unit_ratio": (3, lambda xp, *a: fit.unit_ratio(a[0], a[1], a[2], xp)),
    "unit_pair": (7, lambda xp, *a: fit.unit_pair((abs(a[0]), a[1], abs(a[2]), *a[3:5]), a[5:], xp)),
    "hybrid_coefficients": (
        10,
        lambda xp, *a: fit.hybrid_coefficients((abs(a[0]), a[1], abs(a[2]), *a[3:7]), a[7:], xp),
    ),
    "hybrid_expectation": (5, lambda xp, *a: at.hybrid_expectation(a[0], a[1], flags(xp), a[2:])),
    "fit_products": (3, lambda xp, *a: fit_products(a[0], a[1], a[2], flags(xp), 1e-9, xp)),
    "r1 and r2": (7, lambda xp, *a: estimated.estimated_r1_r2(moments_of(a, xp), 0.2)),
    "r2_variance": (7, lambda xp, *a: estimated.r2_variance(moments_of(a, xp), 0.2, xp)),
    **{
        f"shrunk_correlation of {n}": (
            8,
            lambda xp, *a, n=n: estimated.shrunk_correlation(moments_of(a[1:], xp), abs(a[0]), n, 0.2, xp),
        )
        for n in (1, 2, 9)
    },
    "error_terms": (9, lambda xp, *a: estimated.error_terms(moments_of(a[2:], xp), 0.2, *a[:2])),
    "rounding_terms": (8, lambda xp, *a: estimated.rounding_terms(moments_of(a[1:], xp), 0.2, a[0])),
}


@pytest.mark.parametrize("kind", ["near 1", "wide"])
@pytest.mark.parametrize("name", FORMULAS)
def test_numpy_and_torch_agree_bit_for_bit_where_there_are_no_roots(name, kind):
    count, formula = FORMULAS[name]
    arrays = numbers(count, kind)
    with np.errstate(all="ignore"):
        expected = formula(np, *arrays)
    found = formula(torch, *map(torch.from_numpy, arrays))
    several = isinstance(expected, tuple)
    for numpy_says, torch_says in zip(expected if several else [expected], found if several else [found], strict=True):
        np.testing.assert_allclose(torch_says.numpy(), numpy_says, rtol=1e-9 if name in ROOTS else 0.0, atol=0.0)
        assert np.unique(numpy_says[np.isfinite(numpy_says)]).size > (name != "shrunk_correlation of 1")


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 100])
def test_gains_and_error_coefficients_of_a_ratio_agree_to_rounding(n, share):
    """Only sums over the count are added in another order, and the gains are what ``theory.gains`` says."""
    sent, ratios = count_given_sent(n, share), pair_ratios(n, share)
    for ratio in np.linspace(-0.95, n - 1.0, 50):
        on_device = torch.tensor(ratio, dtype=torch.float64)
        T = linear_weights(on_device, torch.arange(n, dtype=torch.float64))
        inverse = scaled_inverse(T, likeliest_count(n, share), xp=torch)
        mean, excess = mean_and_deviations(inverse, torch.from_numpy(sent), int(sent.argmax()), torch)
        np.testing.assert_allclose((inverse / mean).numpy(), gains(float(ratio), n, share), rtol=1e-14)
        constants = constants_of(excess, torch.from_numpy(sent), torch.from_numpy(ratios), share)
        own, cross = coefficients_of(*constants, share)
        expected = error_coefficients(float(ratio), n, share)
        assert own.item() == pytest.approx(expected[0], rel=1e-12)
        assert cross.item() == pytest.approx(expected[1], rel=1e-12, abs=1e-13 * max(expected[0], 1.0))


@pytest.mark.parametrize("share", [0.001, 0.1, 0.25, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_so_do_those_of_a_balanced_draw(n, share):
    law, ratios = CountLaw(n, share, slots=n), pair_ratios(n, share)
    sent = torch.from_numpy(law.given_sent.copy())
    for ratio in np.linspace(-0.95, n - 1.0, 20):
        T = linear_weights(torch.tensor(ratio, dtype=torch.float64), torch.arange(n, dtype=torch.float64))
        inverse = scaled_inverse(T, likeliest_count(n, share, slots=n), xp=torch)
        mean, excess = mean_and_deviations(inverse, sent, int(sent.argmax()), torch)
        met = law.given_sent > 0.0
        np.testing.assert_allclose(
            (inverse / mean).numpy()[met], gains(float(ratio), n, share, slots=n)[met], rtol=1e-14
        )
        constants = constants_of(excess, sent, torch.from_numpy(ratios), share, law.pair_factor)
        own, cross = coefficients_of(*constants, share, law.pair_excess)
        expected = error_coefficients(float(ratio), n, share, slots=n)
        assert float(own) == pytest.approx(expected[0], rel=1e-12)
        assert float(cross) == pytest.approx(expected[1], rel=1e-12, abs=1e-13 * max(expected[0], 1.0))


def test_a_mean_too_small_for_a_float_has_no_deviations_in_either():
    values, sent = np.array([0.0, 1e-310, 2e-310]), np.array([0.0, 0.5, 0.5])
    for mean, off in (
        mean_and_deviations(values, sent, 1),
        mean_and_deviations(torch.from_numpy(values), torch.from_numpy(sent), 1, torch),
    ):
        assert float(mean) == 0.0
        assert off.tolist() == [0.0, 0.0, 0.0]
