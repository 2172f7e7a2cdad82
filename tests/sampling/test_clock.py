"""The clock of an epoch against its definition in fractions, for every small size and for whole epochs."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean.sampling import clock
from sparsemean.sampling.clock import MOST_RATIO, largest_scale

ratios = st.binary(max_size=12).map(lambda text: bytes(16 + byte % 145 for byte in text))


def slow(dim: int, k: int, told: bytes) -> tuple[int, list[int], int]:
    """(round in which it began, r_u of each round since, |U| before the last), by the words of the page."""
    began, rounds, u = 0, list[int](), dim
    for number in range(len(told) + 1):
        if number and u:
            ratio = Fraction(told[number - 1], 16)
            if k > 1:
                wanted = math.floor(k * ratio * u / (ratio * u + dim - u) + Fraction(1, 2))
                rounds.append(u if u <= Fraction(k, 4) else min(max(wanted, 1), k - 1, u))
            else:
                rounds.append(1)
            before, u = u, u - rounds[-1]
        else:
            began, rounds, before, u = number, [], dim, dim - k
    return began, rounds, before


@given(st.integers(1, 60).flatmap(lambda d: st.tuples(st.just(d), st.integers(1, d))), ratios)
def test_it_is_that_of_the_page(size: tuple[int, int], told: bytes) -> None:
    dim, k = size
    now = clock(dim, k, told)
    assert (now.began, list(now.scheduled), now.unscheduled) == slow(dim, k, told)
    assert now.left == now.unscheduled - (now.scheduled[-1] if now.scheduled else k)
    shares = now.probabilities
    assert all(0 < a <= b for a, b in shares)
    sizes = [dim] if len(shares) == 1 else [now.unscheduled, dim - now.unscheduled]
    assert sum(Fraction(a, b) * size for (a, b), size in zip(shares, sizes, strict=True)) == k  # k values on average
    assert all(Fraction(b, a) <= largest_scale(dim, k) for a, b in shares)


def test_the_coin_of_one_value_falls_by_the_ratio() -> None:
    u, s = clock(100, 1, bytes([32] * 40)).probabilities  # |U| = 60 of 100, λ = 2: 120/160
    assert u == (round(2**16 * 0.75), 2**16 * 60)
    assert s == (2**16 - u[0], 2**16 * 40)


@pytest.mark.parametrize("ratio", [16, 32, MOST_RATIO])
@pytest.mark.parametrize(("dim", "k"), [(1000, 100), (1000, 7), (50, 49), (9, 1), (5, 5)])
def test_an_epoch_schedules_every_coordinate_once_and_then_begins_again(dim: int, k: int, ratio: int) -> None:
    rounds = next(count for count in range(dim + 1) if clock(dim, k, bytes([ratio] * count)).left == 0)
    last = clock(dim, k, bytes([ratio] * rounds))
    assert k + sum(last.scheduled) == dim
    assert len(last.scheduled) == rounds
    again = clock(dim, k, bytes([ratio] * (rounds + 1)))
    assert (again.began, again.scheduled, again.unscheduled) == (rounds + 1, (), dim)


def test_an_epoch_is_as_long_as_is_said() -> None:
    """Rounds at k/d = 0.1 and λ = 10 / 3 / 1, the first included."""
    lengths = [
        next(count for count in range(99) if clock(1000, 100, bytes([ratio] * count)).left == 0) + 1
        for ratio in (160, 48, 16)
    ]
    assert lengths == [13, 19, 36]


@pytest.mark.parametrize("ratio", [0.5, 10.5, float("nan"), "2", True])
def test_a_ratio_beyond_1_to_10_is_refused(ratio: object) -> None:
    with pytest.raises(sm.InvalidInput, match="from 1 to 10"):
        sm.Epochs(ratio)  # type: ignore[arg-type]
    with pytest.raises(sm.InvalidInput, match="True or False"):
        sm.Epochs(restart=1)  # type: ignore[arg-type]
