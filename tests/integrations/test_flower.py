"""SparseMean and its mod, with Flower's own apps, strategies and messages; the network is left out."""

# Flower's records hold unions of all they may hold, and a test knows which of them it put there.
# mypy: disable-error-code="union-attr, operator"
from __future__ import annotations

import logging
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean._names import SchemeName
from sparsemean.sampling import Plan

pytest.importorskip("flwr", reason="the Flower integration needs flwr: pip install 'sparsemean[flower]'")

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import LocalDpMod, adaptiveclipping_mod, fixedclipping_mod
from flwr.serverapp import strategy as flower
from flwr.serverapp.strategy import FedAvg

from sparsemean.integrations.flower import SparseMean, SparseMeanMod, sparsemean_mod
from sparsemean.integrations.flower.replies import failure

from .flower_in_process import NODES, InProcess, Next, Step, client_app, examples, fed, honest, model, trained, vector
from .flower_in_process import server_identity as server_identity

RANDK = sm.named("rand-k", k=0.25)


INNERS = [
    (FedAvg, {}),
    (flower.FedAvgM, {"server_momentum": 0.9, "server_learning_rate": 0.5}),
    (flower.FedProx, {"proximal_mu": 0.1}),
    (flower.FedAdagrad, {}),
    (flower.FedAdam, {"beta_1": 0.9, "beta_2": 0.99}),
    (flower.FedYogi, {"beta_1": 0.9, "beta_2": 0.99}),
]


@pytest.mark.parametrize(("kind", "settings"), INNERS)
def test_whole_vectors_give_what_the_inner_strategy_gives_alone(kind, settings):
    alone = fed(kind, **settings).start(InProcess({node: client_app() for node in NODES}), model(), num_rounds=3)
    strategy = SparseMean(fed(kind, **settings), sm.named("identity"))
    wrapped = strategy.start(InProcess(honest()), model(), num_rounds=3)
    assert list(wrapped.arrays) == list(alone.arrays)
    for name, array in alone.arrays.items():
        np.testing.assert_allclose(wrapped.arrays[name].numpy(), array.numpy(), rtol=1e-4, atol=1e-5)
        assert wrapped.arrays[name].dtype == model()[name].dtype  # FedAdam alone may widen them to float64
    for at in (1, 2, 3):
        shared = {k: v for k, v in wrapped.train_metrics_clientapp[at].items() if not k.startswith("sparsemean-")}
        assert shared == pytest.approx(dict(alone.train_metrics_clientapp[at]))
        assert wrapped.evaluate_metrics_clientapp[at] == alone.evaluate_metrics_clientapp[at] == {"accuracy": 0.5}


def test_few_coordinates_give_the_weighted_mean_without_bias():
    dense = fed().start(InProcess({node: client_app() for node in NODES}), model(3), num_rounds=1).arrays
    step, errors = vector(dense).astype(np.float64) - vector(model(3)), np.zeros((120, 98))
    for seed in range(120):
        made = SparseMean(fed(), RANDK, seed=seed).start(InProcess(honest()), model(3), num_rounds=1).arrays
        off = vector(made).astype(np.float64) - vector(dense)
        errors[seed] = [*off, off @ step]  # a step of another length shows along it
    z = errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / np.sqrt(len(errors)))
    assert np.abs(z).max() < 4.5  # of 98 numbers: beyond this by chance with probability 7e-4
    assert errors.std() > 1e-3


def test_metrics_tell_bytes_and_quality_of_the_replies():
    grid = InProcess(honest())
    strategy = SparseMean(fed(fraction_evaluate=0.0), RANDK, seed=3)
    metrics = strategy.start(grid, model(400), num_rounds=1).train_metrics_clientapp[1]
    sent = sum(record.count_bytes() for reply in grid.replies[0] for record in reply.content.values())
    payload = sm.Run(RANDK, 400 * 30 + 7).payload_bytes
    assert metrics["sparsemean-bytes-up"] == sent
    assert len(NODES) * payload < sent < len(NODES) * (payload + 60)
    assert 3.9 < metrics["sparsemean-compression"] < 4
    assert metrics["loss"] == pytest.approx(np.average(NODES, weights=[examples(node) for node in NODES]))
    assert metrics["sparsemean-nodes"] == 4
    assert metrics["sparsemean-ratio"] == strategy.estimate.correlation.ratio > 0
    truth = np.average(
        [
            np.concatenate([(trained(node, k, a.numpy()) - a.numpy()).ravel() for k, a in sorted(model(400).items())])
            for node in NODES
        ],
        axis=0,
        weights=[examples(node) for node in NODES],
    )
    # Layers put the large array first, the names are sorted within.
    truth = np.concatenate([truth[7:], truth[:7]])
    error = np.sum((strategy.estimate.mean - truth) ** 2)
    assert abs(error - metrics["sparsemean-error"]) < 0.1 * error


def test_a_stock_strategy_fails_on_payloads_instead_of_averaging_them():
    grid = InProcess(honest())
    SparseMean(fed(), RANDK).start(grid, model(), num_rounds=1)
    with pytest.raises(TypeError, match=r"sparsemean\.v1"):
        fed().aggregate_train(1, grid.replies[0])


def test_the_mod_leaves_other_strategies_and_evaluation_alone():
    arrays = fed().start(InProcess(honest()), model(), num_rounds=2).arrays
    plain = fed().start(InProcess({node: client_app() for node in NODES}), model(), num_rounds=2).arrays
    np.testing.assert_allclose(vector(arrays), vector(plain), atol=1e-6)  # Flower asks nodes in random order


Change = Callable[[Message, Message], None]


def tampering(change: Change) -> Callable[[Message, Context, Next], Message]:
    """A mod in front of ours that changes the finished reply."""

    def mod(message: Message, context: Context, call_next: Next) -> Message:
        reply = call_next(message, context)
        if "sparsemean-round" in message.content["config"]:
            change(message, reply)
        return reply

    return mod


def replaced(data: Callable[[bytes], bytes], name: str = "sparsemean") -> Change:
    def change(_: Message, reply: Message) -> None:
        arrays = dict(reply.content["arrays"])
        blob = data(arrays[name].data)
        reply.content["arrays"] = ArrayRecord({**arrays, name: Array("uint8", (len(blob),), "sparsemean.v1", blob)})

    return change


def encoded_by(run: Callable[[sm.Run], sm.Run], node: int = 12, later: int = 0, value: float = 1.0) -> Change:
    def change(message: Message, reply: Message) -> None:
        config = message.content["config"]
        made = run(sm.Run.from_json(str(config["sparsemean-run"])))
        client = sm.Client(made, str(node))
        blob = client.encode(np.full(made.dim, value), int(str(config["sparsemean-round"])) + later)
        replaced(lambda _: blob)(message, reply)

    return change


def with_metrics(**metrics) -> Change:
    def change(_: Message, reply: Message) -> None:
        reply.content["metrics"] = MetricRecord(metrics)

    return change


def second_record(_: Message, reply: Message) -> None:
    reply.content["more"] = reply.content["arrays"]


def no_metrics(_: Message, reply: Message) -> None:
    del reply.content["metrics"]


def infinite(blob: bytes) -> bytes:
    """A whole, undamaged frame whose values are infinite."""
    body = np.full((len(blob) - 64) // 4, np.inf, "<f4").tobytes()
    return blob[:60] + struct.pack("<I", zlib.crc32(blob[:60] + body)) + body


HOSTILE = {
    "garbage": (replaced(lambda blob: np.random.default_rng(1).bytes(len(blob))), "MalformedPayload"),
    "empty": (replaced(lambda _: b""), "MalformedPayload"),
    "cut off": (replaced(lambda blob: blob[:-1]), "MalformedPayload"),
    "a bit flipped": (replaced(lambda blob: blob[:-1] + bytes([blob[-1] ^ 1])), "MalformedPayload"),
    "infinite": (replaced(infinite), "NonFiniteValues"),
    "of a later round": (encoded_by(lambda run: run, later=1), "WrongRound"),
    "of another run": (encoded_by(lambda run: sm.Run(run.scheme, run.dim, 99, run.blocks)), "ForeignPayload"),
    "of another node": (encoded_by(lambda run: run, node=11), "ForeignPayload"),
    "without weight": (with_metrics(loss=1.0), "MalformedPayload"),
    "a list as weight": (with_metrics(loss=1.0, **{"num-examples": [1, 2]}), "MalformedPayload"),
    "NaN as weight": (with_metrics(loss=1.0, **{"num-examples": float("nan")}), "InvalidInput"),
    "a weight beyond all floats": (with_metrics(loss=1.0, **{"num-examples": 10**400}), "MalformedPayload"),
    "a weight beyond all sense": (with_metrics(loss=1.0, **{"num-examples": 10**300}), "InvalidInput"),
    "an infinite weight": (with_metrics(loss=1.0, **{"num-examples": float("inf")}), "InvalidInput"),
    "a metric beyond all floats": (with_metrics(loss=-(10**400), **{"num-examples": 1}), "MalformedPayload"),
    "a negative weight": (with_metrics(loss=1.0, **{"num-examples": -1}), "InvalidInput"),
    "other metrics": (with_metrics(oddity=1.0, **{"num-examples": 1}), "MalformedPayload"),
    "no metrics": (no_metrics, "MalformedPayload"),
    "two ArrayRecords": (second_record, "MalformedPayload"),
}


@pytest.fixture
def logged(caplog):
    """What SparseMean logs, whatever Flower does with its own logger."""
    logger = logging.getLogger("flwr.sparsemean")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


@pytest.mark.parametrize("what", HOSTILE)
def test_a_bad_reply_is_refused_by_name_and_the_round_goes_on(what, logged):
    change, error = HOSTILE[what]
    bad = client_app(tampering(change), sparsemean_mod)
    strategy = SparseMean(fed(), RANDK)
    result = strategy.start(InProcess({**honest(), 12: bad}), model(), num_rounds=2)
    assert strategy.refused.keys() == {"12"}
    assert strategy.refused["12"].startswith(error)
    assert "refused the reply of node 12" in logged.text
    assert result.train_metrics_clientapp[2]["sparsemean-refused"] == 1
    without = SparseMean(fed(), RANDK).start(InProcess(honest({11, 13, 14})), model(), num_rounds=2)
    np.testing.assert_allclose(vector(result.arrays), vector(without.arrays), rtol=1e-5, atol=1e-6)


def test_a_node_without_the_mod_is_told_what_it_lacks():
    strategy = SparseMean(fed(), RANDK)
    strategy.start(InProcess({**honest(), 12: client_app()}), model(), num_rounds=1)
    assert "mods=[sparsemean_mod]" in strategy.refused["12"]


def raising(node: int, name: str, array: np.ndarray) -> np.ndarray:
    raise OSError("Traceback:\n  line 7\nno data here\n")


FAILING: dict[str, tuple[Step, str]] = {
    "raises": (raising, "failed: no data here"),
    "becomes NaN": (lambda node, name, array: array * np.nan, "failed: InvalidInput: .*NaN.*"),
}


@pytest.mark.parametrize("what", FAILING)
def test_a_node_that_fails_is_refused_in_one_line_and_the_round_goes_on(what, logged):
    step, why = FAILING[what]
    strategy = SparseMean(fed(), RANDK)
    result = strategy.start(InProcess({**honest(), 12: client_app(sparsemean_mod, step=step)}), model(), num_rounds=1)
    assert strategy.refused.keys() == {"12"}
    assert re.fullmatch(why, strategy.refused["12"])
    assert strategy.missing == ()
    metrics = result.train_metrics_clientapp[1]
    assert [metrics[f"sparsemean-{name}"] for name in ("nodes", "refused", "missing")] == [3, 1, 0]
    lines = {record.getMessage() for record in logged.records if record.name == "flwr.sparsemean"}
    assert {line for line in lines if line.startswith("sparsemean: refused")} == {
        f"sparsemean: refused the reply of node 12: {strategy.refused['12']}"
    }
    assert not any("Traceback" in line for line in lines)
    assert np.isfinite(vector(result.arrays)).all()


def test_an_error_that_names_no_node_leaves_the_node_among_the_missing(logged):
    strategy = SparseMean(fed(), RANDK)
    grid = InProcess(honest())
    *messages, lost = strategy.configure_train(1, model(), ConfigRecord(), grid)
    superlink = Message(lost.content, 1, "train")
    gone = Message(Error(code=5, reason="gone"), reply_to=superlink)
    strategy.aggregate_train(1, [*grid.send_and_receive(messages), gone])
    assert strategy.missing == (str(lost.metadata.dst_node_id),)
    assert strategy.refused == {}
    assert "instead of a reply: gone" in logged.text


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        ("<class 'ray.exceptions.RayTaskError(ClientAppException)'>:<'Traceback\nin a line\nboom'>", "boom"),
        ("<class 'x.ClientAppException'>:<'\nException ClientAppException occurred. Message: boom'>", "boom"),
        ("<class 'MemoryError'>:<''>", "MemoryError"),
        ("x" * 5000, "x" * 200),
        ("\n", "no reason given"),
        (None, "no reason given"),
    ],
)
def test_a_failure_is_one_short_line(reason, line):
    assert failure(reason) == line


def test_where_no_reply_counts_the_arrays_stay_and_the_next_round_is_another(logged):
    garbage = client_app(tampering(HOSTILE["garbage"][0]), sparsemean_mod)
    grid = InProcess(dict.fromkeys(NODES, garbage))
    strategy = SparseMean(fed(fraction_evaluate=0.0), RANDK)
    seen = []
    result = strategy.start(grid, model(), num_rounds=2, evaluate_fn=lambda _, arrays: seen.append(arrays))
    assert all(arrays == model() for arrays in seen)
    assert result.train_metrics_clientapp[2]["sparsemean-nodes"] == 0
    assert strategy.server.round == 2
    assert "the arrays stay as they were in round 2: no reply counts" in logged.text
    assert "skip_round" not in logged.text
    grid.apps.update(honest())
    after = strategy.start(grid, model(), num_rounds=1)
    assert after.train_metrics_clientapp[1]["sparsemean-round"] == 2
    assert after.arrays != model()


def test_replies_without_any_weight_leave_the_arrays_as_they_were(logged):
    strategy = SparseMean(fed(), RANDK)
    seen = []
    grid = InProcess(honest(metrics={"num-examples": 0}))
    strategy.start(grid, model(), num_rounds=1, evaluate_fn=lambda _, arrays: seen.append(arrays))
    assert seen == [model(), model()]
    assert "the arrays stay as they were in round 1: all replies have num-examples 0" in logged.text


def test_absent_nodes_are_named_and_the_mean_is_of_those_who_came():
    strategy = SparseMean(fed(), RANDK)
    result = strategy.start(InProcess({**honest(), 13: None}), model(), num_rounds=1)
    assert strategy.missing == ("13",)
    assert result.train_metrics_clientapp[1]["sparsemean-missing"] == 1
    assert set(strategy.estimate.nodes) == {"11", "12", "14"}


def normed() -> ArrayRecord:
    arrays = {
        "norm.num_batches_tracked": np.array(5),
        "conv.weight": np.random.default_rng(2).normal(size=(50, 30)).astype(np.float32),
        "norm.running_var": np.full(30, 1e-3, np.float32),
        "mask": np.array([True, False, False]),
        "half": np.ones(4, np.float16),
    }
    return ArrayRecord({name: Array(array) for name, array in arrays.items()})


def counting(node: int, name: str, array: np.ndarray) -> np.ndarray:
    if name == "mask":
        return np.array([node == 11, node != 11, node == 14])
    return array + (node if array.dtype.kind == "i" else np.array(0.5 * node * 1e-3, array.dtype))


@pytest.mark.parametrize("inner", [FedAvg, flower.FedAdam])
def test_counters_and_running_variances_travel_whole(inner):
    grid = InProcess(honest(step=counting))
    result = SparseMean(fed(inner), sm.named("rand-k", k=0.01)).start(grid, normed(), num_rounds=2)
    made = result.arrays
    assert {name: array.dtype for name, array in made.items()} == {n: a.dtype for n, a in normed().items()}
    weights = [examples(node) for node in NODES]
    once = np.rint(5 + np.average(NODES, weights=weights))
    assert made["norm.num_batches_tracked"].numpy() == np.rint(once + np.average(NODES, weights=weights))
    assert made["mask"].numpy().tolist() == [False, True, False]  # by weight: 10, 90, 40 of 100
    if inner is FedAvg:
        exact = 1e-3 + 2 * 0.5e-3 * np.average(NODES, weights=weights)
        np.testing.assert_allclose(made["norm.running_var"].numpy(), exact, rtol=1e-5)


@pytest.mark.parametrize("data", [b"", b"\xff" * 131])
def test_broken_whole_arrays_are_refused(data):
    bad = client_app(tampering(replaced(lambda _: data, "sparsemean-whole")), sparsemean_mod, step=counting)
    strategy = SparseMean(fed(), RANDK)
    strategy.start(InProcess({**honest(step=counting), 12: bad}), normed(), num_rounds=1)
    assert strategy.refused.keys() == {"12"}


def test_whole_names_more_arrays_that_are_not_sampled():
    strategy = SparseMean(fed(), sm.named("rand-k", k=0.01), whole=["*.bias"])
    made = strategy.start(InProcess(honest()), model(), num_rounds=1).arrays
    dense = fed().start(InProcess({node: client_app() for node in NODES}), model(), num_rounds=1).arrays
    np.testing.assert_allclose(made["in.bias"].numpy(), dense["in.bias"].numpy(), rtol=1e-5)
    assert not np.allclose(made["out.weight"].numpy(), dense["out.weight"].numpy(), rtol=1e-2)


@pytest.mark.parametrize("name", ["error-feedback-top-k", "error-feedback-rand-k", "diana", "lag"])
def test_schemes_with_state_at_the_node_are_refused(name):
    with pytest.raises(sm.IncompatibleScheme, match="keeps state at the node"):
        SparseMean(fed(), sm.named(name, k=0.1))


def scheme_named(name: SchemeName) -> sm.Scheme:
    return sm.named(name, k=0.5, ratio=1.0) if name.endswith("opt") else sm.named(name, k=0.5)


@pytest.mark.parametrize("name", ["auto", *(name for name in sm.names() if not scheme_named(name).node_state)])
def test_every_other_scheme_runs(name):
    scheme = scheme_named(name)
    result = SparseMean(fed(), scheme).start(InProcess(honest()), model(), num_rounds=2)
    assert result.train_metrics_clientapp[2]["sparsemean-nodes"] == 4


class OwnSampling(FedAvg):
    """A subclass that changes who is asked, and leaves averaging as it is."""

    def configure_train(self, server_round, arrays, config, grid):
        return list(super().configure_train(server_round, arrays, config, grid))[:2]


class OwnAveraging(FedAvg):
    def aggregate_train(self, server_round, replies):
        return super().aggregate_train(server_round, replies)


class OwnArrays(FedAvg):
    def configure_train(self, server_round, arrays, config, grid):
        messages = list(super().configure_train(server_round, arrays, config, grid))
        messages[0].content = RecordDict({**messages[0].content, "arrays": model(41)})
        return messages


PRIVATE: dict[str, Callable[[flower.Strategy], flower.Strategy]] = {
    "server-side fixed": lambda inner: flower.DifferentialPrivacyServerSideFixedClipping(inner, 0.1, 1.0, 4),
    "server-side adaptive": lambda inner: flower.DifferentialPrivacyServerSideAdaptiveClipping(inner, 0.1, 4),
    "client-side fixed": lambda inner: flower.DifferentialPrivacyClientSideFixedClipping(inner, 0.1, 1.0, 4),
    "client-side adaptive": lambda inner: flower.DifferentialPrivacyClientSideAdaptiveClipping(inner, 0.1, 4),
}

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: flower.FedMedian(), "one by one"),
    (lambda: flower.FedTrimmedAvg(), "one by one"),
    (lambda: flower.Krum(), "one by one"),
    (lambda: flower.MultiKrum(), "one by one"),
    (lambda: flower.Bulyan(), "one by one"),
    (lambda: flower.QFedAvg(client_learning_rate=0.1), "loss"),
    (lambda: flower.FedXgbBagging(), "trees"),
    *((lambda wrap=wrap: wrap(FedAvg()), "privacy") for wrap in PRIVATE.values()),
    (lambda: OwnAveraging(), "aggregate_train of its own"),
    (lambda: SparseMean(FedAvg(), RANDK), "not built on FedAvg"),
    (lambda: None, "not built on FedAvg"),
]


@pytest.mark.parametrize(("make", "reason"), REFUSED)
def test_strategies_that_need_more_than_a_mean_are_refused(make, reason):
    with pytest.raises(sm.InvalidInput, match=reason):
        SparseMean(make(), RANDK)


def test_a_subclass_that_averages_as_before_is_served():
    strategy = SparseMean(fed(OwnSampling), RANDK)
    assert (
        strategy.start(InProcess(honest()), model(), num_rounds=1).train_metrics_clientapp[1]["sparsemean-nodes"] == 2
    )


def test_arrays_of_ones_own_for_some_nodes_are_refused():
    with pytest.raises(sm.InvalidInput, match="one model that all start from"):
        SparseMean(fed(OwnArrays), RANDK).start(InProcess(honest()), model(), num_rounds=1)


def test_another_model_needs_another_strategy():
    strategy = SparseMean(fed(), RANDK)
    strategy.start(InProcess(honest()), model(), num_rounds=1)
    with pytest.raises(sm.InvalidInput, match="new SparseMean"):
        strategy.start(InProcess(honest()), model(41), num_rounds=1)


def test_nobody_asked_nobody_counted():
    strategy = SparseMean(fed(fraction_train=0.0), RANDK)
    assert strategy.start(InProcess(honest()), model(), num_rounds=1).train_metrics_clientapp == {}
    assert strategy.server is not None
    assert strategy.server.round == 0


def test_a_metrics_function_of_ones_own_sees_every_node():
    seen: list[list[Any]] = []

    def own(records: list[RecordDict], key: str) -> MetricRecord:
        seen.append([record["metrics"]["loss"] for record in records])
        return MetricRecord({"worst": max(seen[-1])})

    strategy = SparseMean(fed(train_metrics_aggr_fn=own), RANDK)
    result = strategy.start(InProcess(honest()), model(), num_rounds=1)
    assert [sorted(losses) for losses in seen] == [[11, 12, 13, 14]]
    assert result.train_metrics_clientapp[1]["worst"] == 14
    assert strategy.inner.train_metrics_aggr_fn is own


def test_nodes_on_thin_links_choose_their_encoder():
    grid = InProcess({**honest(), 12: client_app(SparseMeanMod(encoder=sm.RandK(0.05)))})
    strategy = SparseMean(fed(), sm.named("rand-k", k=(0.25, 0.05)))
    strategy.start(grid, model(), num_rounds=1)
    sizes = {reply.metadata.src_node_id: len(reply.content["arrays"]["sparsemean"].data) for reply in grid.replies[0]}
    assert strategy.refused == {}
    assert sizes[12] < sizes[11] / 3


def test_mods_behind_ours_see_arrays():
    private = LocalDpMod(clipping_norm=1.0, sensitivity=1e-4, epsilon=10.0, delta=1e-5)
    strategy = SparseMean(fed(), sm.named("identity"))
    start = model()
    arrays = strategy.start(
        InProcess({node: client_app(sparsemean_mod, private) for node in NODES}), start, num_rounds=1
    ).arrays
    assert np.linalg.norm(vector(arrays) - vector(start)) < 1.01


def test_temporal_memory_is_kept_by_node_over_rounds():
    """Nodes that change alike in every round: what was learnt of a node makes the next estimate better."""
    still = honest(step=lambda node, name, array: array + np.float32(node))
    strategy = SparseMean(fed(fraction_evaluate=0.0), sm.named("rand-k-temporal", k=0.25))
    errors = []
    grid = InProcess(still)
    for _ in range(25):
        metrics = strategy.start(grid, model(), num_rounds=1).train_metrics_clientapp[1]
        errors.append(metrics["sparsemean-error"])
    assert errors[-1] < 0.01 * errors[0]
    assert strategy.server.round == 25


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheme": "rand-k"}, "scheme is a Scheme"),
        ({"scheme": RANDK, "whole": "*.bias"}, "list of patterns"),
        ({"scheme": RANDK, "jurnal": "x"}, "no setting 'jurnal'; known are seed, whole, .*journal, .*clip"),
        ({"scheme": RANDK, "run": None}, "no setting 'run'"),
    ],
)
def test_wrong_arguments_name_the_remedy(settings, message):
    with pytest.raises(sm.InvalidInput, match=message):
        SparseMean(fed(), **settings)


def test_models_without_floats_or_with_other_types_are_refused():
    with pytest.raises(sm.InvalidInput, match="no array of floats"):
        SparseMean(fed(), RANDK).start(InProcess(honest()), ArrayRecord({"n": Array(np.arange(3))}), num_rounds=1)
    odd = ArrayRecord({"z": Array(np.ones(3, np.complex64))})
    with pytest.raises(sm.InvalidInput, match="only real numbers"):
        SparseMean(fed(), RANDK).start(InProcess(honest()), odd, num_rounds=1)


def test_the_users_config_is_left_as_it_was_and_reaches_the_nodes():
    config = ConfigRecord({"lr": 0.1})
    seen = []

    def watch(message: Message, context: Context, call_next: Next) -> Message:
        seen.append(dict(message.content["config"]))
        return call_next(message, context)

    strategy = SparseMean(fed(flower.FedProx, proximal_mu=0.5), RANDK)
    apps = {node: client_app(watch, sparsemean_mod) for node in NODES}
    strategy.start(InProcess(apps), model(), num_rounds=1, train_config=config)
    assert (seen[0]["lr"], seen[0]["proximal-mu"], seen[0]["server-round"]) == (0.1, 0.5, 1)
    assert not any(key.startswith("sparsemean") for key in config)


def test_a_new_process_goes_on_from_the_journal(tmp_path):
    scheme = sm.named("rand-k-hybrid", k=0.25)

    def play(journal, rounds: int, arrays: ArrayRecord) -> tuple[SparseMean, ArrayRecord]:
        strategy = SparseMean(fed(fraction_evaluate=0.0), scheme, journal=journal)
        return strategy, strategy.start(InProcess(honest()), arrays, num_rounds=rounds).arrays

    whole, arrays = play(tmp_path / "one", 4, model())
    whole.close()
    first, half_way = play(tmp_path / "two", 2, model())
    first.close()
    second, made = play(tmp_path / "two", 2, half_way)
    second.close()
    assert (first.estimate.round, second.estimate.round) == (1, 3)
    np.testing.assert_allclose(vector(made), vector(arrays), rtol=1e-5, atol=1e-6)
    forgetful = play(tmp_path / "three", 2, half_way)[1]  # without the journal, what was learnt is lost
    assert not np.allclose(vector(forgetful), vector(arrays), rtol=1e-3, atol=1e-3)


def test_what_a_dead_process_had_accepted_is_learnt_and_its_round_is_over(tmp_path):
    strategy = SparseMean(fed(), sm.named("rand-k-temporal", k=0.25), journal=tmp_path)
    strategy.configure_train(1, model(), ConfigRecord(), InProcess(honest()))
    run = strategy.server.run
    strategy.server.accept("11", sm.Client(run, "11").encode(np.ones(run.dim), 0))
    strategy.close()  # as if it had died before it closed the round
    after = SparseMean(fed(), sm.named("rand-k-temporal", k=0.25), journal=tmp_path)
    result = after.start(InProcess(honest()), model(), num_rounds=1)
    assert after.refused == {}
    assert result.train_metrics_clientapp[1]["sparsemean-round"] == 1
    assert result.train_metrics_clientapp[1]["sparsemean-nodes"] == 4
    after.close()


def test_a_journal_of_another_model_is_refused(tmp_path):
    first = SparseMean(fed(), RANDK, journal=tmp_path)
    first.start(InProcess(honest()), model(), num_rounds=1)
    first.close()
    with pytest.raises(sm.SparseMeanError, match="journal"):
        SparseMean(fed(), RANDK, journal=tmp_path).start(InProcess(honest()), model(41), num_rounds=1)


def test_settings_of_the_server_pass_through():
    strategy = SparseMean(fed(), sm.named("identity"), clip=sm.Clip(norm=1e-3))
    arrays = strategy.start(InProcess(honest()), model(), num_rounds=1).arrays
    assert np.linalg.norm(vector(arrays) - vector(model())) < 1.1e-3


def test_a_node_counts_once_and_only_if_it_was_asked():
    grid = InProcess(honest())
    strategy = SparseMean(fed(OwnSampling), RANDK)
    messages = list(strategy.configure_train(1, model(), ConfigRecord(), grid))
    replies = list(grid.send_and_receive(messages))
    unasked = ({*NODES} - {message.metadata.dst_node_id for message in messages}).pop()
    content = messages[0].content
    foreign = list(grid.send_and_receive([Message(content, unasked, "train")]))
    _, metrics = strategy.aggregate_train(1, [*replies, replies[0], *foreign])
    assert metrics is not None
    assert metrics["sparsemean-nodes"] == 2
    assert metrics["sparsemean-bytes-up"] == sum(r.count_bytes() for m in replies for r in m.content.values())
    assert strategy.refused.keys() == {str(replies[0].metadata.src_node_id), str(unasked)}


def test_only_train_messages_are_encoded():
    asked = []
    app = ClientApp(mods=[sparsemean_mod])

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        asked.append(message)
        return Message(RecordDict({"arrays": message.content["arrays"]}), reply_to=message)

    strategy = SparseMean(fed(), RANDK)
    content = next(iter(strategy.configure_train(1, model(), ConfigRecord(), InProcess(honest())))).content
    reply = app(Message(content, 11, "evaluate"), Context(1, 11, {}, RecordDict(), {}))
    assert len(asked) == 1
    assert reply.content["arrays"] == model()


def test_an_error_that_a_mod_behind_ours_answers_with_passes():
    def failing(message: Message, context: Context, call_next: Next) -> Message:
        return Message(Error(code=7, reason="out of battery"), reply_to=message)

    strategy = SparseMean(fed(), RANDK)
    strategy.start(InProcess({**honest(), 12: client_app(sparsemean_mod, failing)}), model(), num_rounds=1)
    assert strategy.refused == {"12": "failed: out of battery"}


def test_a_reply_with_two_array_records_fails_at_the_node():
    two = client_app(sparsemean_mod, tampering(second_record))
    strategy = SparseMean(fed(), RANDK)
    strategy.start(InProcess({**honest(), 12: two}), model(), num_rounds=1)
    assert "exactly one ArrayRecord in a train message, found 2" in strategy.refused["12"]


def test_training_may_replace_the_arrays_it_received():
    def replacing(message: Message, context: Context, call_next: Next) -> Message:
        reply = call_next(message, context)
        received: Any = message.content["arrays"]
        received.update(reply.content["arrays"])
        return reply

    strategy = SparseMean(fed(), RANDK)
    (asked, *_) = strategy.configure_train(1, model(), ConfigRecord(), InProcess(honest()))
    replies = []
    for app in (client_app(sparsemean_mod), client_app(sparsemean_mod, replacing)):
        content = RecordDict({"arrays": model(), "config": asked.content["config"]})
        replies.append(app(Message(content, 11, "train"), Context(1, 11, {}, RecordDict(), {})))
    assert replies[0].content["arrays"] == replies[1].content["arrays"]


class Between(flower.Strategy):
    """A strategy of the user's own around another, which passes everything on."""

    def __init__(self, inner: flower.Strategy) -> None:
        self.inner = inner
        for name in ("configure_train", "aggregate_train", "configure_evaluate", "aggregate_evaluate", "summary"):
            setattr(self, name, getattr(inner, name))

    def configure_train(self, *_: Any) -> Any: ...
    def aggregate_train(self, *_: Any) -> Any: ...
    def configure_evaluate(self, *_: Any) -> Any: ...
    def aggregate_evaluate(self, *_: Any) -> Any: ...
    def summary(self) -> None: ...


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("which", PRIVATE)
def test_differential_privacy_around_sparsemean_is_refused_before_anything_is_sent(which, between):
    grid, ours = InProcess(honest()), SparseMean(fed(), RANDK)
    private = PRIVATE[which](Between(ours) if between else ours)
    with pytest.raises(sm.InvalidInput, match=rf"{type(private).__name__} cannot wrap SparseMean; use .*LocalDpMod"):
        private.start(grid, model(), num_rounds=1)
    assert grid.replies == []


def test_a_train_config_that_asks_for_clipping_is_refused():
    config = ConfigRecord({"clipping_norm": 1.0})
    with pytest.raises(sm.InvalidInput, match=r"'clipping_norm'.*LocalDpMod.*if the key is your own, give it another"):
        SparseMean(fed(), RANDK).start(InProcess(honest()), model(), num_rounds=1, train_config=config)


@pytest.mark.parametrize(
    "mods",
    [
        [sparsemean_mod],
        [sparsemean_mod, fixedclipping_mod],
        [fixedclipping_mod, sparsemean_mod],
        [sparsemean_mod, adaptiveclipping_mod],
        [adaptiveclipping_mod, sparsemean_mod],
    ],
)
def test_the_mod_refuses_to_train_for_a_message_that_asks_for_a_payload_and_for_clipping(mods):
    """As that of a server with an earlier version would, which lets itself be wrapped."""
    steps = []

    def noted(node: int, name: str, array: np.ndarray) -> np.ndarray:
        steps.append(node)
        return array

    app = client_app(*mods, step=noted)
    strategy, grid = SparseMean(fed(), RANDK), InProcess({**honest(), 12: app})
    messages = list(strategy.configure_train(1, model(), ConfigRecord(), grid))
    for message in messages:
        if message.metadata.dst_node_id == 12:  # Flower shares one config among all messages
            asked = ConfigRecord({**message.content.config_records["config"], "clipping_norm": 1.0})
            message.content = RecordDict({**message.content, "config": asked})
    strategy.aggregate_train(1, grid.send_and_receive(messages))
    assert strategy.refused.keys() == {"12"}
    assert re.match(r"failed: InvalidInput: .*'clipping_norm'.*use .*LocalDpMod", strategy.refused["12"])
    assert steps == []


MISPLACED = {
    "clipping behind": ([sparsemean_mod, fixedclipping_mod], "fixedclipping_mod requires the key"),
    "clipping in front": ([fixedclipping_mod, sparsemean_mod], "fixedclipping_mod requires the key"),
    "adaptive clipping behind": ([sparsemean_mod, adaptiveclipping_mod], "adaptiveclipping_mod requires the key"),
    "adaptive clipping in front": ([adaptiveclipping_mod, sparsemean_mod], "adaptiveclipping_mod requires the key"),
    "local privacy in front": ([LocalDpMod(1.0, 1e-4, 10.0, 1e-5), sparsemean_mod], "InvalidInput: LocalDpMod has to"),
    "SecAgg+ behind": ([sparsemean_mod, secaggplus_mod], "KeyError: 'secaggplus_configs'"),
    "SecAgg+ in front": ([secaggplus_mod, sparsemean_mod], "KeyError: 'secaggplus_configs'"),
}


@pytest.mark.parametrize("what", MISPLACED)
def test_a_node_with_mods_that_do_not_fit_is_refused_and_the_round_goes_on(what):
    mods, why = MISPLACED[what]
    strategy = SparseMean(fed(), RANDK)
    result = strategy.start(InProcess({**honest(), 12: client_app(*mods)}), model(), num_rounds=1)
    assert strategy.refused.keys() == {"12"}
    assert strategy.refused["12"].startswith(f"failed: {why}")
    assert result.train_metrics_clientapp[1]["sparsemean-nodes"] == 3


BALANCED = sm.named("rand-k-balanced", k=0.25)


def plan_in(config: Any) -> bytes:
    found = config["sparsemean-plan"]
    assert isinstance(found, bytes)
    return found


class Listening(InProcess):
    """Notes what each node was told, round by round."""

    def __init__(self, apps: Mapping[int, ClientApp | None]) -> None:
        super().__init__(apps)
        self.told: list[dict[int, bytes]] = []

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        sent = list(messages)
        configs = {message.metadata.dst_node_id: message.content["config"] for message in sent}
        self.told.append({node: plan_in(config) for node, config in configs.items()})
        return super().send_and_receive(sent, timeout=timeout)


def assert_balanced(estimate: sm.Estimate | None) -> None:
    """A quarter of 1,207 coordinates, rounded up, from each of four nodes: every one came, and one of them twice."""
    assert estimate is not None
    assert np.bincount(estimate.counts).tolist() == [0, 1206, 1]


@pytest.mark.parametrize("name", ["rand-k-balanced", "rand-k-balanced-hybrid", "rand-k-epochs-hybrid"])
@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_each_message_has_the_plan_of_its_node_and_the_cohort_is_those_who_are_asked(name, fraction):
    """And all is as by a Server that is told the same."""
    scheme = sm.named(name, k=0.25 / fraction)
    grid = Listening(honest())
    strategy = SparseMean(fed(fraction_train=fraction, fraction_evaluate=0.0), scheme, seed=5)
    asked, estimates, run = [], [], None
    for at in range(1, 4):
        messages = list(strategy.configure_train(at, model(), ConfigRecord({"lr": 0.1}), grid))
        assert {message.content["config"]["lr"] for message in messages} == {0.1}
        assert len({id(message.content["config"]) for message in messages}) == len(messages)
        asked.append(sorted(str(message.metadata.dst_node_id) for message in messages))
        strategy.aggregate_train(at, grid.send_and_receive(messages))
        assert strategy.refused == {}
        estimates.append(strategy.estimate)
    run = strategy.server.run
    server = sm.Server(run)
    for round, (cohort, told, estimate) in enumerate(zip(asked, grid.told, estimates, strict=True)):
        assert len(cohort) == 4 * fraction
        assert server.plans(cohort) == {str(node): plan for node, plan in told.items()}
        for reply in grid.replies[round]:
            node, blob = reply.metadata.src_node_id, reply.content["arrays"]["sparsemean"].data
            server.accept(str(node), blob, examples(node))
        plain = server.close_round()
        if round == 0 or "epochs" not in name:
            assert_balanced(estimate)
        np.testing.assert_array_equal(estimate.mean, plain.mean)
        assert estimate.error == plain.error
        assert estimate.error_is_bound == plain.error_is_bound


def test_balanced_coordinates_give_the_weighted_mean_without_bias():
    """100 seeds, three of four nodes are there; |z| < 4.5 in 97 coordinates."""
    there = NODES[:3]
    dense = fed().start(InProcess({node: client_app() for node in there}), model(3), num_rounds=1).arrays
    errors = np.zeros((100, 97))
    for seed in range(100):
        grid = InProcess({**honest(there), 14: None})
        made = SparseMean(fed(fraction_evaluate=0.0), sm.named("rand-k-balanced", k=0.5), seed=seed)
        errors[seed] = vector(made.start(grid, model(3), num_rounds=1).arrays).astype(np.float64) - vector(dense)
        assert made.missing == ("14",)
    z = errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / np.sqrt(len(errors)))
    assert np.abs(z).max() < 4.5
    assert errors.std() > 1e-3


def by_plan(change: Callable[[sm.Run, int, bytes], bytes]) -> Change:
    """A node that encodes by another plan than the one in its message."""

    def changed(message: Message, reply: Message) -> None:
        config, node = message.content["config"], message.metadata.dst_node_id
        run = sm.Run.from_json(str(config["sparsemean-run"]))
        at = int(str(config["sparsemean-round"]))
        plan = change(run, at, plan_in(config))
        blob = sm.Client(run, str(node)).encode(np.ones(run.dim), at, plan)
        replaced(lambda _: blob)(message, reply)

    return changed


@pytest.mark.parametrize("plan", [Plan(0, 4), Plan(1, 3), Plan()], ids=str)
def test_a_node_that_follows_another_plan_is_refused_and_the_round_goes_on(plan):
    forged = by_plan(lambda run, at, _: codec.pack_plan(run, "12", at, plan))
    bad = client_app(tampering(forged), sparsemean_mod)
    strategy = SparseMean(fed(), BALANCED)
    result = strategy.start(InProcess({**honest(), 12: bad}), model(), num_rounds=2)
    assert strategy.refused.keys() == {"12"}
    assert strategy.refused["12"].startswith("WrongPlan")
    assert result.train_metrics_clientapp[2]["sparsemean-nodes"] == 3
    same = by_plan(lambda run, at, _: codec.pack_plan(run, "12", at, Plan(1, 4)))
    strategy.start(InProcess({**honest(), 12: client_app(tampering(same), sparsemean_mod)}), model(), num_rounds=1)
    assert strategy.refused == {}


def without_plan(message: Message, context: Context, call_next: Next) -> Message:
    """A mod in front of ours that loses the plan on its way to the node."""
    if "config" in message.content and "sparsemean-plan" in message.content["config"]:
        kept: dict[str, Any] = dict(message.content["config"])
        del kept["sparsemean-plan"]
        message.content["config"] = ConfigRecord(kept)
    return call_next(message, context)


def test_a_node_that_got_no_plan_fails_and_says_so():
    strategy = SparseMean(fed(), BALANCED)
    lost = client_app(without_plan, sparsemean_mod)
    strategy.start(InProcess({**honest(), 12: lost}), model(), num_rounds=1)
    assert strategy.refused.keys() == {"12"}
    assert "not a plan" in strategy.refused["12"]


def test_messages_of_schemes_without_plans_are_as_they_were():
    strategy = SparseMean(fed(), RANDK)
    messages = list(strategy.configure_train(1, model(), ConfigRecord(), InProcess(honest())))
    assert all("sparsemean-plan" not in message.content["config"] for message in messages)


def test_a_round_in_which_nobody_is_asked_deals_no_slots():
    """Else those who are asked later, while the round is still open, would find all slots given to nobody."""
    inner = fed(fraction_evaluate=0.0)
    strategy, grid = SparseMean(inner, BALANCED), Listening(honest())
    inner.configure_train = lambda *_: []  # type: ignore[method-assign]
    assert list(strategy.configure_train(1, model(), ConfigRecord(), grid)) == []
    strategy.aggregate_train(1, [])
    del inner.configure_train
    messages = list(strategy.configure_train(2, model(), ConfigRecord(), grid))
    strategy.aggregate_train(2, grid.send_and_receive(messages))
    assert_balanced(strategy.estimate)


def test_plans_that_a_dead_process_told_hold_for_the_process_that_goes_on(tmp_path):
    first = SparseMean(fed(), BALANCED, journal=tmp_path / "journal")
    grid = Listening(honest())
    messages = list(first.configure_train(1, model(), ConfigRecord(), grid))
    told = {message.metadata.dst_node_id: message.content["config"]["sparsemean-plan"] for message in messages}
    first.close()
    second = SparseMean(fed(), BALANCED, journal=tmp_path / "journal")
    again = list(second.configure_train(1, model(), ConfigRecord(), grid))
    assert {m.metadata.dst_node_id: m.content["config"]["sparsemean-plan"] for m in again} == told
    second.aggregate_train(1, grid.send_and_receive(messages))  # replies to the first one's messages, at that
    assert second.refused == {}
    assert_balanced(second.estimate)
    second.close()
