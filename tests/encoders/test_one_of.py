"""Nodes that send different shares: bytes, refusals, and the exact law of the mean and of what is said of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import checks, codec, sampling, theory
from sparsemean._names import SchemeName, ValueName
from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.totals import RoundTotals
from sparsemean.evaluation import exact_error, truth
from sparsemean.payload import Part
from sparsemean.payload.blocks import Blocks
from sparsemean.schemes import SIZELESS
from sparsemean.wire import frame

SIZES = (2, 5, 9)
ENCODERS = tuple(map(sm.RandK, SIZES))
RUN = sm.Run(sm.Scheme(sm.OneOf(ENCODERS), sm.Spatial("max"), values="float64"), dim=12, seed=4)


@pytest.mark.parametrize("values", ["float64", "float32", "int8", "1-bit"])
def test_each_choice_has_its_own_size_and_says_so_in_one_byte(values: ValueName) -> None:
    run = sm.Run(sm.Scheme(sm.OneOf(ENCODERS), values=values), dim=12)
    lengths = []
    for number, encoder in enumerate(ENCODERS):
        alone = sm.Run(sm.Scheme(encoder, values=values), dim=12)
        blob = sm.Client(run, "a", encoder).encode(np.arange(12.0), 0)
        assert len(blob) == alone.payload_bytes + 1
        header, body = codec.open_frame(run, "a", blob)
        assert body[0] == number
        payload = codec.read_payload(run, "a", header, body)
        assert payload is not None
        assert payload.choice == number
        lengths.append(len(blob))
    assert run.payload_bytes == max(lengths)
    assert not run.payload_fixed
    assert run.shares == (2 / 12, 5 / 12, 9 / 12)
    assert run.share is None


def test_sizes_that_agree_in_this_dimension_are_one_length() -> None:
    run = sm.Run(sm.Scheme(sm.OneOf((sm.RandK(3), sm.RandK(0.25)))), dim=12)
    assert run.payload_fixed
    assert run.shares == (0.25, 0.25)


def test_a_node_has_the_first_encoder_unless_it_names_another() -> None:
    assert sm.Client(RUN, "a").encoder == ENCODERS[0]
    assert [sm.Client(RUN, "a", encoder).choice for encoder in ENCODERS] == [0, 1, 2]
    blob = sm.Client(RUN, "a", ENCODERS[2]).encode(np.arange(12.0), 7)
    payload = codec.read_payload(RUN, "a", *codec.open_frame(RUN, "a", blob))
    assert payload is not None
    (part,) = payload.parts
    assert np.array_equal(part.coordinates, sampling.coordinates(RUN.key("a", 7), 12, 9))
    assert np.array_equal(part.values, part.coordinates)
    assert part.scale == 12 / 9


@pytest.mark.parametrize("encoder", [sm.RandK(3), sm.TopK(2), sm.RandK(2, shared=True), sm.OneOf(ENCODERS)])
def test_a_client_with_an_encoder_of_its_own_is_refused(encoder: sm.Encoder) -> None:
    with pytest.raises(sm.InvalidInput, match="none of the run's encoders"):
        sm.Client(RUN, "a", encoder)


def test_without_a_choice_a_client_may_name_the_runs_only_encoder() -> None:
    run = sm.Run(sm.named("rand-k", k=3), dim=12)
    assert sm.Client(run, "a", sm.RandK(3)).encode(np.ones(12), 0) == sm.Client(run, "a").encode(np.ones(12), 0)
    with pytest.raises(sm.InvalidInput, match="none of the run's encoders"):
        sm.Client(run, "a", sm.RandK(4))


def tampered(blob: bytes, body: bytes) -> bytes:
    """The frame with another body, and a checksum that fits it."""
    header, _ = frame.unpack(memoryview(blob))
    return frame.pack(header, body)


@pytest.mark.parametrize("choice", [0, 2, 3, 255])
def test_a_choice_that_is_not_the_bodys_or_not_the_runs_is_refused_and_changes_nothing(choice: int) -> None:
    server = sm.Server(RUN)
    blob = sm.Client(RUN, "a", ENCODERS[1]).encode(np.ones(12), 0)
    _, body = codec.open_frame(RUN, "a", blob)
    assert tampered(blob, bytes(body)) == blob
    before = server.digest()
    with pytest.raises(sm.MalformedPayload, match="run has 3" if choice > 2 else None):
        server.accept("a", tampered(blob, bytes([choice]) + bytes(body[1:])))
    with pytest.raises(sm.MalformedPayload):
        server.accept("a", tampered(blob, b""))
    with pytest.raises(sm.MalformedPayload):
        server.accept("a", tampered(blob, bytes([choice])))
    assert server.digest() == before


def test_a_node_may_choose_anew_each_round_but_not_within_one() -> None:
    server = sm.Server(RUN)
    for encoder in (*ENCODERS, ENCODERS[0]):
        server.accept("a", sm.Client(RUN, "a", encoder).encode(np.ones(12), server.round))
        other = sm.Client(RUN, "a", ENCODERS[(ENCODERS.index(encoder) + 1) % 3]).encode(np.ones(12), server.round)
        with pytest.raises(sm.ConflictingPayload):
            server.accept("a", other)
        assert np.count_nonzero(server.close_round().mean) == encoder.k


@pytest.mark.parametrize("encoders", [ENCODERS, (sm.TopK(1), sm.TopK(3)), (sm.RandK(0.1), sm.Identity())])
def test_a_run_with_it_can_be_written_down(encoders: tuple[sm.Encoder, ...]) -> None:
    run = sm.Run(sm.Scheme(sm.OneOf(encoders), memory=sm.PerNode()), dim=12, seed=3, blocks=(4, 8))
    again = sm.Run.from_json(run.to_json())
    assert again == run
    assert again.digest == run.digest
    assert again.encoders == encoders


def test_order_and_sizes_are_part_of_what_both_sides_agree_on() -> None:
    makes = [(2, 5), (5, 2), (2, 6), (2, 5, 6)]
    digests = {sm.Run(sm.Scheme(sm.OneOf(tuple(map(sm.RandK, sizes)))), 12).digest for sizes in makes}
    assert len(digests) == len(makes)


def test_a_restored_client_keeps_its_choice() -> None:
    client = sm.Client(RUN, "a", ENCODERS[2])
    restored = sm.Client.restore(RUN, "a", client.save())
    assert restored.encoder == ENCODERS[2]
    assert restored.encode(np.ones(12), 0) == client.encode(np.ones(12), 0)


@pytest.mark.parametrize("name", [name for name in sm.names() if name.startswith("rand-k")])
def test_names_that_begin_with_rand_k_take_several_sizes(name: SchemeName) -> None:
    options: dict[str, Any] = {"ratio": 2.0} if name.endswith("opt") else {}
    scheme = sm.named(name, k=(0.5, 0.2), **options)
    draws = {"balanced": sm.Balanced(), "epochs": sm.Epochs()}
    draw = next((draw for word, draw in draws.items() if word in name), sm.Independent())
    assert scheme.encoder == sm.OneOf((sm.RandK(0.5, draw=draw), sm.RandK(0.2, draw=draw)))
    assert sm.named(name, k=[0.5, 0.2], **options) == scheme
    alone = sm.named(name, k=0.5, **options)
    assert (scheme.decoder, scheme.memory, scheme.unbiased) == (alone.decoder, alone.memory, alone.unbiased)


@pytest.mark.parametrize("name", [name for name in sm.names() if not name.startswith("rand-k")])
def test_other_names_do_not(name: SchemeName) -> None:
    if name in SIZELESS:
        assert sm.named(name, k=(0.5, 0.2)) == sm.named(name), "they take no notice of k"
    else:
        with pytest.raises(sm.InvalidInput):
            sm.named(name, k=(0.5, 0.2))


@pytest.mark.parametrize(
    "encoders", [(), (sm.RandK(2),), (sm.RandK(2), sm.RandK(2)), tuple(map(sm.RandK, range(1, 18)))]
)
def test_two_to_sixteen_different_ones(encoders: tuple[sm.Encoder, ...]) -> None:
    with pytest.raises(sm.InvalidInput, match="2 to 16 different"):
        sm.OneOf(encoders)


@pytest.mark.parametrize(
    "encoders",
    [
        (sm.RandK(2), sm.TopK(2)),
        (sm.RandK(2), sm.RandK(2, shared=True)),
        (sm.RandK(2), sm.Wangni(2)),
        (sm.RandK(2), sm.OneOf(ENCODERS)),
        (sm.ErrorFeedback(sm.TopK(1)), sm.ErrorFeedback(sm.TopK(2))),
        (sm.Difference(sm.RandK(1)), sm.Difference(sm.RandK(2))),
        (sm.Lazy(sm.Identity(), 0.1), sm.Lazy(sm.Identity(), 0.2)),
    ],
)
def test_what_cannot_be_decoded_together_is_refused(encoders: tuple[sm.Encoder, ...]) -> None:
    with pytest.raises(sm.IncompatibleScheme, match="OneOf"):
        sm.OneOf(encoders)


def test_it_cannot_be_wrapped() -> None:
    one = sm.OneOf(ENCODERS)
    for wrap in (sm.Difference, sm.ErrorFeedback, sm.Lazy, lambda e: sm.Induced(sm.TopK(1), e)):
        with pytest.raises(sm.IncompatibleScheme, match="stateless"):
            wrap(one)


def test_what_the_members_cannot_do_it_cannot_either() -> None:
    with pytest.raises(sm.IncompatibleScheme):
        sm.Scheme(sm.OneOf((sm.TopK(1), sm.TopK(2))), sm.Spatial("estimated"))
    with pytest.raises(sm.IncompatibleScheme):
        sm.Scheme(sm.OneOf((sm.Wangni(1), sm.Wangni(2))), memory=sm.PerNode())
    with pytest.raises(sm.InvalidInput):
        sm.Run(sm.Scheme(sm.OneOf((sm.RandK(2), sm.RandK(13)))), dim=12)
    assert not sm.Scheme(sm.OneOf((sm.TopK(1), sm.TopK(2)))).unbiased


# The exact law, over all samples of all nodes.

DECODERS = [sm.Mean(), sm.Spatial("max"), sm.Spatial("avg"), sm.Spatial(-0.5), sm.Spatial(-1.0)]
PEOPLE = [
    ((0, 1), (1, 2)),
    ((0, 1, 1), (1, 2)),
    ((1, 0, 1), (1, 3)),
    ((0, 2, 2), (1, 2, 3)),  # nobody of the second class came
    ((1, 1), (2, 1)),  # nor of the first here
    ((1,), (3, 2)),
]
"""The class of each node, and k of each class."""


@pytest.mark.parametrize("decoder", DECODERS, ids=repr)
@pytest.mark.parametrize(("classes", "ks"), PEOPLE)
def test_mean_and_error_over_all_samples_are_exact(
    classes: Sequence[int], ks: Sequence[int], decoder: sm.Decoder
) -> None:
    """With unequal weights and with an expectation of each node, in d = 3."""
    n, d = len(classes), 3
    rng = np.random.default_rng(n)
    x, b, w = rng.normal(size=(n, d)), rng.normal(size=(n, d)), rng.uniform(0.5, 2.0, n)
    shares = tuple(k / d for k in ks)
    estimates = []
    for chosen in itertools.product(*(itertools.combinations(range(d), ks[s]) for s in classes)):
        totals = RoundTotals(Blocks((d,)), moments=True, classes=len(ks))
        for i, at in enumerate(map(np.array, chosen)):
            totals.add(w[i : i + 1], [Part(at, x[i, at] - b[i, at], d / at.size)], classes[i])
        estimates.append(np.average(b, axis=0, weights=w) + decoder.innovation(totals, shares, (Belief(),)))
    mean = np.average(x, axis=0, weights=w)
    np.testing.assert_allclose(np.mean(estimates, axis=0), mean, rtol=0, atol=1e-12)
    y = n * w[:, None] * (x - b) / w.sum()
    r1, r2 = theory.mixed_correlation(y, np.array(classes), len(ks))
    T = decoder.T(Belief(), n)
    assert T is not None
    exact = theory.mixed_mse(r1, r2, np.bincount(classes, minlength=len(ks)).tolist(), shares, T)
    assert np.mean(np.sum((np.array(estimates) - mean) ** 2, axis=1)) == pytest.approx(exact, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize(
    ("decoder", "memory", "blocks"),
    [
        (sm.Mean(), None, (3,)),
        (sm.Spatial("max"), None, (1, 2)),
        (sm.Spatial("avg"), sm.PerNode(), (3,)),
        (sm.Spatial(-0.5), sm.Hybrid(), (1, 2)),
        (sm.Spatial("learned"), sm.SharedStable(), (1, 2)),
    ],
    ids=repr,
)
def test_through_the_bytes_all_that_is_said_is_exactly_unbiased(
    monkeypatch: pytest.MonkeyPatch, decoder: sm.Decoder, memory: sm.Memory | None, blocks: tuple[int, ...]
) -> None:
    """Given two rounds of the past: the mean, the error, what is said of it, R1 and R2; weights differ per block.

    In the last round nobody of the third class comes, and a node has changed its class.
    """
    scheme = sm.Scheme(sm.OneOf((sm.RandK(1), sm.RandK(2), sm.RandK(3))), decoder, memory, "float64")
    run = sm.Run(scheme, 3, 5, blocks)
    rng = np.random.default_rng(1)
    *past, vectors = rng.normal(size=3) + 0.5 * rng.normal(size=(3, 3, 3))
    weights = rng.uniform(0.5, 2.0, size=(3, len(blocks)))
    weights[1, -1] = 0.0 if len(blocks) > 1 else weights[1, -1]
    nodes, classes = ["node-0", "node-1", "node-2"], np.array([0, 1, 1])

    def send(server: sm.Server, vectors: Doubles, classes: Sequence[int]) -> sm.Estimate:
        for node, vector, weight, s in zip(nodes, vectors, weights, classes, strict=True):
            server.accept(node, sm.Client(run, node, run.encoders[s]).encode(vector, server.round), weight)
        return server.close_round()

    found: list[sm.Estimate] = []
    for chosen in itertools.product(*(itertools.combinations(range(3), k) for k in (1, 2, 2))):
        server = sm.Server(run)
        with monkeypatch.context() as forced:
            for batch in past:
                send(server, batch, (0, 2, 1))
            samples = dict(zip(nodes, map(np.array, chosen), strict=True))
            forced.setattr("sparsemean.sampling.draws.gathered", lambda at, vector: vector[at])
            forced.setattr("sparsemean.sampling.draws.sample_of", lambda key, d, k, at=samples: at[key.node])
            if not found:
                exact = exact_error(server, nodes, vectors, weights, classes)
                expected = np.array([server.expected(node) for node in nodes])
            found.append(send(server, vectors, classes.tolist()))
    here, innovation = (truth(x, weights, run.ranges) for x in (vectors, vectors - expected))
    means = np.array([estimate.mean for estimate in found])
    np.testing.assert_allclose(means.mean(axis=0), here.mean, rtol=0, atol=1e-12)
    assert np.mean(np.sum((means - here.mean) ** 2, axis=1)) == pytest.approx(exact, rel=1e-10)
    assert np.mean([estimate.error for estimate in found]) == pytest.approx(exact, rel=1e-10)
    r1, r2 = np.mean([(e.correlation.r1, e.correlation.r2) for e in found if e.correlation], axis=0)
    assert (r1, r2) == pytest.approx((innovation.r1.sum(), innovation.r2.sum()), rel=1e-10)


def test_mean_divides_every_value_by_its_own_probability() -> None:
    """Horvitz and Thompson: (1/n) Σ_i ξ_ij x_ij/p_i."""
    vectors, total = np.random.default_rng(0).normal(size=(6, 12)), np.zeros(12)
    run = sm.Run(sm.Scheme(sm.OneOf(ENCODERS), values="float64"), 12, seed=9)
    chosen = [ENCODERS[i % 3] for i in range(6)]
    for i, encoder in enumerate(chosen):
        k = SIZES[ENCODERS.index(encoder)]
        at = sampling.coordinates(run.key(str(i), 0), 12, k)
        total[at] += vectors[i, at] * 12 / k
    (estimate,) = sm.simulate(run, vectors[None], encoders=chosen)
    np.testing.assert_allclose(estimate.mean, total / 6, rtol=1e-13)


@pytest.mark.parametrize("decoder", [*DECODERS[:4], sm.Spatial("learned"), sm.Spatial("estimated")], ids=repr)
@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
def test_if_all_nodes_choose_alike_it_is_the_scheme_with_that_encoder(encoder: sm.Encoder, decoder: sm.Decoder) -> None:
    """What nobody chose changes neither the mean nor what is said of it."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=12) + rng.normal(size=(4, 5, 12))
    several = sm.Run(sm.Scheme(sm.OneOf(ENCODERS), decoder, sm.PerNode(), "float64"), 12)
    alone = sm.Run(sm.Scheme(encoder, decoder, sm.PerNode(), "float64"), 12)
    pairs = zip(sm.simulate(several, vectors, encoders=[encoder] * 5), sm.simulate(alone, vectors), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9, atol=1e-12)
        assert (one.error, one.error_se) == pytest.approx((other.error, other.error_se), rel=1e-8, abs=1e-12)
        assert one.correlation is not None
        assert other.correlation is not None
        assert vars_of(one.correlation) == pytest.approx(vars_of(other.correlation), rel=1e-8, abs=1e-12)


def vars_of(correlation: sm.Correlation) -> tuple[float, float, float]:
    return correlation.r1, correlation.r2, correlation.r2_se


@pytest.mark.parametrize("decoder", DECODERS[:4], ids=repr)
@pytest.mark.parametrize("classes", [(0, 1) * 4, (0,) * 7 + (1,)])
def test_the_standard_error_is_to_be_believed(classes: tuple[int, ...], decoder: sm.Decoder) -> None:
    """On the large side: variance over mean squared standard error of 100 seeds; and the error is right, |z| < 4.5."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=60) + rng.normal(size=(8, 60))
    scheme = sm.Scheme(sm.OneOf((sm.RandK(6), sm.RandK(30))), decoder, values="float64")
    nodes = [str(i) for i in range(8)]
    exact = exact_error(sm.Server(sm.Run(scheme, 60)), nodes, vectors, classes=np.array(classes))
    assert exact is not None
    off, spread = [], []
    for seed in range(100):
        run = sm.Run(scheme, 60, seed)
        (estimate,) = sm.simulate(run, vectors[None], encoders=[run.encoders[s] for s in classes])
        assert estimate.error is not None
        assert estimate.error_se is not None
        off.append(estimate.error - exact)
        spread.append(estimate.error_se)
    assert abs(np.mean(off)) < 4.5 * np.std(off) / 10
    assert 0.5 < np.mean(np.square(off)) / np.mean(np.square(spread)) < 1.4


def test_more_generous_nodes_make_the_mean_better_and_spatial_uses_them() -> None:
    """Similar vectors; exact errors of one round."""
    vectors = np.random.default_rng(0).normal(size=40) + 0.2 * np.random.default_rng(1).normal(size=(10, 40))
    nodes = [f"node-{i}" for i in range(10)]
    errors = {}
    for decoder in (sm.Mean(), sm.Spatial("max")):
        server = sm.Server(sm.Run(sm.Scheme(sm.OneOf((sm.RandK(4), sm.RandK(20))), decoder), 40))
        few, half, all_ = (np.array([0] * (10 - m) + [1] * m) for m in (0, 5, 10))
        errors[decoder] = [exact_error(server, nodes, vectors, classes=classes) or 0.0 for classes in (few, half, all_)]
    for found in errors.values():
        assert found[0] > found[1] > found[2] > 0
    assert errors[sm.Spatial("max")][1] < 0.8 * errors[sm.Mean()][1]


@pytest.mark.parametrize(
    "scheme",
    [
        sm.Scheme(sm.OneOf((sm.RandK(2), sm.RandK(8))), sm.Spatial("avg"), sm.Hybrid()),
        sm.Scheme(sm.OneOf((sm.RandK(2), sm.RandK(8))), sm.Spatial("learned"), values="int8"),
        sm.Scheme(sm.OneOf((sm.RandK(2), sm.Identity())), sm.Spatial("max"), values="int4"),
        sm.Scheme(sm.OneOf((sm.TopK(2), sm.TopK(5))), sm.Spatial("avg")),
        sm.Scheme(sm.OneOf((sm.Wangni(2), sm.Wangni(5)))),
        sm.Scheme(sm.OneOf((sm.RandK(2, shared=True), sm.RandK(8, shared=True)))),
    ],
    ids=repr,
)
def test_they_keep_what_they_declare(scheme: sm.Scheme) -> None:
    checks.check_scheme(scheme, dim=16, nodes=4, trials=120)
