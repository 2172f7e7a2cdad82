"""When epochs begin: what rounds that only begin epochs tell of the ratio, and what the errors are forecast to be."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec, theory
from sparsemean.sampling import Clock, clock
from sparsemean.sampling.clock import rest
from sparsemean.server.epoch_control import EpochControl
from sparsemean.server.epoch_forecast import Ages, Residuals, forecast
from sparsemean.server.local import LocalRounds
from sparsemean.simulation import play_round

DIM, NODES = 60, 6


def run_of(**settings: bool) -> sm.Run:
    encoder = sm.RandK(20, draw=sm.Epochs(**settings))
    return sm.Run(sm.Scheme(encoder, memory=sm.PerNode(), values="float64"), DIM, seed=3, blocks=[25, 35])


def test_repeats_are_the_squares_of_what_nodes_sent_in_the_last_round_too() -> None:
    """Against the coordinates of both rounds, node by node; equal vectors, so that every round begins an epoch."""
    run, rng = run_of(), np.random.default_rng(0)
    server, weights = sm.Server(run), rng.uniform(1, 2, size=(NODES, 2))
    weights[0, 1] = 0.0
    clients, due, sent = [sm.Client(run, str(i)) for i in range(NODES)], np.zeros((4, 2)), dict[str, set[int]]()
    for round in range(3):
        x, plans = rng.normal(size=DIM), server.plans([client.node for client in clients])
        due[:] = 0
        for client, weight in zip(clients, weights, strict=True):
            plan = codec.unpack_plan(run, client.node, round, plans[client.node])
            assert plan.ratios == b""
            now = set(run.coordinates(client.node, round, plan=plan)[0].tolist())
            residual = np.repeat(weight, run.blocks) * (x - (server.expected(client.node) if round else 0.0))
            for j in now if round else ():
                block, again = int(j >= 25), j in sent[client.node]
                one = float(weight[block] > 0)
                due[:, block] += [residual[j] ** 2 * again, one * again, residual[j] ** 2, one]
            sent[client.node] = now
            server.accept(client.node, client.encode(x, round, plans[client.node]), weight)
        rounds = server._rounds
        assert isinstance(rounds, LocalRounds)
        assert rounds.summary().repeats[:, 0] == pytest.approx(due, rel=1e-12)
        server.close_round()
    assert due[1].sum() > 30


def test_the_ratio_is_learnt_while_every_round_begins_an_epoch() -> None:
    """Equal vectors that stay: what a node sent in the last round is known exactly."""
    server = sm.Server(run_of())
    clients = [sm.Client(server.run, str(i)) for i in range(NODES)]
    x = np.tile(np.random.default_rng(0).normal(size=DIM), (NODES, 1))
    for expected in (16, 160):
        play_round(server, clients, x, np.ones(NODES))
        roster = server._rounds.roster
        assert roster._closed_terms.ratios == b""
        assert roster._control is not None
        assert roster._control.ratio == expected


def test_a_ratio_that_has_become_wrong_is_given_up_at_once() -> None:
    """All vectors change in the second round of an epoch, which by λ = 10 sends one or two coordinates of S."""
    run = sm.Run(
        sm.Scheme(sm.RandK(20, draw=sm.Epochs(restart=False)), memory=sm.PerNode(), values="float64"), 200, seed=3
    )
    server, rng = sm.Server(run), np.random.default_rng(0)
    clients, roster = [sm.Client(run, str(i)) for i in range(20)], server._rounds.roster
    control, x = roster._control, rng.normal(size=(20, 200))
    assert control is not None
    while server.round < 10 or roster._closed_terms.ratios or control.ratio < 160:
        play_round(server, clients, x, np.ones(20))
        assert server.round < 60
    play_round(server, clients, rng.normal(size=(20, 200)), np.ones(20))
    assert roster._closed_terms.ratios == bytes([160])
    assert control.ratio < 32


def slow_ages(now: Clock, ratio: int, seed: int) -> list[tuple[float, float]]:
    """Ages of single coordinates, drawn round by round as nodes draw them, from the epoch's first round on."""
    rng, found = np.random.default_rng(seed), []
    age, waits = np.full(now.dim, now.dim / now.k), np.ones(now.dim, bool)
    first = rng.permutation(now.dim)[: now.k]
    age[first], waits[first] = 0.0, False
    for then in rest(now, ratio):
        age += 1
        found.append((age[waits].mean(), age[~waits].mean()))
        u = rng.permutation(np.flatnonzero(waits))[: then.scheduled[-1]]
        s = rng.permutation(np.flatnonzero(~waits))[: then.k - then.scheduled[-1]]
        age[u], age[s], waits[u] = 0.0, 0.0, False
    return found


def test_ages_are_those_of_coordinates_that_are_followed_one_by_one() -> None:
    now, ages, trials = clock(DIM, 12, b""), Ages(math.nan, math.nan), 300
    twin = np.array([slow_ages(now, 48, seed) for seed in range(trials)])
    for then, mean, spread in zip(rest(now, 48), twin.mean(axis=0), twin.std(axis=0), strict=True):
        ages, now = ages.after(now), then
        assert np.all(np.abs(np.array(ages) - mean) <= 4.5 * spread / math.sqrt(trials) + 1e-9)


def test_where_age_does_not_matter_both_errors_are_those_of_plain_and_balanced_draws() -> None:
    """All residuals alike in size: λ = 1 draws as if there were no epoch, but for the last round, which sends all."""
    now, n, p = clock(6000, 600, b""), 10, 0.1
    fresh, going = forecast(now, 16, Residuals(2.0, 2.0, n), correlation=4.5)
    assert going == pytest.approx((1 / p - 1) * n * 6000 * 2.0, rel=1e-2)
    assert fresh == pytest.approx((1 / p - 1 + theory.CountLaw(n, p, n).pair_excess * 4.5) * n * 6000 * 2.0)
    assert fresh == pytest.approx(0.5 * going, rel=1e-2)  # R1 − R2/(n − 1)


def test_what_is_known_exactly_is_taken_to_stay_so() -> None:
    """Vectors at rest: what U has does not grow, and what is sent is known from then on."""
    now = clock(6000, 600, b"")
    fresh, going = forecast(now, 160, Residuals(2.0, 0.0, 10), correlation=0.0)
    left = [(then.unscheduled, *then.probabilities[0]) for then in rest(now, 160)]
    assert going == pytest.approx(np.mean([10 * 2.0 * u * (of / sent - 1) for u, sent, of in left]))
    assert fresh == pytest.approx(9 * 10 * 6000 * 2.0)


@pytest.mark.parametrize(("of_s", "correlation", "fresh_wins"), [(0.0, 0.0, False), (0.0, 8.0, True), (1.0, 1.0, True)])
def test_an_epoch_pays_where_what_was_sent_is_known_and_nodes_are_not_alike(
    of_s: float, correlation: float, fresh_wins: bool
) -> None:
    fresh, going = forecast(clock(6000, 600, b""), 160 if of_s == 0 else 16, Residuals(1.0, of_s, 10), correlation)
    assert (fresh < going) == fresh_wins


def test_the_state_of_earlier_versions_is_read() -> None:
    control = EpochControl(run_of())
    control.restore({"control": np.array([40.0, 1.0, 2.5, 3.0, 32.0, 0.0])}, "control")
    assert (control.ratio, control.restart) == (40, True)
    again = EpochControl(run_of())
    again.restore({"control": control.state()}, "control")
    assert np.array_equal(np.asarray(again.state()), np.asarray(control.state()))
    with pytest.raises(ValueError, match="out of range"):
        again.restore({"control": np.array([8.0, 0.0, 0.0])}, "control")
