"""What is learnt of drift: how fast nodes change, whether errors are the cause, and what noise hides."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemean.server.drift import UNTOLD, Drift


def learnt(drifts, errors) -> Drift:
    """After rounds in which nodes moved so, each after an estimate with this error."""
    drift = Drift()
    for moved, error in zip(drifts, errors, strict=True):
        drift.erred(error, 1.0)
        drift.learn(moved, 1e-9, 0.0, 1.0, 1.0)
    return drift


def test_drift_that_goes_along_with_errors_is_told_from_drift_that_does_not():
    errors = 0.7 ** np.arange(10)
    assert learnt(3.0 * errors, errors).feedback == pytest.approx(1.0, abs=0.05)
    assert learnt(np.full(10, 3.0), errors).feedback == pytest.approx(0.0, abs=0.05)
    assert learnt(np.full(10, 3.0), np.ones(10)).feedback == UNTOLD


def test_a_trend_is_what_errors_do_not_explain_and_only_as_far_as_it_is_certain():
    falling = 0.8 ** np.arange(12)
    assert learnt(falling, np.ones(12)).trend == pytest.approx(0.8, abs=0.05)
    assert learnt(falling, falling).trend == pytest.approx(1.0, abs=0.05)
    bursts = np.where(np.arange(12) % 2, 1.0, 4.0) * 0.98 ** np.arange(12)
    assert learnt(bursts, np.ones(12)).trend == 1.0


def test_drift_below_the_noise_is_a_standard_deviation_which_rounds_make_smaller():
    drift, rng = Drift(), np.random.default_rng(0)
    found = []
    for _ in range(12):
        drift.learn(rng.normal() * 0.5, 0.5, 0.0, 1.0, 0.2)
        assert not drift.seen
        found.append(drift.now)
    assert found[0] == 0.5
    assert found[-1] < 0.25
    drift.learn(3.0, 0.5, 0.0, 1.0, 0.2)
    assert drift.seen
    assert drift.now == 3.0


def test_drift_that_a_round_does_not_show_is_seen_in_many():
    drift = Drift()
    for _ in range(12):
        drift.learn(1.0, 0.5, 0.0, 1.0, 0.2)
    assert drift.seen
    assert drift.now == pytest.approx(1.0)


def test_one_abrupt_change_is_no_drift_and_a_second_one_is():
    drift = learnt(np.ones(4), np.ones(4))
    assert drift.learn(50.0, 1e-9, 0.0, 1.0, 1.0) == pytest.approx(49.0)
    assert drift.now == pytest.approx(1.0)
    assert drift.learn(50.0, 1e-9, 0.0, 1.0, 1.0) == 0.0
    assert drift.now == pytest.approx(50.0)


def test_what_cannot_be_seen_stays_what_it_was():
    drift = learnt(np.ones(4), np.ones(4))
    drift.learn(0.0, 1e-9, 5.0, 1.0, 1.0)
    assert drift.now == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_it_survives_any_scale_and_a_restart(scale):
    drift, again = Drift(), Drift()
    for moved in (0.0, 1.0, 3.0, 0.5, 100.0, 0.0):
        drift.erred(scale * moved, 2.0)
        drift.learn(scale * moved, scale * moved / 10, 0.0, 2.0, 0.5)
    assert np.isfinite([drift.now, drift.trend, drift.feedback]).all()
    again.restore({"drift": drift.state()}, "drift")
    assert vars(again) == vars(drift)


def test_journals_of_the_last_release_have_three_numbers_of_it():
    drift = Drift()
    drift.restore({"drift": np.array([2.0, 1.0, -0.1, 1.0])}, "drift")
    assert drift.now == 2.0
    assert 0.5 < drift.trend < 1.0
    assert drift.feedback == UNTOLD
