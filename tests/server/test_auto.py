"""Auto: what the server chooses from round to round, and that all it does stays right whatever it chooses."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean._names import Knowledge
from sparsemean.sampling import Plan
from sparsemean.server.local import LocalRounds
from sparsemean.server.option_control import OptionControl, Why
from sparsemean.simulation import play_round

Z = 5.0


def drifting(rounds: int, nodes: int, dim: int, change: float, alike: float, seed: int = 0) -> np.ndarray:
    """Unit variances; nodes have ``alike`` in common, and keep 1 − ``change`` of their energy from round to round."""
    rng = np.random.default_rng(seed)
    common, own = np.sqrt(alike) * rng.normal(size=(1, dim)), np.sqrt(1 - alike) * rng.normal(size=(nodes, dim))
    vectors = np.empty((rounds, nodes, dim))
    for t in range(rounds):
        vectors[t] = common + own
        common = np.sqrt(1 - change) * common + np.sqrt(change * alike) * rng.normal(size=(1, dim))
        own = np.sqrt(1 - change) * own + np.sqrt(change * (1 - alike)) * rng.normal(size=(nodes, dim))
    return vectors


def relative_errors(estimates: list[sm.Estimate], vectors: np.ndarray) -> list[float]:
    return [
        float(np.sum((estimate.mean - batch.mean(axis=0)) ** 2) / max(np.mean(np.sum(batch**2, axis=1)), 1e-300))
        for estimate, batch in zip(estimates, vectors, strict=True)
    ]


def why(server: sm.Server) -> Why:
    found = server.why()
    assert found is not None
    return found


class Played:
    """A server of an auto run, its clients, and what came of every round."""

    def __init__(self, vectors: np.ndarray, room: int, node: Knowledge = "stateless", **options) -> None:
        self.run = sm.Run(sm.named("auto", bytes=room, node=node), vectors.shape[2], options.pop("seed", 0))
        self.server = sm.Server(self.run, **options)
        self.clients = [sm.Client(self.run, str(i)) for i in range(vectors.shape[1])]
        self.values: list[str] = []
        self.estimates: list[sm.Estimate] = []
        for batch in vectors:
            self.play(batch)
        self.errors = relative_errors(self.estimates, vectors)

    def play(self, batch: np.ndarray) -> None:
        self.values.append(why(self.server).values)
        self.estimates.append(play_round(self.server, self.clients, batch, np.ones(len(batch))))


def fixed(vectors: np.ndarray, scheme: sm.Scheme) -> list[float]:
    return relative_errors(sm.simulate(sm.Run(scheme, vectors.shape[2]), vectors), vectors)


def geometric(errors) -> float:
    return float(np.exp(np.mean(np.log(errors))))


ROOM = 64 + 512 + 4  # a bit for each of 4,096 coordinates


def test_vectors_that_are_not_alike_are_sent_whole():
    vectors = drifting(6, 10, 4096, 1.0, 0.0)
    played = Played(vectors, ROOM)
    assert played.values == ["eden-1"] * 6
    whole = fixed(vectors, sm.Scheme(sm.Identity(), values="eden-1"))
    assert geometric(played.errors) < 1.1 * geometric(whole)


def test_of_nodes_that_are_alike_a_share_is_sent_with_more_bits():
    vectors = drifting(6, 10, 4096, 1.0, 0.99)
    played = Played(vectors, ROOM)
    whole = fixed(vectors, sm.Scheme(sm.Identity(), values="eden-1"))
    share = fixed(vectors, sm.Run.for_bytes("rand-k-balanced", 4096, ROOM, values="eden-6").scheme)
    assert geometric(played.errors[1:]) < 0.25 * geometric(whole[1:])
    assert geometric(played.errors[1:]) < 1.1 * geometric(share[1:])


def test_vectors_at_rest_come_to_be_known():
    vectors = np.repeat(drifting(1, 10, 1024, 0.0, 0.3), 40, axis=0)
    played = Played(vectors, 64 + 128 + 4)
    best = fixed(vectors, sm.Run.for_bytes("rand-k-epochs-hybrid", 1024, 64 + 132, values="float16").scheme)
    assert played.errors[-1] < 1e-3 * played.errors[0]
    assert played.errors[-1] < 1.5 * best[-1]


def test_an_abrupt_change_is_answered_in_the_next_round():
    rest = drifting(1, 10, 2048, 0.0, 0.3)
    other = drifting(1, 10, 2048, 0.0, 0.3, seed=1)
    vectors = np.concatenate([np.repeat(rest, 16, axis=0), np.repeat(other, 3, axis=0)])
    played = Played(vectors, 64 + 256 + 4)
    whole = fixed(other, sm.Scheme(sm.Identity(), values="eden-1"))
    assert played.errors[15] < 0.1 * whole[0]
    assert played.errors[17] < 2 * whole[0]
    assert played.errors[18] < 4 * whole[0]  # where a new epoch begins with the little that is known


@pytest.mark.parametrize("lasting", [True, False], ids=["a part that stays", "a walk"])
def test_where_a_round_changes_more_than_there_is_nothing_is_remembered(lasting):
    """Vectors differ from those before by 1.44 times their energy, as the updates of a federated network may."""
    rng = np.random.default_rng(0)
    stays = rng.normal(size=(8, 2048))
    vectors = [stays]
    for _ in range(7):
        fresh = rng.normal(size=stays.shape)
        vectors.append(np.sqrt(0.28) * stays + np.sqrt(0.72) * fresh if lasting else 0.28 * vectors[-1] + 0.96 * fresh)
    played = Played(np.array(vectors), 64 + 410 + 4)
    assert played.values == ["eden-1.5625"] * 8  # of all coordinates, so that no epochs are on


def followed(scheme: sm.Scheme, rounds: int = 24) -> list[float]:
    """Nodes that move by half of what the broadcast mean is off: their drift is the error of the estimates."""
    rng, dim, n = np.random.default_rng(0), 1024, 10
    at_rest, run = rng.normal(size=(1, dim)) + rng.normal(size=(n, dim)), sm.Run(scheme, dim)
    server, clients = sm.Server(run), [sm.Client(run, str(i)) for i in range(n)]
    errors, off = [], np.zeros(dim)
    for _ in range(rounds):
        vectors = (at_rest + 0.5 * off * rng.choice([-1.0, 1.0], size=(n, 1))).astype(np.float32)
        off = play_round(server, clients, vectors, np.ones(n)).mean - vectors.mean(axis=0)
        errors.append(float(off @ off))
    return errors


def test_nodes_that_follow_the_broadcast_mean_come_to_rest_with_it():
    room = 64 + 256 + 4  # two bits a coordinate
    found = followed(sm.named("auto", bytes=room))
    best = followed(sm.Run.for_bytes("rand-k-epochs-hybrid", 1024, room, values="int8").scheme)
    assert geometric(found[-3:]) < 1.5 * geometric(best[-3:])
    assert geometric(found[1:]) < geometric(best[1:])


@pytest.mark.parametrize("node", ["stateless", "stateful"])
def test_every_estimate_is_unbiased_whatever_was_chosen(node):
    """Over seeds, in rounds with several options: every coordinate's deviation, and all of them together."""
    vectors = drifting(5, 4, 40, 0.05, 0.6)
    seeds, truth = 60, vectors.mean(axis=1)
    every = [Played(vectors, 75, node, seed=seed) for seed in range(seeds)]
    assert len({values for played in every for values in played.values}) >= 3
    off = np.array([[estimate.mean for estimate in played.estimates] for played in every]) - truth
    z = off.mean(axis=0) / (off.std(axis=0) / np.sqrt(seeds))
    assert np.abs(z).max() < Z
    assert abs(z.sum()) / np.sqrt(z.size) < Z


def test_the_server_states_the_error_of_what_it_chose():
    vectors = drifting(4, 10, 600, 0.02, 0.5)
    ratios = []
    for seed in range(25):
        played = Played(vectors, 64 + 75 + 4, seed=seed)
        for estimate, batch in zip(played.estimates, vectors, strict=True):
            assert estimate.error is not None
            ratios.append((np.sum((estimate.mean - batch.mean(axis=0)) ** 2), estimate.error))
    measured, stated = np.array(ratios).reshape(25, 4, 2).sum(axis=1).T
    difference = measured - stated
    assert abs(difference.mean()) < Z * difference.std() / np.sqrt(25)


def test_payloads_keep_the_budget_and_follow_the_plan_alone():
    vectors = drifting(3, 5, 300, 0.02, 0.5)
    played = Played(vectors, 120)
    server, client = played.server, played.clients[0]
    plans, before = server.plans([each.node for each in played.clients]), server.digest()
    right = codec.unpack_plan(played.run, client.node, server.round, plans[client.node])
    blob = client.encode(vectors[0, 0], server.round, plans[client.node])
    assert len(blob) <= 120
    assert len(plans[client.node]) in range(15, 40)
    for number, option in enumerate(played.run.options):
        if number != right.option:
            began = None if option.epochs is None else server.round
            other = Plan(right.slot, right.slots, began, option=number)
            told = codec.pack_plan(played.run, client.node, server.round, other)
            with pytest.raises(sm.WrongPlan, match="follows another plan"):
                server.accept(client.node, client.encode(vectors[0, 0], server.round, told))
    with pytest.raises(sm.InvalidInput, match="needs a plan"):
        client.encode(vectors[0, 0], server.round)
    for wrong in (b"", b"\4", b"\4\xff" + plans[client.node][2:], plans[client.node][:-1], plans[client.node][2:]):
        with pytest.raises(sm.InvalidInput):
            client.encode(vectors[0, 0], server.round, wrong)
    fixed_run = sm.Run(server.open_run.scheme, 300, nodes=[client.node])
    with pytest.raises(sm.ForeignPayload):
        server.accept(client.node, sm.Client(fixed_run, client.node).encode(vectors[0, 0], server.round))
    assert server.digest() == before
    assert server.accept(client.node, blob) == server.accept(client.node, blob)


@pytest.mark.parametrize("node", ["stateless", "broadcast", "stateful"])
def test_a_journal_goes_on_to_the_bit(tmp_path, node):
    """Reopened after every round, with a round open: the same choices, estimates and digests as without."""
    vectors = drifting(12, 5, 200, 0.02, 0.5)
    whole = Played(vectors, 100, node)
    run, estimates = whole.run, []
    nodes_kept = {client.node: sm.Client(run, client.node) for client in whole.clients if node == "stateful"}
    seen: list[str] = []
    for t, batch in enumerate(vectors):
        with sm.Server(run, journal=tmp_path / "j") as server:
            assert server.round == t
            nodes = [client.node for client in whole.clients]
            plans, seen = server.plans(nodes), [*seen, why(server).values]
            blobs = {
                n: (nodes_kept.get(n) or sm.Client(run, n)).encode(x, t, plans[n], server.reference)
                for n, x in zip(nodes, batch, strict=True)
            }
            for each in nodes[:2]:
                server.accept(each, blobs[each])
            digest = server.digest()
        with sm.Server(run, journal=tmp_path / "j") as server:
            assert (server.digest(), server.plans(nodes), why(server).values) == (digest, plans, seen[-1])
            for each in nodes:  # two of them again
                receipt = server.accept(each, blobs[each])
                if each in nodes_kept:
                    nodes_kept[each].delivered(receipt)
            estimates.append(server.close_round())
            if t > 0:  # of the last round, by its own option
                assert server.accept(nodes[0], blobs[nodes[0]]).round == t
    assert seen == whole.values
    assert len(set(seen)) > 1
    for one, other in zip(estimates, whole.estimates, strict=True):
        assert np.array_equal(one.mean, other.mean)
        assert one.error == other.error


def test_coarse_values_are_shrunk_where_finer_ones_have_come_since_and_a_journal_knows(tmp_path):
    """One and a half bits of everything, a share of it with more bits, and then differences, in epochs."""
    rng, nodes, dim = np.random.default_rng(0), 12, 512
    vectors = np.sqrt(0.88) * rng.normal(size=(1, dim)) + np.sqrt(0.12) * rng.normal(size=(nodes, dim))
    run = sm.Run(sm.named("auto", bytes=64 + 96 + 4, node="broadcast"), dim)
    plain, clients, errors = sm.Server(run), [sm.Client(run, str(i)) for i in range(nodes)], []
    for _ in range(12):
        with sm.Server(run, journal=tmp_path / "j") as server:
            assert server.digest() == plain.digest()
            for each in (server, plain):
                estimate = play_round(each, clients, vectors, np.ones(nodes))
            errors.append(np.sum((estimate.mean - vectors.mean(axis=0)) ** 2))
    assert "Relative" in why(plain).encoder
    assert errors[-1] < 5e-3 * errors[0]  # 3e-2 times, if they are kept as they came


def test_a_server_killed_when_it_has_just_turned_to_epochs_is_the_same(tmp_path):
    run = sm.Run(sm.named("auto", bytes=76), 24, nodes=["a", "b"])
    plain = sm.Server(run)
    with sm.Server(run, journal=tmp_path / "j") as server:
        for t in range(6):
            for each in (plain, server):
                each.accept("a", sm.Client(run, "a").encode(np.arange(24.0), t, each.plan("a")))
                each.close_round()
            with sm.Server(run, journal=shutil.copytree(tmp_path / "j", tmp_path / f"copy-{t}")) as again:
                assert again.digest() == plain.digest()
    assert "Epochs" in why(plain).encoder


def test_nodes_that_hear_the_broadcast_gain_by_it():
    """Nodes that are alike and move together: the difference to the last mean has little energy."""
    vectors = drifting(20, 10, 2048, 0.001, 0.95)
    alone, hears = (Played(vectors, 64 + 256 + 4, node) for node in ("stateless", "broadcast"))
    assert geometric(hears.errors[2:]) < 0.5 * geometric(alone.errors[2:])


def test_nodes_that_keep_state_do_as_well_as_differences_and_better_where_nodes_are_alike():
    room = 64 + 256 + 4
    whole = sm.Scheme(sm.Difference(sm.Identity()), memory=sm.Offset(), values="eden-1")
    for change, alike, better in ((0.01, 0.0, 1.1), (1.0, 0.99, 0.2)):
        vectors = drifting(12, 10, 2048, change, alike)
        played = Played(vectors, room, "stateful")
        assert geometric(played.errors[1:]) < better * geometric(fixed(vectors, whole)[1:])
        assert geometric(played.errors[3:]) < 1.1 * geometric(Played(vectors, room).errors[3:])


def test_nodes_that_keep_state_have_what_the_server_remembers_whatever_is_chosen():
    """Options with and without differences, balanced and in epochs; absent nodes; weights of 0 in a block."""
    run = sm.Run(sm.named("auto", bytes=140, node="stateful"), 600, blocks=(200, 400))
    server, clients = sm.Server(run), [sm.Client(run, str(i)) for i in range(4)]
    rng, chosen = np.random.default_rng(0), set()
    rounds, rest = server._rounds, drifting(1, 4, 600, 0.0, 0.9)[0]
    assert isinstance(rounds, LocalRounds)
    for t in range(16):
        batch = rest if t < 5 or t > 12 else drifting(1, 4, 600, 0.0, 0.99, seed=t)[0]
        chosen.add(why(server).encoder)
        plans = server.plans([client.node for client in clients])
        for i, client in enumerate(clients):
            if i == 0 or rng.random() < 0.8:
                weight = [1.0, 0.0 if i == 2 else 2.0]
                blob = client.encode(batch[i], t, plans[client.node])
                client.delivered(server.accept(client.node, blob, weight))
        server.close_round()
        for client in clients:
            _, last, _ = rounds.estimator.memory.last_heard(client.node, np.arange(600))
            np.testing.assert_array_equal(client._state["last"], last)
    assert any("factor=0" in each for each in chosen)
    assert any("factor=1" in each for each in chosen)


@pytest.mark.parametrize(
    "vectors",
    [
        np.zeros((6, 3, 40)),
        np.full((6, 3, 40), 1e30),
        np.repeat(np.arange(40.0)[None], 18, axis=0).reshape(6, 3, 40),
        np.eye(18, 40).reshape(6, 3, 40) * 1e-30,
        np.random.default_rng(0).standard_cauchy(size=(6, 3, 40)),
        np.random.default_rng(0).normal(size=(6, 1, 40)),
    ],
    ids=["zero", "huge", "equal", "tiny spikes", "heavy tails", "one node"],
)
@pytest.mark.parametrize(("room", "node"), [(68, "stateless"), (75, "stateful"), (110, "stateless"), (110, "stateful")])
def test_any_vectors_have_a_finite_estimate(vectors, room, node):
    played = Played(vectors, room, node)
    assert all(np.isfinite(estimate.mean).all() for estimate in played.estimates)


def test_absent_nodes_weights_blocks_and_skipped_rounds():
    run = sm.Run(sm.named("auto", bytes=90), 60, blocks=(20, 40))
    rng, truth = np.random.default_rng(0), drifting(12, 6, 60, 0.01, 0.5)
    server = sm.Server(run, missing="carry", memory_bytes=1 << 22)
    clients = [sm.Client(run, str(i)) for i in range(6)]
    for t, batch in enumerate(truth):
        present = [i for i in range(6) if rng.random() < 0.7] or [0]
        plans = server.plans([str(i) for i in present])
        for i in present:
            weight = [1.0 + i, 0.0 if i == 2 else 2.0]
            server.accept(str(i), clients[i].encode(batch[i], t, plans[str(i)]), weight)
        late = next((i for i in range(6) if i not in present), None)
        if late is not None:
            server.accept(str(late), clients[late].encode(batch[late], t, server.plan(str(late))))
        if t == 5:
            server.skip_round()
        else:
            assert np.isfinite(server.close_round().mean).all()
    assert server.round == 12


def test_it_says_why():
    played = Played(drifting(3, 5, 300, 0.02, 0.5), 120)
    found = why(played.server)
    assert found.values in str(found)
    assert "promises a squared error of" in str(found)
    assert [error for _, error in found.others] == sorted(error for _, error in found.others)
    assert found.nodes == 5
    assert "first round" in str(sm.Server(played.run).why())


def test_it_says_which_others_it_left_and_why_a_better_one_is_among_them():
    options = (("Identity() eden-2", 0.95), ("RandK(k=9) int16", 1.0), ("RandK(k=8) float32", 2.0))
    found = Why("RandK(k=9)", "int16", 1.0, options, 5, 9.0, 3.0, 0.5, 0.01)
    told = "Best of the others: Identity() eden-2 0.95; RandK(k=8) float32 2 (no tenth better, so the choice stays)"
    assert str(found).endswith(told)
    assert "stays" not in str(Why("Identity()", "eden-2", 0.95, options, 5, 9.0, 3.0, 0.5, 0.01))


def test_there_is_nothing_to_say_of_a_fixed_scheme():
    assert sm.Server(sm.Run(sm.named("rand-k", k=2), 4)).why() is None


def test_ranges_and_ranks_refuse_it():
    pytest.importorskip("ray")
    pytest.importorskip("torch")
    from sparsemean.integrations.ray.ranges import Sharding
    from sparsemean.integrations.torch_ddp.compatibility import check_scheme

    scheme = sm.named("auto", bytes=300)
    with pytest.raises(sm.InvalidInput, match="chosen by what whole vectors show"):
        Sharding(sm.Run(scheme, 10_000), 2, "drop", 0, 1 << 20, None, True, None)
    with pytest.raises(sm.IncompatibleScheme, match="serves RandK and Identity"):
        check_scheme(scheme)


def test_a_journal_of_the_last_release_opens():
    """Its state had seven figures, four numbers of the drift and four of each class of the memory."""
    played = Played(drifting(4, 5, 300, 0.02, 0.5), 120)
    control, again = (OptionControl(played.run) for _ in range(2))
    options = played.server._rounds.roster._options
    assert options is not None
    state: Any = options.state()
    control.restore(state)
    found: Any = control.state()
    assert found.keys() == state.keys()
    old = {name: value for name, value in state.items() if name != "memory_has"}
    old["drift"] = np.array([*state["drift"][:3], 0.0])
    old["memory"], old["figures"], old["levels"] = state["memory"][:, :4], state["figures"][:7], state["levels"][:2]
    again.restore(old)
    assert again.why == control.why
    again.decide()
    assert np.isfinite(again.why.expected)
