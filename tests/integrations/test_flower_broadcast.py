"""Nodes of Flower that hear the broadcast: both sides know what the model changed by, to the bit, and never need to."""

# Flower's records hold unions of all they may hold, and a test knows which of them it put there.
# mypy: disable-error-code="union-attr, operator"
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean._names import Knowledge

pytest.importorskip("flwr", reason="the Flower integration needs flwr: pip install 'sparsemean[flower]'")

from flwr.app import Array, ArrayRecord, ConfigRecord
from flwr.clientapp import ClientApp
from flwr.serverapp import strategy as flower
from flwr.serverapp.strategy import FedAvg

from sparsemean.integrations.flower import SparseMean, sparsemean_mod
from sparsemean.integrations.flower.arrays import Parted
from sparsemean.integrations.flower.heard import KEPT

from .flower_in_process import NODES, InProcess, client_app, examples, fed, honest, model, trained
from .flower_in_process import server_identity as server_identity

WHOLE = sm.Scheme(sm.Relative(sm.Identity()), values="int8")
SHARE = sm.Scheme(sm.Relative(sm.RandK(0.5, draw=sm.Balanced())), memory=sm.Hybrid(), values="int4")
SCHEMES = {"whole": WHOLE, "share": SHARE, "auto": sm.named("auto", k=0.05, node="broadcast")}
NOBODY: set[int] = set()


class Watched(InProcess):
    """Notes the model of each round, and which reference each reply names."""

    def __init__(self, apps: Mapping[int, ClientApp | None]) -> None:
        super().__init__(apps)
        self.models: list[ArrayRecord] = []

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> Any:
        sent = list(messages)
        if not sent:  # nobody is asked to evaluate
            return []
        self.models.append(sent[0].content["arrays"])
        return super().send_and_receive(sent, timeout=timeout)

    def change(self, at: int) -> np.ndarray:
        """What the model of this round differs by from that of the one before."""
        now, before = (Parted(self.models[i]).start.astype(np.float32) for i in (at, at - 1))
        return now - before

    def names(self, at: int) -> dict[int, int]:
        """The tag of the reference in the reply of each node."""
        found = {}
        for reply in self.replies[at]:
            blob = reply.content["arrays"]["sparsemean"].data
            found[reply.metadata.src_node_id] = int.from_bytes(blob[56:60], "little")
        return found

    def assert_heard(self, at: int, without: set[int] = NOBODY) -> None:
        """All but these sent the difference to what the model had changed by."""
        tag = codec.reference_tag(self.change(at)) if at else 0
        assert self.names(at) == {reply.metadata.src_node_id: tag for reply in self.replies[at]} | dict.fromkeys(
            without, 0
        )


def quiet(kind: type[FedAvg] = FedAvg, **settings: Any) -> FedAvg:
    return fed(kind, fraction_evaluate=0.0, **settings)


INNERS = [
    (FedAvg, {}),
    (flower.FedAvgM, {"server_momentum": 0.9, "server_learning_rate": 0.5}),
    (flower.FedAdam, {"beta_1": 0.9, "beta_2": 0.99}),
]


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize(("kind", "settings"), INNERS)
def test_both_sides_have_the_same_reference_whatever_the_inner_strategy_makes_of_the_mean(kind, settings, name):
    """And all is as by a Client and a Server that are told it, so unbiased as they are."""
    scheme = SCHEMES[name]
    grid, strategy = Watched(honest()), SparseMean(quiet(kind, **settings), scheme, seed=5)
    before = arrays = model()
    parted = Parted(arrays)
    run = sm.Run(scheme, parted.layers.dim, 5, parted.layers.blocks)
    by_hand = sm.Server(run)
    for at in range(4):
        messages = list(strategy.configure_train(at + 1, arrays, ConfigRecord(), grid))
        if at:
            by_hand.refer_to(Parted(arrays).start.astype(np.float32) - Parted(before).start.astype(np.float32))
        assert np.array_equal(np.array(strategy.server.reference), np.array(by_hand.reference))
        plans = by_hand.plans([str(node) for node in NODES])
        replies = {reply.metadata.src_node_id: reply for reply in grid.send_and_receive(messages)}
        for node in NODES:
            new = {each: Array(trained(node, each, array.numpy())) for each, array in arrays.items()}
            client = sm.Client(run, str(node))
            blob = client.encode(Parted(arrays).difference(new), at, plans[str(node)], by_hand.reference)
            assert replies[node].content["arrays"]["sparsemean"].data == blob
        for reply in replies.values():
            node = reply.metadata.src_node_id
            by_hand.accept(str(node), reply.content["arrays"]["sparsemean"].data, examples(node))
        made, _ = strategy.aggregate_train(at + 1, replies.values())
        assert made is not None
        before, arrays = arrays, made
        assert strategy.refused == {}
        assert np.array_equal(strategy.estimate.mean, by_hand.close_round().mean)
        if scheme is WHOLE:
            grid.assert_heard(at)


def failing(node: int, name: str, array: np.ndarray) -> np.ndarray:
    raise OSError("no data here")


ABSENT = {"does not answer": None, "fails": client_app(sparsemean_mod, step=failing)}


@pytest.mark.parametrize("why", ABSENT)
def test_a_node_that_was_absent_for_a_round_sends_without_a_reference_once(why):
    grid, strategy = Watched(honest()), SparseMean(quiet(), WHOLE)
    arrays = model()
    for at in range(4):
        grid.apps[12] = ABSENT[why] if at == 1 else honest()[12]
        arrays = strategy.start(grid, arrays, num_rounds=1).arrays
        assert set(strategy.estimate.nodes) == {str(node) for node in NODES} - ({"12"} if at == 1 else set())
        if at != 1:
            grid.assert_heard(at, without={12} if at == 2 else NOBODY)
    assert strategy.refused == {}


def test_a_restarted_node_sends_without_a_reference_once():
    grid, strategy = Watched(honest()), SparseMean(quiet(), WHOLE)
    arrays = model()
    for at in range(4):
        if at == 2:
            del grid.contexts[13]
        arrays = strategy.start(grid, arrays, num_rounds=1).arrays
        assert strategy.refused == {}
        grid.assert_heard(at, without={13} if at == 2 else NOBODY)


def test_a_node_that_is_asked_again_in_a_round_sends_without_a_reference():
    grid, strategy = Watched(honest()), SparseMean(quiet(), WHOLE)
    arrays = strategy.start(grid, model(), num_rounds=1).arrays
    messages = list(strategy.configure_train(2, arrays, ConfigRecord(), grid))
    grid.send_and_receive(messages)  # whose replies are lost
    replies = list(grid.send_and_receive(messages))
    strategy.aggregate_train(2, replies)
    assert strategy.refused == {}
    assert len(strategy.estimate.nodes) == 4
    grid.assert_heard(2, without=set(NODES))


@pytest.mark.parametrize("scheme", [WHOLE, SHARE], ids=["whole", "share"])
def test_a_process_that_goes_on_with_the_journal_has_the_reference_too(scheme, tmp_path):
    def played(grid: Watched, journal: Any, stops: list[int]) -> ArrayRecord:
        arrays = model()
        for rounds in stops:
            strategy = SparseMean(quiet(), scheme, journal=journal)
            arrays = strategy.start(grid, arrays, num_rounds=rounds).arrays
            assert strategy.refused == {}
            strategy.close()
        return arrays

    once, twice = Watched(honest()), Watched(honest())
    whole, halves = played(once, tmp_path / "one", [4]), played(twice, tmp_path / "two", [2, 2])
    for at in range(4):
        twice.assert_heard(at)
    for name, array in whole.items():  # Flower asks nodes in random order
        np.testing.assert_allclose(halves[name].numpy(), array.numpy(), rtol=1e-5, atol=1e-6)


def test_what_a_dead_process_told_holds_for_the_process_that_goes_on(tmp_path):
    """Killed while nodes train: their replies still count, and those that train anew send without a reference."""
    grid = Watched(honest())
    first = SparseMean(quiet(), SHARE, journal=tmp_path)
    arrays = first.start(grid, model(), num_rounds=1).arrays
    told = list(first.configure_train(2, arrays, ConfigRecord(), grid))
    first.close()
    second = SparseMean(quiet(), SHARE, journal=tmp_path)
    again = list(second.configure_train(1, arrays, ConfigRecord(), grid))
    tags = {message.content["config"]["sparsemean-reference"] for message in told + again}
    replies = list(grid.send_and_receive([message for message in told if message.metadata.dst_node_id in (11, 12)]))
    assert tags == set(grid.names(1).values()) == {codec.reference_tag(grid.change(1))}
    del grid.contexts[13]
    rest = list(grid.send_and_receive([message for message in again if message.metadata.dst_node_id in (13, 14)]))
    assert grid.names(2) == {13: 0, 14: tags.pop()}
    second.aggregate_train(1, [*replies, *rest])
    assert second.refused == {}
    assert len(second.estimate.nodes) == 4
    second.close()


def test_a_process_that_goes_on_from_another_model_is_sent_no_differences_for_a_round(tmp_path):
    grid = Watched(honest())
    first = SparseMean(quiet(), WHOLE, journal=tmp_path)
    first.start(grid, model(), num_rounds=2)
    first.close()
    second = SparseMean(quiet(), WHOLE, journal=tmp_path)
    second.start(grid, model(), num_rounds=2)  # the model of the beginning
    assert second.refused == {}
    grid.assert_heard(2, without=set(NODES))
    grid.assert_heard(3)
    second.close()


class Shifted(flower.FedAvg):
    """A strategy of the user's own around SparseMean, which changes the model before it is sent."""

    def __init__(self, wrapped: SparseMean) -> None:
        super().__init__(fraction_evaluate=0.0)
        self.wrapped = wrapped

    def configure_train(self, server_round: Any, arrays: Any, config: Any, grid: Any) -> Any:
        moved = {name: Array(array.numpy() + np.float32(0.01 * server_round)) for name, array in arrays.items()}
        return self.wrapped.configure_train(server_round, ArrayRecord(moved), config, grid)

    def aggregate_train(self, server_round: Any, replies: Any) -> Any:
        return self.wrapped.aggregate_train(server_round, replies)


def test_the_reference_goes_by_the_models_that_were_sent():
    grid, ours = Watched(honest()), SparseMean(quiet(), WHOLE)
    Shifted(ours).start(grid, model(), num_rounds=3)
    assert ours.refused == {}
    for at in range(3):
        grid.assert_heard(at)


def test_after_a_round_in_which_no_reply_counted_the_model_has_not_changed():
    grid, strategy = Watched(honest()), SparseMean(quiet(), WHOLE)
    arrays = strategy.start(grid, model(), num_rounds=1).arrays
    list(grid.send_and_receive(strategy.configure_train(2, arrays, ConfigRecord(), grid)))
    strategy.aggregate_train(2, [])
    list(grid.send_and_receive(messages := list(strategy.configure_train(3, arrays, ConfigRecord(), grid))))
    assert not strategy.server.reference.any()
    grid.assert_heard(2)
    strategy.aggregate_train(3, grid.replies[2])
    assert (strategy.refused, len(messages)) == ({}, 4)


def test_a_node_keeps_the_part_of_the_model_that_is_compressed_and_only_where_it_is_asked_to():
    grid = Watched(honest())
    strategy = SparseMean(quiet(), WHOLE, whole=["*.bias"])
    strategy.start(grid, model(), num_rounds=2)
    sent = Parted(grid.models[1], ["*.bias"]).start
    for context in grid.contexts.values():
        (kept,) = context.state.array_records[KEPT].values()
        assert np.array_equal(kept.numpy(), sent)
    grid = Watched(honest())
    strategy = SparseMean(quiet(), sm.named("auto", k=0.05))
    messages = list(strategy.configure_train(1, model(), ConfigRecord(), grid))
    grid.send_and_receive(messages)
    assert all("sparsemean-reference" not in message.content["config"] for message in messages)
    assert all(not context.state for context in grid.contexts.values())


def steady(sums: list[np.ndarray]) -> dict[int, ClientApp | None]:
    """Nodes whose updates are alike and turn slowly; ``sums`` gets each one's update of the large array, weighted."""
    rngs = {node: np.random.default_rng(node) for node in NODES}
    ends = np.random.default_rng(0).normal(size=(2, 40, 30))
    rounds = dict.fromkeys(NODES, 0)

    def step(node: int, name: str, array: np.ndarray) -> np.ndarray:
        if name != "out.weight":
            return array
        angle, rounds[node] = 0.02 * rounds[node], rounds[node] + 1
        common = np.cos(angle) * ends[0] + np.sin(angle) * ends[1]
        moved: np.ndarray = (array + common + 0.05 * rngs[node].normal(size=array.shape)).astype(np.float32)
        sums.append(examples(node) * (moved - array).ravel().astype(np.float64))
        return moved

    return honest(step=step)


def errors(node: Knowledge, rounds: int) -> tuple[np.ndarray, sm.Server]:
    """Squared errors of the large array's mean update in each round."""
    sums: list[np.ndarray] = []
    strategy, arrays, found = SparseMean(quiet(), sm.named("auto", k=0.08, node=node), seed=2), model(), []
    grid = InProcess(steady(sums))
    for _ in range(rounds):
        sums.clear()
        arrays = strategy.start(grid, arrays, num_rounds=1).arrays
        assert strategy.refused == {}
        truth = np.sum(sums, axis=0) / sum(map(examples, NODES))
        found.append(np.sum((strategy.estimate.mean[: truth.size] - truth) ** 2))
    assert strategy.server is not None
    return np.array(found), strategy.server


def test_auto_sends_differences_where_updates_change_little_and_gains_by_it():
    plain, _ = errors("stateless", 12)
    heard, server = errors("broadcast", 12)
    assert "Relative" in server.why().encoder
    assert heard[6:].mean() < 0.2 * plain[6:].mean()  # 0.05 measured
