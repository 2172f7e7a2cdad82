"""The torch twins against the library: the same coordinates, bytes, values and means, and nothing read back."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import sampling
from sparsemean.codec import open_frame
from sparsemean.decoding.moment_sample import moment_sample
from sparsemean.kernels.sample import sample_numpy
from sparsemean.payload.blocks import Blocks
from sparsemean.sampling import Key, sample_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sparsemean[torch]'")

from sparsemean.integrations.torch_ddp import draw  # noqa: E402
from sparsemean.integrations.torch_ddp.exchange import Exchange, GatheredPayloads, ReducedSample  # noqa: E402
from sparsemean.integrations.torch_ddp.host import HostPayloads, serves  # noqa: E402
from sparsemean.integrations.torch_ddp.kinds import KINDS  # noqa: E402
from sparsemean.integrations.torch_ddp.stream_words import stream_words  # noqa: E402
from sparsemean.wire.values import value_name  # noqa: E402

CPU = torch.device("cpu")
DIMS = (1, 2, 3, 63, 64, 65, 100, 4095, 4096, 4097, 4160, 4161, 8192, 10_000, 123_457)


@pytest.mark.parametrize("dim", DIMS)
def test_coordinates_are_those_of_the_sampler(dim):
    rng = np.random.default_rng(dim)
    for k in {1, min(2, dim), -(-dim // 3000), -(-dim // 100), -(-dim // 10), max(dim - 1, 1), dim}:
        keys = [Key(int(rng.integers(1 << 63)), step, node) for step in (0, 7) for node in ("0", "1", None)]
        drawn = draw.coordinates([sample_of(key, dim, k) for key in keys], CPU)
        expected = np.stack([sampling.coordinates(key, dim, k) for key in keys])
        np.testing.assert_array_equal(drawn.numpy(), expected, err_msg=f"{dim=} {k=}")


def test_larger_tiles_are_drawn_in_wider_integers():
    samples = [sample_of(Key(3, 0, "0"), 100_000, 5_000)._replace(size=size) for size in (1 << 14, 1 << 16)]
    for sample in samples:
        expected = np.empty(sample.k, np.int64)
        sample_numpy(sample, 0, sample.tiles, expected)
        np.testing.assert_array_equal(draw.coordinates([sample], CPU)[0].numpy(), expected)


def test_words_are_those_of_the_stream():
    keys = [Key(seed, 5, "1") for seed in (0, 1, (1 << 64) - 1)]
    drawn = stream_words([sampling.stream_of(key, b"dither") for key in keys], 1000, CPU)
    expected = np.stack([sampling.words(key, b"dither", 1000) for key in keys])
    np.testing.assert_array_equal(drawn.numpy().view(np.uint64), expected)


def vectors(n: int, dim: int, rounds: int = 4) -> np.ndarray:
    """Nodes that are alike, and change little; some of the vector is zero throughout."""
    rng = np.random.default_rng(dim)
    common, own = rng.standard_normal((1, 1, dim)), rng.standard_normal((1, n, dim))
    drawn = common + 0.5 * own + 0.2 * rng.standard_normal((rounds, n, dim))
    drawn *= 10.0 ** rng.integers(-6, 2, dim)
    drawn[..., dim // 2 : dim // 2 + 300] = 0.0
    return drawn.astype(np.float32)


SCHEMES = {
    **{f"mean {values}": sm.Scheme(sm.RandK(0.2), values=value_name(values)) for values in KINDS},
    "mean eden-1": sm.Scheme(sm.RandK(0.2), values="eden-1"),
    "identity eden-2.5625": sm.named("identity", values=value_name("eden-2.5625")),  # tiles of 4,096, 4,096 and 1,808
    "odd eden-3": sm.Scheme(sm.RandK(4097), values="eden-3"),  # 2,048 and 2,049
    "few eden-3.5": sm.Scheme(sm.RandK(500), values="eden-3.5"),  # dithered
    "temporal eden-8": sm.Scheme(sm.RandK(0.2), sm.Spatial("avg"), sm.PerNode(), values="eden-8"),
    "balanced eden-4": sm.Scheme(sm.RandK(0.7, draw=sm.Balanced()), sm.Spatial("avg"), values="eden-4"),
    "identity int8": sm.named("identity", values="int8"),
    "identity": sm.named("identity"),
    "shared int4": sm.Scheme(sm.RandK(0.2, shared=True), values="int4"),
    "shared temporal": sm.Scheme(sm.RandK(0.2, shared=True), memory=sm.PerNode()),
    "max": sm.Scheme(sm.RandK(0.2), sm.Spatial("max")),
    "avg bfloat16": sm.Scheme(sm.RandK(0.2), sm.Spatial("avg"), values="bfloat16"),
    "ratio": sm.Scheme(sm.RandK(300), sm.Spatial(0.7)),
    "opposed": sm.Scheme(sm.RandK(0.2), sm.Spatial(-1.0)),
    "table": sm.Scheme(sm.RandK(0.2), sm.Spatial(table=(1.0, 1.5, 1.8))),
    "estimated int8": sm.Scheme(sm.RandK(0.2), sm.Spatial("estimated"), values="int8"),
    "learned": sm.Scheme(sm.RandK(0.2), sm.Spatial("learned")),
    "temporal": sm.Scheme(sm.RandK(0.2), memory=sm.PerNode()),
    "temporal float64": sm.Scheme(sm.RandK(0.2), memory=sm.PerNode(), values="float64"),
    "temporal avg int4": sm.Scheme(sm.RandK(0.2), sm.Spatial("avg"), sm.PerNode(), values="int4"),
    "stable": sm.named("rand-k-temporal-shared-stable", k=0.2),
    "hybrid": sm.named("rand-k-hybrid", k=0.3),
    "spatial 2-bit": sm.named("rand-k-spatial-avg", k=0.3, values="2-bit"),
    "hybrid 1-bit": sm.named("rand-k-hybrid", k=0.3, values="1-bit"),
    "balanced": sm.named("rand-k-balanced", k=0.2),  # where ranks never send the same coordinate
    "balanced learned": sm.named("rand-k-balanced", k=0.6),
    "balanced avg int8": sm.Scheme(sm.RandK(0.7, draw=sm.Balanced()), sm.Spatial("avg"), values="int8"),
    "balanced mean": sm.Scheme(sm.RandK(0.5, draw=sm.Balanced()), memory=sm.PerNode()),
    "balanced hybrid": sm.named("rand-k-balanced-hybrid", k=0.6),
}


def meaned(exchange: Exchange, drawn: np.ndarray, step: int, dtype: Any = torch.float32) -> Any:
    """The mean that every rank would get of these vectors."""
    gradients = [torch.from_numpy(vector).to(dtype) for vector in drawn]
    sent = torch.stack([exchange.sent(gradient, rank, step) for rank, gradient in enumerate(gradients)])
    return exchange.mean(sent.sum(dim=0) if isinstance(exchange, ReducedSample) else sent, step)


FEW = ["mean int8", "max", "estimated int8", "temporal", "stable", "hybrid", "balanced avg int8", "balanced hybrid"]


@pytest.mark.parametrize(("name", "n"), [(name, 3) for name in SCHEMES] + [(name, n) for name in FEW for n in (1, 2)])
def test_bytes_means_and_errors_are_those_of_client_and_server(name, n):
    """Those of the kernels to the bit, those of torch operations but for the order of sums."""
    # Ranks go by the list of all, in which their number is their slot, and not by plans, which may have a scale.
    planned = SCHEMES[name].encoder.facts.planned
    run = sm.Run(SCHEMES[name], 10_000, seed=11, nodes=list(map(str, range(n))) if planned else None)
    server, exchange = sm.Server(run), GatheredPayloads(run, n, CPU)
    host = HostPayloads(run, n) if serves(run) else None
    for step, drawn in enumerate(vectors(n, run.dim)):
        believed = server.beliefs()[0]
        for rank, vector in enumerate(drawn):
            frame = sm.Client(run, str(rank)).encode(vector, step)
            server.accept(str(rank), frame)
            sent = exchange.sent(torch.from_numpy(vector), rank, step)
            assert sent.numpy().tobytes() == bytes(open_frame(run, str(rank), frame)[1])
            assert host is None or torch.equal(host.sent(torch.from_numpy(vector), rank, step), sent)
        estimate = server.close_round()
        if host is not None:
            np.testing.assert_array_equal(meaned(host, drawn, step).numpy(), estimate.mean)
        mean = meaned(exchange, drawn, step).numpy()
        np.testing.assert_allclose(mean, estimate.mean, rtol=1e-9, atol=1e-12)
        if host is not None:
            assert_alike(host, exchange)
        if estimate.error_is_bound:
            assert exchange.quality is not None
            error, _, r2 = exchange.quality.tolist()
            assert error == pytest.approx(estimate.error, rel=1e-9)
            assert r2 == 0.0
        elif estimate.correlation is None:
            assert exchange.quality is None
        else:
            assert exchange.quality is not None
            error, r1, r2 = exchange.quality.tolist()
            size = r1 / n**2  # the error is a difference of terms of this size
            assert r1 == pytest.approx(estimate.correlation.r1, rel=1e-9)
            if run.planned:  # there the server goes by how many sent each coordinate, the hook by their law
                assert abs(r2 - estimate.correlation.r2) <= estimate.correlation.r2_se + 1e-9 * r1
            else:
                assert r2 == pytest.approx(estimate.correlation.r2, rel=1e-9, abs=1e-9 * r1)
            # The hook tells its error from R1 and R2, the server from the spread within coordinates as well.
            assert run.share is not None
            T = run.scheme.decoder.T(replace(believed, now=server.beliefs()[0].before), n)
            weighting, slots = "one" if T is None else T, n if run.planned else None
            own, cross = sm.theory.error_coefficients(weighting, n, run.share, slots=slots)
            expected = (own * r1 + cross * r2) / n**2 + (estimate.rounding or 0.0)
            assert error == pytest.approx(expected, rel=1e-9, abs=1e-9 * size)


def assert_alike(host: HostPayloads, exchange: GatheredPayloads) -> None:
    """The same quality and state, but for the order of sums."""
    assert host.bound == exchange.bound
    assert (host.quality is None) == (exchange.quality is None)
    if host.quality is not None and exchange.quality is not None:
        np.testing.assert_allclose(host.quality, exchange.quality, rtol=1e-8, atol=1e-9 * float(exchange.quality[1]))
    for key, state in exchange.state.items():
        np.testing.assert_allclose(host.state[key].double(), state.double(), rtol=1e-7, atol=1e-9, err_msg=key)


@pytest.mark.parametrize(("n", "k"), [(4, 0.6), (5, 0.2)])
def test_the_error_of_balanced_ranks_is_told_without_bias(n, k):
    """Over 150 seeds, |z| < 4.5: what is told is the mean squared error or, where no two ranks meet, its bound."""
    drawn = vectors(n, 500, rounds=1)[0].astype(np.float64)
    truth, (r1, r2) = drawn.mean(axis=0), sm.theory.correlation(drawn)
    scheme = sm.Scheme(sm.RandK(k, draw=sm.Balanced()), sm.Spatial("avg"), values="float64")
    told, off = [], []
    for seed in range(150):
        exchange = GatheredPayloads(sm.Run(scheme, 500, seed), n, CPU)
        mean = meaned(exchange, drawn, 0, torch.float64).numpy()
        assert exchange.quality is not None
        told.append(exchange.quality[0].item())
        off.append(np.sum((mean - truth) ** 2))
    exact = sm.theory.spatial_mse(r1, r2, n, k, "avg", slots=n)
    said = exact if n * k > 1 else sm.theory.spatial_mse(r1, -r1, n, k, "avg", slots=n)
    for found, expected in ((off, exact), (told, said)):
        assert abs(np.mean(found) - expected) < 4.5 * np.std(found, ddof=1) / len(found) ** 0.5
    assert said >= exact


def test_a_long_vector_learns_from_the_same_tiles_as_the_server():
    run = sm.Run(sm.Scheme(sm.RandK(0.05), sm.Spatial("estimated")), 300_000, seed=2)
    assert not moment_sample(Blocks((run.dim,))).everything
    server, exchange, host = sm.Server(run), GatheredPayloads(run, 3, CPU), HostPayloads(run, 3)
    drawn = vectors(3, run.dim, rounds=1)[0]
    for rank, vector in enumerate(drawn):
        server.accept(str(rank), sm.Client(run, str(rank)).encode(vector, 0))
    mean = server.close_round().mean
    np.testing.assert_allclose(meaned(exchange, drawn, 0).numpy(), mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(meaned(host, drawn, 0).numpy(), mean)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_sum_of_shared_coordinates_is_what_the_server_makes_of_them(dtype):
    run = sm.Run(sm.Scheme(sm.RandK(0.2, shared=True)), 5_000, seed=4)
    server, exchange = sm.Server(run), ReducedSample(run, 3, CPU)
    drawn = torch.from_numpy(vectors(3, run.dim, rounds=1)[0]).to(dtype).to(torch.float32).numpy()
    for rank, vector in enumerate(drawn):
        server.accept(str(rank), sm.Client(run, str(rank)).encode(vector, 0))
    mean = meaned(exchange, drawn, 0, dtype).numpy()
    np.testing.assert_allclose(mean, server.close_round().mean, rtol=2e-6, atol=1e-6 * np.abs(drawn).max())


@pytest.mark.parametrize("name", SCHEMES)
def test_no_number_is_read_back_from_the_device(name):
    """The meta device has shapes and no data: whatever needs a number on the host fails on it."""
    run = sm.Run(SCHEMES[name], 10_000, seed=11)
    meta = torch.device("meta")
    exchange = GatheredPayloads(run, 3, meta)
    for step in range(2):
        sent = [exchange.sent(torch.empty(run.dim, dtype=torch.bfloat16, device=meta), rank, step) for rank in range(3)]
        mean = exchange.mean(torch.stack(sent), step)
        assert (mean.device, mean.shape) == (meta, (run.dim,))
    with pytest.raises((RuntimeError, NotImplementedError)):
        mean.sum().item()


def test_no_number_is_read_back_from_the_device_for_a_sum():
    run = sm.Run(sm.Scheme(sm.RandK(0.2, shared=True)), 10_000)
    exchange = ReducedSample(run, 2, torch.device("meta"))
    sent = exchange.sent(torch.empty(run.dim, device="meta"), 0, 0)
    assert exchange.mean(sent, 0).shape == (run.dim,)


OVERFLOWING = [
    *("temporal", "temporal avg int4", "temporal eden-8", "stable", "hybrid"),
    *("estimated int8", "learned", "balanced hybrid"),
]


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, GatheredPayloads) for name in OVERFLOWING]
    + [(name, HostPayloads) for name in OVERFLOWING if serves(sm.Run(SCHEMES[name], 10))],
)
def test_an_overflow_reaches_the_mean_and_is_not_remembered(name, broken, kind):
    run = sm.Run(SCHEMES[name], 4_000, seed=3)
    rounds = vectors(2, run.dim)
    exchange = HostPayloads(run, 2) if kind is HostPayloads else GatheredPayloads(run, 2, CPU)
    for step in (0, 1):
        meaned(exchange, rounds[step], step)
    before = {key: state.clone() for key, state in exchange.state.items()}
    hurt = rounds[2].copy()
    hurt[1] = broken
    assert not meaned(exchange, hurt, 2).isfinite().all()
    for key, state in exchange.state.items():
        assert torch.equal(state, before[key]), key
    assert meaned(exchange, rounds[3], 3).isfinite().all()


def test_values_beyond_a_format_are_no_numbers():
    beyond = torch.tensor([1e5, 1.0, 2.0**127])
    stream = sampling.stream_of(Key(0, 0, "0"), b"dither")
    for name, finite in (("float16", [False, True, False]), ("int8", [False, False, False])):
        sent = KINDS[name].pack(beyond, stream)
        values, _ = KINDS[name].unpack(sent[None], 3, [stream])
        assert values[0].isfinite().tolist() == finite


CHECKPOINTED = {
    "mean float32": set(),
    "learned": {"likeness"},
    "temporal": {"last"},
    "stable": {"average", "factor", "likeness"},
    "hybrid": {"last", "heard", "common", "factors", "likeness"},
}


@pytest.mark.parametrize("name", CHECKPOINTED)
def test_checkpoints_of_earlier_versions_have_these_keys(name):
    assert GatheredPayloads(sm.Run(SCHEMES[name], 1_000), 2, CPU).state.keys() == CHECKPOINTED[name]


@pytest.mark.parametrize("name", ["learned", "temporal", "hybrid", "balanced hybrid"])
def test_checkpoints_travel_between_kernels_and_torch(name):
    """Those of the kernels have the sums of rows as well, with which they go on bit for bit, and without nearly so."""
    run = sm.Run(SCHEMES[name], 5_000, seed=3)
    rounds = vectors(2, run.dim, 5)
    host, exchange = HostPayloads(run, 2), GatheredPayloads(run, 2, CPU)
    for step in (0, 1, 2):
        meaned(host, rounds[step], step)
    saved = {key: state.clone() for key, state in host.state.items()}
    assert saved.keys() - exchange.state.keys() <= {"sums"}
    resumed, rebuilt = HostPayloads(run, 2), HostPayloads(run, 2)
    exchange.restore(saved)
    resumed.restore(saved)
    rebuilt.restore(exchange.state)
    for step in (3, 4):
        mean = meaned(host, rounds[step], step)
        assert torch.equal(meaned(resumed, rounds[step], step), mean)
        for other in (exchange, rebuilt):
            np.testing.assert_allclose(meaned(other, rounds[step], step), mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_mean_stands_in_the_gradient_in_its_type(dtype):
    run = sm.Run(SCHEMES["hybrid"], 5_000, seed=3)
    drawn = vectors(2, run.dim, 1)[0]
    host, other = HostPayloads(run, 2), HostPayloads(run, 2)
    mean = meaned(other, drawn, 0, dtype)
    gradients = [torch.from_numpy(vector).to(dtype) for vector in drawn]
    received = torch.stack([host.sent(gradient, rank, 0) for rank, gradient in enumerate(gradients)])
    host.write_mean(received, 0, gradients[1])
    assert gradients[1].dtype == dtype
    assert torch.equal(gradients[1], mean.to(dtype))


BELOW = ("_types", "decoding", "encoders", "kernels", "memory", "payload", "sampling", "theory", "wire")


def test_only_public_names_and_what_is_below_run_client_and_server_are_imported():
    """Ranks need neither server nor journal, nor the lab; formulas, sampler and value kinds are the library's own."""
    folder = Path(draw.__file__).parent
    code = "\n".join(map(Path.read_text, folder.glob("*.py")))
    names = re.findall(r"^(?:from|import) (sparsemean[\w.]*)", code, re.MULTILINE)
    assert names
    for name in names:
        _, _, inside = name.partition(".")
        assert not inside or inside.startswith("integrations.torch_ddp") or inside.split(".")[0] in BELOW, name
