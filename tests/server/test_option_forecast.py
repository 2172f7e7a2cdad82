"""Forecasts of options: the first round of each is the formula of its draw, and later ones follow the memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from sparsemean import theory
from sparsemean.server.option_forecast import (
    Coverage,
    Figures,
    Held,
    Rounding,
    balanced,
    epochs,
    promised,
)

FIGURES = Figures(nodes=10, correlation=0.5, residual=3.0, common=2.0, drift=0.1, trend=1.0)
HEARD = Coverage(Held(), Held(1.0, 0.0, 0.5, 2.0))


def noisy(noise: float) -> Rounding:
    """Values of so much noise, whatever is sent."""
    return Rounding(1.0, noise)


def errors(played, rounds: int) -> list[float]:
    return [each.error for each in islice(played, rounds)]


def test_what_is_sent_whole_errs_by_its_noise():
    assert errors(balanced(FIGURES, HEARD, 1.0, noisy(0.25)), 3) == [0.25] * 3


@pytest.mark.parametrize("p", [0.05, 0.1, 0.25, 0.8])
def test_a_balanced_round_errs_as_the_formula_says(p):
    q = 0.5 + 0.1 * 2.0
    residual = 2.0 * q / (2.0 + q)  # of two predictions that err independently by D and q
    assert FIGURES.unexplained_in(HEARD, FIGURES.own_part(HEARD)) == pytest.approx(residual)
    r1, ratio = 100 * residual, 0.5 * 9
    sampled = theory.spatial_mse(r1, ratio * r1, 10, p, ratio, slots=10)
    rounded = theory.spatial_mse(100.0, 0.0, 10, p, ratio, slots=10) + 1.0
    assert next(balanced(FIGURES, HEARD, p, noisy(0.25))).error == pytest.approx(sampled + 0.25 * rounded, rel=1e-9)


def test_an_epoch_begins_with_the_plain_mean_of_a_balanced_round_and_goes_on_by_classes():
    p, noise = 0.25, 0.01
    first_two = errors(epochs(FIGURES, HEARD, p, noisy(noise), on=False), 2)
    residual = FIGURES.unexplained_in(HEARD, FIGURES.own_part(HEARD))
    first = theory.spatial_mse(100 * residual, 4.5 * 100 * residual, 10, p, "one", slots=10)
    assert first_two[0] == pytest.approx(first + noise / p, rel=1e-9)
    q_u, q_s = 0.5 + 0.1 * 3.0, noise + 0.1
    g = 2.0 / (2.0 + 0.5 + 0.1 * 2.0)  # as the values of the first round fit it
    of_u, of_s = ((1 - g) ** 2 * 2.0 + g**2 * q for q in (q_u, q_s))
    ratio = np.sqrt(of_u / of_s)
    pi_s = p / (ratio * 0.75 + 0.25)
    pi_u = ratio * pi_s
    later = 0.75 * ((1 / pi_u - 1) * of_u + noise / pi_u) + 0.25 * ((1 / pi_s - 1) * of_s + noise / pi_s)
    assert first_two[1] == pytest.approx(later, rel=1e-9)


def test_coverage_is_that_of_coordinates_sent_at_random():
    """Against coordinates one by one: which were heard, with which noise and how long ago."""
    rng, dim, p = np.random.default_rng(0), 200_000, 0.2
    heard, noise, age = np.zeros(dim, bool), np.zeros(dim), np.zeros(dim)
    memory = Coverage()
    for t in range(6):
        sent = rng.random(dim) < p
        heard |= sent
        age, noise = np.where(sent, 1.0, age + 1.0), np.where(sent, float(t), noise)
        memory = memory.uniform(p, float(t))
        held = memory.together()
        assert held.unheard == pytest.approx(1 - heard.mean(), abs=0.01)
        assert held.noise == pytest.approx(noise[heard].mean(), abs=0.05)
        assert held.age == pytest.approx(age[heard].mean(), abs=0.05)


def test_after_a_whole_epoch_everything_is_heard_once():
    memory, p, rounds = Coverage().first(0.25, 0.1), 0.25, 1
    while memory.u.part > 1e-9:
        share = p / (10 * memory.u.part + memory.s.part)
        memory = memory.later(1.0 if 4 * memory.u.part <= p else min(10 * share, 1.0), share, 0.1)
        rounds += 1
    assert rounds <= 8
    assert memory.together().unheard == 0.0
    assert memory.together().noise == pytest.approx(0.1)


def test_vectors_at_rest_promise_less_than_vectors_that_move_and_the_more_the_finer():
    rest, moves = replace(FIGURES, drift=0.0), replace(FIGURES, drift=2.0)
    fine, coarse = (
        [promised(errors(epochs(each, Coverage(), p, noisy(noise), on=False), 16)) for each in (rest, moves)]
        for p, noise in ((0.125, 1e-6), (0.5, 0.1))
    )
    assert fine[0] < 0.1 * coarse[0]
    assert coarse[1] < fine[1]


def test_a_drift_that_becomes_less_is_expected_to():
    steady, slower = (
        promised(errors(balanced(replace(FIGURES, trend=t), HEARD, 0.2, noisy(1e-6)), 16)) for t in (1.0, 0.5)
    )
    assert slower < steady


def test_the_coming_round_goes_by_the_factor_that_the_memory_has():
    """g is fitted to one round and used in the next: after a change of the noise it is the old one for a round."""
    late = replace(FIGURES, fitted=0.0)
    first, second = errors(balanced(late, HEARD, 0.2, noisy(1e-6)), 2)
    assert first == pytest.approx(
        next(balanced(replace(FIGURES, fitted=1.0), HEARD, 0.2, noisy(1e-6))).error * 2.0 / 0.7, rel=1e-4
    )
    assert second < 0.5 * first


def test_drift_that_follows_the_errors_ends_with_them():
    """Where drift goes along with the error, what remembers most brings both down; where not, it stays what it is."""
    given, answered = (replace(FIGURES, drift=0.05, feedback=share, error=1.0) for share in (0.0, 1.0))
    for figures, ends in ((given, False), (answered, True)):
        played = errors(balanced(figures, HEARD, 0.5, noisy(1e-9)), 40)
        assert (played[-1] < 1e-3 * played[0]) == ends
    assert given.step(3, 0.5) == 1.0
    assert answered.step(3, 0.5) == 0.5


def test_shrunk_values_lack_what_least_squares_leave_and_are_worth_what_they_are():
    shrunk = FIGURES.shrunk(Coverage(Held(), Held(1.0, 0.0, 2.0, 1.0)))
    g = 2.0 / (2.0 + 2.0 + 0.1)
    assert shrunk.together().missing == pytest.approx((1 - g) ** 2 * 2.0 + g**2 * 2.0)
    assert shrunk.together().noise == 0.0
    assert FIGURES.own_part(shrunk) > 0.95
    assert shrunk.uniform(0.25, 1e-6).together().missing == pytest.approx(0.75 * shrunk.together().missing)


def test_differences_of_vectors_at_rest_have_less_noise_in_every_round():
    """All coordinates as differences to what is remembered: ω·q, and q is multiplied by ω/(1 + ω)."""
    rest, omega = replace(FIGURES, drift=0.0), 0.5
    found = errors(balanced(rest, HEARD, 1.0, Rounding(omega, None, 1.0 / (1.0 + omega))), 4)
    assert found == pytest.approx([omega * 0.5 / 3.0**t for t in range(4)])


def test_a_difference_to_what_was_never_heard_is_the_whole_vector():
    known = replace(FIGURES, energy=7.0)
    assert known.to_own(Held(1.0, 0.25, 0.5, 2.0)) == pytest.approx(0.75 * 0.7 + 0.25 * 7.0)
    assert next(balanced(known, Coverage(), 1.0, Rounding(0.5))).error == pytest.approx(3.5)


def test_both_classes_of_an_epoch_are_rounded_together():
    p, omega, moves = 0.25, 0.1, replace(FIGURES, energy=7.0)
    _, found = errors(epochs(moves, HEARD, p, Rounding(omega, None, 1.0 / (1.0 + omega)), on=False), 2)
    kept = omega / (1.0 + omega) * 0.7
    q_u, q_s = 0.5 + 0.1 * 3.0, kept + 0.1
    g = 2.0 / (2.0 + 0.5 + 0.1 * 2.0)
    of_u, of_s = ((1 - g) ** 2 * 2.0 + g**2 * q for q in (q_u, q_s))
    ratio = np.sqrt(of_u / of_s)
    pi_s = p / (ratio * 0.75 + 0.25)
    pi_u = ratio * pi_s
    noise = omega * (0.75 * pi_u * q_u + 0.25 * pi_s * q_s) / p
    later = 0.75 * ((1 / pi_u - 1) * of_u + noise / pi_u) + 0.25 * ((1 / pi_s - 1) * of_s + noise / pi_s)
    assert found == pytest.approx(later, rel=1e-9)
