"""Run: sizes of payloads, text form, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean._names import SchemeName, ValueName
from sparsemean.encoders import EncoderFacts
from sparsemean.payload import Layout, Part, Payload
from sparsemean.schemes import SIZELESS

FIXED = ["identity", "diana", "error-feedback-rand-k", *(name for name in sm.names() if name.startswith("rand-k"))]
PACKED = ["error-feedback-chunked-top-k", "error-feedback-sign"]  # of a fixed size, but not of values alone
VARYING = [name for name in sm.names() if name not in (*FIXED, *PACKED)]
VARYING_ENCODERS = [
    "top-k",
    "rtop-k",
    "wangni",
    "induced",
    "error-feedback-top-k",
    "lag",
]  # others send what top-k sends
BYTES = {"float32": 4, "float64": 8}
DIM = 1000


def run_named(name: SchemeName, dim: int, k: int | float = 3, seed: int = 0, values: ValueName = "float32") -> sm.Run:
    options = {"ratio": 1.5} if name == "rand-k-spatial-opt" else {}
    scheme = sm.named(name, k=k, values=values, **options)
    return sm.Run(scheme, dim, seed, nodes=["a", "b"] if scheme.encoder.facts.planned else None)


@pytest.mark.parametrize("values", sorted(BYTES))
@pytest.mark.parametrize("name", FIXED)
@settings(max_examples=12)
@given(data=st.data())
def test_payload_bytes_is_exact_for_payloads_of_fixed_size(name, values, data):
    dim = data.draw(st.integers(1, 400))
    k = data.draw(st.integers(1, dim) | st.floats(0.001, 0.999))
    run = run_named(name, dim, k, seed=data.draw(st.integers(0, 2**64 - 1)), values=values)
    count = dim if name == "identity" else k if isinstance(k, int) else max(1, int(np.floor(k * dim + 0.5)))
    assert run.payload_fixed
    assert run.payload_bytes == 64 + BYTES[values] * count
    vector = np.random.default_rng(0).normal(size=dim) * data.draw(st.sampled_from([0.0, 1e-30, 1.0, 1e30]))
    client = sm.Client(run, data.draw(st.text("aß🐢", min_size=1)))
    for round in (0, 1, 2**63 - 1):
        assert len(client.encode(vector, round)) == run.payload_bytes


def test_a_hundredth_of_a_million_single_precision_values_takes_forty_thousand_bytes_and_a_header():
    run = run_named("rand-k", 10**6, 10**4)
    assert run.payload_bytes == 40_000 + 64
    assert len(sm.Client(run, "a").encode(np.ones(10**6, np.float32), 0)) == 40_064


@cache
def vectors(k: int) -> np.ndarray:
    """400 vectors of several families: their largest entries are spread, clustered, few, tied or equal."""
    rng = np.random.default_rng(k)
    each = 50
    gaussian = rng.normal(size=(each, DIM))
    heavy = rng.standard_cauchy((each, DIM))
    exactly_k, fewer, clustered, far, levels = (np.zeros((each, DIM)) for _ in range(5))
    for i in range(each):
        exactly_k[i, rng.choice(DIM, k, replace=False)] = rng.normal(size=k)
        few = int(rng.integers(0, k + 1))
        fewer[i, rng.choice(DIM, few, replace=False)] = rng.normal(size=few)
        start = int(rng.integers(0, DIM - k + 1))
        clustered[i, start : start + k] = 5.0 + rng.normal(size=k)
        gaps = np.zeros(k, np.int64)  # as many gaps of two bytes as fit, in any order
        gaps[: min(k, (DIM - k) // 128)] = 128
        far[i, np.cumsum(rng.permutation(gaps) + 1) - 1] = rng.normal(size=k)
        levels[i] = rng.choice([1.0, -1.0, 2.0], DIM)
    constant = np.full((each, DIM), 3.0) * rng.choice([1.0, 0.0, -1e20], (each, 1))
    return np.concatenate([gaussian, heavy, exactly_k, fewer, clustered, far, levels, constant])


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("name", VARYING_ENCODERS)
def test_payload_bytes_bounds_every_payload_and_is_nearly_reached(name, share):
    run = run_named(name, DIM, share)
    assert not run.payload_fixed
    drawn = vectors(int(share * DIM))
    assert drawn.shape == (400, DIM)
    client = sm.Client(run, "a")
    sizes = [len(client.encode(vector, round)) for round, vector in enumerate(drawn)]
    assert max(sizes) <= run.payload_bytes <= 1.2 * max(sizes)


@pytest.mark.parametrize("values", sorted(BYTES))
@pytest.mark.parametrize("name", VARYING)
@settings(max_examples=25)
@given(data=st.data())
def test_payload_bytes_bounds_payloads_of_varying_size_in_any_dimension(name, values, data):
    dim = data.draw(st.integers(1, 300))
    run = run_named(name, dim, data.draw(st.integers(1, dim)), values=values)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    tied = rng.choice([0.0, -0.0, 1.0, -1.0, 7.0], dim)
    vector = data.draw(st.sampled_from([tied, rng.normal(size=dim), rng.standard_cauchy(dim)]))
    assert len(sm.Client(run, "a").encode(vector, 0)) <= run.payload_bytes


@pytest.mark.parametrize("name", sm.names())
def test_a_run_survives_its_text(name):
    run = run_named(name, 40, 0.1, seed=2**64 - 1, values="float64")
    again = sm.Run.from_json(run.to_json())
    assert again == run
    assert (again.digest, again.payload_bytes) == (run.digest, run.payload_bytes)
    assert json.loads(run.to_json())["scheme"]["values"] == "float64"
    blocks = sm.Run(run.scheme, 40, blocks=[1, 9, 30])
    assert sm.Run.from_json(blocks.to_json()) == blocks != run


def test_a_table_and_a_nested_encoder_survive_their_text():
    scheme = sm.Scheme(sm.RandK(3), sm.Spatial(table=(1, 1.5, 2)), sm.Window(2, forget_after=4))
    assert sm.Run.from_json(sm.Run(scheme, 9).to_json()) == sm.Run(scheme, 9)
    scheme = sm.Scheme(sm.ErrorFeedback(sm.Induced(sm.RTopK(2, 1.5), sm.Wangni(0.5))))
    assert sm.Run.from_json(sm.Run(scheme, 9).to_json()) == sm.Run(scheme, 9)


@dataclass(frozen=True)
class FirstOnly(sm.Encoder):
    """An encoder of somebody else's: the first entry."""

    gain: float = 1.0

    @property
    def facts(self) -> EncoderFacts:
        return EncoderFacts(raw=False, uniform=False, unbiased=False)

    def layout(self, dim):
        return (Layout("listed", 1, self.gain),)

    def omega(self, dim):
        return None

    def encode(self, vector, key, state):
        return Payload((Part(np.array([0]), vector[:1], self.gain),))


def test_a_member_of_your_own_is_written_down_and_read_with_its_class():
    run = sm.Run(sm.Scheme(FirstOnly(2.0)), 5)
    with pytest.raises(sm.InvalidInput, match=r"'FirstOnly' is not known here; .* members="):
        sm.Run.from_json(run.to_json())
    assert sm.Run.from_json(run.to_json(), members=[FirstOnly]) == run
    assert sm.simulate(run, [[[3, 1, 1, 1, 1], [5, 1, 1, 1, 1]]])[0].mean.tolist() == [8.0, 0, 0, 0, 0]


FIXED_T: list[Any] = [
    *("one", "max", "avg", "estimated", "learned"),
    *(0, 2, 1.5, -1.0, np.float32(0.5), np.float64(0.1), np.int64(3)),
    *((1.0, 2.0, 3.0), (1, 2, 3), [1.0, 2.5, 3], np.array([1.0, 2.0, 3.0]), (np.float32(1.0), np.int8(2), 3.0)),
]


@pytest.mark.parametrize("weighting", FIXED_T, ids=repr)
def test_every_weighting_but_a_function_survives_its_text_and_decodes_the_same(weighting):
    run = sm.Run(sm.Scheme(sm.RandK(4), sm.Spatial(weighting), values="float64"), 6)
    again = sm.Run.from_json(run.to_json())
    assert again == run
    assert hash(again) == hash(run)
    assert again.to_json() == run.to_json()
    vectors = np.random.default_rng(1).normal(size=(2, 3, 6))
    for one, other in zip(sm.simulate(run, vectors), sm.simulate(again, vectors), strict=True):
        assert np.array_equal(one.mean, other.mean)


@pytest.mark.parametrize("weighting", [(1.0, 2.0, 3.0), [1.0, 2.0, 3.0], np.array([1.0, 2.0, 3.0]), (1, 2, 3)])
def test_a_weighting_that_is_a_table_decodes_as_the_table_does(weighting):
    runs = [
        sm.Run(sm.Scheme(sm.RandK(4), decoder), 6) for decoder in (sm.Spatial(weighting), sm.Spatial(table=(1, 2, 3)))
    ]
    one, other = (sm.simulate(run, np.ones((1, 3, 6)))[0].mean for run in runs)
    assert np.array_equal(one, other)


def test_the_text_of_a_run_is_what_it_was():
    """Journals are bound to it, byte for byte."""
    rest = '"encoder": {"k": 2, "shared": false, "type": "RandK"}, "memory": {"type": "Nothing"}, "type": "Scheme", '
    for decoder, text in (
        (sm.Spatial("avg"), '{"table": null, "type": "Spatial", "weighting": "avg"}'),
        (sm.Spatial(2), '{"table": null, "type": "Spatial", "weighting": 2}'),
        (sm.Spatial(2.5), '{"table": null, "type": "Spatial", "weighting": 2.5}'),
        (sm.Spatial(table=(1, 2.5)), '{"table": [1.0, 2.5], "type": "Spatial", "weighting": null}'),
        (sm.Spatial((1, 2.5)), '{"table": null, "type": "Spatial", "weighting": [1, 2.5]}'),
        (sm.Mean(), '{"type": "Mean"}'),
    ):
        told = f'{{"blocks": [4], "dim": 4, "scheme": {{"decoder": {text}, {rest}"values": "float32"}}, "seed": 0}}'
        assert sm.Run(sm.Scheme(sm.RandK(2), decoder), 4).to_json() == told


def test_a_server_from_the_text_of_a_run_with_a_table_closes_its_round():
    run = sm.Run(sm.Scheme(sm.RandK(2), sm.Spatial((1.0, 2.0, 3.0))), 4)
    server = sm.Server(sm.Run.from_json(run.to_json()))
    for node in "abc":
        server.accept(node, sm.Client(run, node).encode(np.ones(4), 0))
    assert server.close_round().nodes == ("a", "b", "c")


def test_a_function_cannot_be_written_down():
    run = sm.Run(sm.Scheme(sm.RandK(2), sm.Spatial(lambda m, n: m)), 5)
    with pytest.raises(sm.InvalidInput, match="table="):
        run.to_json()


GOOD = json.loads(sm.Run(sm.named("rand-k", k=2), 4).to_json())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "3",
        '"rand-k"',
        "{}",
        "[" * 100_000,
        json.dumps({**GOOD, "dim": "4"}),
        json.dumps({**GOOD, "dim": 4.0}),
        json.dumps({**GOOD, "dim": 2}),
        json.dumps({**GOOD, "seed": -1}),
        json.dumps({**GOOD, "seed": None}),
        json.dumps({**GOOD, "blocks": ["4"]}),
        json.dumps({**GOOD, "blocks": 4}),
        json.dumps({**GOOD, "blocks": [2, 1]}),
        json.dumps({**GOOD, "scheme": None}),
        json.dumps({**GOOD, "scheme": {}}),
        json.dumps({**GOOD, "scheme": {**GOOD["scheme"], "colour": 1}}),
        json.dumps({**GOOD, "scheme": {**GOOD["scheme"], "encoder": {"k": 2}}}),
        json.dumps({**GOOD, "scheme": {**GOOD["scheme"], "encoder": {"type": "Popen", "args": "x"}}}),
        json.dumps({**GOOD, "scheme": {**GOOD["scheme"], "encoder": {"type": ["RandK"], "k": 2}}}),
        json.dumps({**GOOD, "scheme": {**GOOD["scheme"], "encoder": {"type": "RandK", "k": {}}}}),
        json.dumps({**GOOD, "scheme": {**GOOD["scheme"], "values": ["float32"]}}),
        json.dumps({key: value for key, value in GOOD.items() if key != "seed"}),
    ],
)
def test_text_that_is_no_run_is_refused(text):
    with pytest.raises(sm.SparseMeanError):
        sm.Run.from_json(text)


ENCODER = {"type": "RandK", "k": 2, "shared": False}


def text_with(**changes: Any) -> str:
    """A good run with another encoder, decoder, memory or kind of values."""
    return json.dumps({**GOOD, "scheme": {**GOOD["scheme"], **changes}})


def nested(depth: int) -> dict[str, Any]:
    """An encoder within encoders, each of which may stand in the next."""
    inner: dict[str, Any] = {"type": "RandK", "k": 1, "shared": False}
    for _ in range(depth):
        inner = {"type": "Induced", "biased": {"type": "TopK", "k": 1}, "unbiased": inner}
    return inner


DIGITS = "9" * 5000
HOSTILE = {
    "5,000 digits for dim": json.dumps(GOOD).replace('"dim": 4', f'"dim": {DIGITS}'),
    "5,000 digits for seed": json.dumps(GOOD).replace('"seed": 0', f'"seed": {DIGITS}'),
    "5,000 digits for k": text_with(encoder=ENCODER).replace('"k": 2', f'"k": {DIGITS}'),
    "4,000 digits for k": text_with(encoder={**ENCODER, "k": 10**4000}),
    "4,000 digits below 0 for dim": json.dumps({**GOOD, "dim": -(10**4000)}),
    "4,000 digits for a block": json.dumps({**GOOD, "blocks": [10**4000]}),
    "infinite k": text_with(encoder={**ENCODER, "k": 0}).replace('"k": 0', '"k": 1e999'),
    "Infinity": text_with(encoder={**ENCODER, "k": float("inf")}),
    "NaN": text_with(encoder={**ENCODER, "k": float("nan")}),
    "NaN in a table": text_with(decoder={"type": "Spatial", "weighting": None, "table": [1.0, float("nan")]}),
    "1e999 in a table": text_with(decoder={"type": "Spatial", "weighting": None, "table": [7]}).replace("7", "1e999"),
    "a table that is text": text_with(decoder={"type": "Spatial", "weighting": None, "table": "123"}),
    "a table of text": text_with(decoder={"type": "Spatial", "weighting": None, "table": ["1", "2"]}),
    "a table within a table": text_with(decoder={"type": "Spatial", "weighting": None, "table": [[1.0, 2.0]]}),
    "a table that is a number": text_with(decoder={"type": "Spatial", "weighting": None, "table": 3}),
    "a ratio of 400 digits": text_with(decoder={"type": "Spatial", "weighting": 10**400, "table": None}),
    "a weighting that is a member": text_with(
        decoder={"type": "Spatial", "weighting": {"type": "Mean"}, "table": None}
    ),
    "a weighting of members": text_with(decoder={"type": "Spatial", "weighting": [{"type": "Mean"}], "table": None}),
    "a weighting that is false": text_with(decoder={"type": "Spatial", "weighting": [False], "table": None}),
    "a list for the encoder": text_with(encoder=[ENCODER]),
    "text for the encoder": text_with(encoder="RandK"),
    "a decoder for the encoder": text_with(encoder={"type": "Mean"}),
    "an encoder for the decoder": text_with(decoder=ENCODER),
    "an encoder for the memory": text_with(memory=ENCODER),
    "an encoder for the values": text_with(values=ENCODER),
    "an encoder for k": text_with(encoder={**ENCODER, "k": ENCODER}),
    "a number for a part": text_with(encoder={"type": "Induced", "biased": 3, "unbiased": ENCODER}),
    "a run within a run": text_with(encoder={"type": "Scheme", **GOOD["scheme"]}),
    "text for shared": text_with(encoder={**ENCODER, "shared": "no"}),
    "a list for shared": text_with(encoder={**ENCODER, "shared": []}),
    "text for larger": text_with(encoder={**ENCODER, "k": {"type": "Half", "of": 3, "larger": "no"}}),
    "a number for a list": text_with(encoder={"type": "OneOf", "encoders": 3}),
    "members that are equal": text_with(encoder={"type": "OneOf", "encoders": [ENCODER, ENCODER]}),
    "members without a hash": text_with(encoder={"type": "OneOf", "encoders": [[1], [2]]}),
    "a scheme of another type": text_with(type="RandK"),
    "an unknown name": json.dumps({**GOOD, "colour": 1}),
    "an unknown name in a member": text_with(encoder={**ENCODER, "colour": 1}),
    "a name twice": json.dumps(GOOD).replace('"dim": 4', '"dim": 4, "dim": 4'),
    "a name twice in a member": text_with(encoder=ENCODER).replace('"k": 2', '"k": 2, "k": 3'),
    "lists within lists": text_with(encoder={**ENCODER, "k": 7}).replace("7", "[" * 50_000 + "]" * 50_000),
    "objects within objects": '{"scheme":' * 50_000,
    "members within members": text_with(encoder=nested(300)),
    "members just too deep": text_with(encoder=nested(51)),
    "bytes that are no text": b'{"dim": "\xff"}',
    "half a character": '{"dim": "\\ud800"}',
    "a window of 10^12": text_with(memory={"type": "Window", "size": 10**12, "forget_after": None}),
    "a window to forget after 10^30": text_with(memory={"type": "Window", "size": 3, "forget_after": 10**30}),
    "to forget after 1e308": text_with(memory={"type": "PerNode", "forget_after": 1e308}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_text_gives_typed_errors_only(what):
    text: Any = HOSTILE[what]
    with pytest.raises((sm.InvalidInput, sm.IncompatibleScheme)) as refused:
        sm.Run.from_json(text)
    assert len(str(refused.value)) < 6000


@settings(max_examples=300)
@given(data=st.data())
def test_any_json_in_place_of_a_part_is_a_run_or_a_typed_error(data):
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
    member = st.fixed_dictionaries({"type": st.sampled_from(["RandK", "TopK", "Spatial", "Window", "Half", "OneOf"])})
    anything = st.recursive(scalars | member, lambda inner: st.lists(inner, max_size=3), max_leaves=4)
    fields = json.loads(run_named("rand-k-temporal-window", 12).to_json())
    place = data.draw(st.sampled_from(["dim", "seed", "blocks", "scheme", "encoder", "decoder", "memory", "values"]))
    inside = fields if place in fields else fields["scheme"]
    if isinstance(inside[place], dict) and data.draw(st.booleans()):
        inside = inside[place]
        place = data.draw(st.sampled_from(sorted(inside)))
    inside[place] = data.draw(anything)
    try:
        run = sm.Run.from_json(json.dumps(fields))
    except (sm.InvalidInput, sm.IncompatibleScheme):
        return
    assert sm.Run.from_json(run.to_json()) == run
    assert hash(run) == hash(sm.Run.from_json(run.to_json()))


def test_encoders_within_encoders_survive_their_text():
    run = sm.Run.from_json(text_with(encoder=nested(20)))
    assert sm.Run.from_json(run.to_json()) == run


@pytest.mark.parametrize(
    "arguments",
    [{"dim": 10**5000}, {"dim": -(10**5000)}, {"seed": 10**5000}, {"blocks": [10**5000]}, {"blocks": [-(10**5000)]}],
)
def test_a_number_too_long_to_write_out_is_refused_in_words(arguments):
    with pytest.raises(sm.InvalidInput, match="more than 30 digits"):
        sm.Run(**{"scheme": sm.named("rand-k", k=2), "dim": 8, **arguments})


@pytest.mark.parametrize("size", [2**16 + 1, 10**12, 10**400], ids=["2^16 + 1", "10^12", "10^400"])
def test_a_window_has_a_limit_and_says_why(size):
    with pytest.raises(sm.InvalidInput, match=r"goes up to 65536, not .*: every node keeps as many"):
        sm.Window(size)
    with pytest.raises(sm.InvalidInput, match="goes up to 65536"):
        sm.named("rand-k-temporal-window", k=2, size=size)
    assert sm.Window(2**16).size == 2**16


@pytest.mark.parametrize("make", [sm.PerNode, lambda forget_after: sm.Window(3, forget_after)])
def test_what_is_forgotten_after_more_rounds_than_there_can_be_is_refused(make):
    for rounds in (2**63, 10**30, 10**5000):
        with pytest.raises(sm.InvalidInput, match=r"forget_after goes up to 9223372036854775807, not .*: rounds are"):
            make(rounds)
    run = sm.Run(sm.Scheme(sm.RandK(2), memory=make(2**63 - 1)), 4)
    assert sm.simulate(run, np.ones((3, 2, 4)))[-1].nodes == ("0", "1")


def test_a_window_longer_than_the_memory_is_refused_before_it_is_allocated():
    run = sm.Run(sm.named("rand-k-temporal-window", k=2, size=2**16), 10**6)
    with pytest.raises(sm.InvalidInput, match=r"one node takes 2621\d+ bytes here, more than memory_bytes"):
        sm.Server(run)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"dim": 0}, "dim must be"),
        ({"dim": -1}, "dim must be"),
        ({"dim": 4.0}, "dim must be"),
        ({"dim": True}, "dim must be"),
        ({"dim": None}, "dim must be"),
        ({"dim": 2**40 + 1}, "dim goes up to"),
        ({"seed": -1}, "seed must be"),
        ({"seed": 2**64}, "seed up to"),
        ({"seed": 1.0}, "seed must be"),
        ({"blocks": [4, 5]}, "sum to dim"),
        ({"blocks": [9, -1]}, "size of a block"),
        ({"blocks": [8, 0]}, "size of a block"),
        ({"blocks": []}, "sum to dim"),
        ({"blocks": [2.5, 5.5]}, "size of a block"),
        ({"blocks": [4.0, 4.0]}, "size of a block"),
        ({"blocks": "44"}, "size of a block"),
        ({"blocks": 8}, "list of sizes"),
        ({"scheme": sm.RandK(2)}, "takes a Scheme"),
        ({"scheme": "rand-k"}, "takes a Scheme"),
        ({"scheme": sm.named("rand-k", k=9)}, "more than the dimension 8"),
        ({"scheme": sm.named("induced", k=9)}, "more than the dimension 8"),
    ],
)
def test_what_is_no_run_is_refused(arguments, why):
    with pytest.raises(sm.InvalidInput, match=why):
        sm.Run(**{"scheme": sm.named("rand-k", k=2), "dim": 8, **arguments})


def test_blocks_may_come_from_an_array():
    sizes: Any = np.array([2, 3])
    assert sm.Run(sm.named("identity"), 5, blocks=sizes).blocks == (2, 3)


@pytest.mark.parametrize(
    ("size", "dim", "k"), [(0.1, 784, 78), (0.5, 3, 2), (0.001, 10, 1), (0.999, 10, 10), (7, 7, 7)]
)
def test_k_is_fixed_by_the_run(size, dim, k):
    run = run_named("rand-k", dim, size)
    assert run.layout[0].count == k
    assert run.share == k / dim
    assert run.layout[0].scale == dim / k


def test_only_uniform_samples_have_a_share():
    with_share = {name for name in sm.names() if run_named(name, 8).share is not None}
    assert with_share == {name for name in FIXED if name != "error-feedback-rand-k"}


@pytest.mark.parametrize("name", sm.names())
def test_for_bytes_has_the_largest_k_that_fits(name):
    options: dict[str, Any] = {"ratio": 1.5} if name == "rand-k-spatial-opt" else {}
    run = sm.Run.for_bytes(name, DIM, 5000, seed=3, values="int8", **options)
    assert run.payload_bytes <= 5000
    assert (run.dim, run.seed, run.scheme.values) == (DIM, 3, "int8")
    if name not in SIZELESS:
        within = sm.Run.for_bytes(name, DIM, 400, values="int8", **options)
        (k,) = {k for k in range(1, DIM) if sm.named(name, k, values="int8", **options) == within.scheme}
        more = sm.Run(sm.named(name, k + 1, values="int8", **options), DIM)
        assert within.payload_bytes <= 400 < more.payload_bytes


@pytest.mark.parametrize(
    ("name", "bytes", "why"),
    [
        ("rand-k", 67, "rand-k with float32 values takes at least 68 bytes a payload, of which 64 are the header"),
        ("identity", 4063, "at least 4064 bytes"),
        ("rand-k", 0, "bytes"),
        ("rand-q", 100, "did you mean"),
    ],
)
def test_for_bytes_refuses_what_does_not_fit(name, bytes, why):
    with pytest.raises(sm.InvalidInput, match=why):
        sm.Run.for_bytes(name, DIM, bytes)


def test_for_bytes_takes_a_name_and_no_k():
    with pytest.raises(sm.InvalidInput, match="leave k out"):
        sm.Run.for_bytes("auto", DIM, 300, k=5)
    with pytest.raises(sm.InvalidInput, match="the name of a scheme"):
        sm.Run.for_bytes(sm.named("rand-k", k=5), DIM, 300)  # type: ignore[arg-type]
