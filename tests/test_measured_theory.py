"""Measured errors are the exact ones: Lemma 1 and Theorems 1, 2 and 3 through the library's sampler and decoders.

The 20,000 samples of a share are drawn once and regrouped: 2,000 trials of ten nodes, 200 of a hundred.
A decoder works coordinate by coordinate, so all trials are decoded as one long vector.
Statistical claims hold at |z| < 4; where the formula says 0 the estimate must be exact.
"""

from __future__ import annotations

import itertools
import math
from copy import deepcopy
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

import sparsemean as sm
from sparsemean import sampling, theory
from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.totals import RoundTotals
from sparsemean.payload import Part
from sparsemean.payload.blocks import Blocks
from sparsemean.sampling import Key

DIM = 100
TRIALS = 2_000
SEED = 20
Z = 4.0


def vectors_with_ratio(n: int, ratio: float, dim: int) -> Doubles:
    """Vectors c + z_i with Σ z_i = 0, c and z_i as long as R2/R1 = ratio demands."""
    rng = np.random.default_rng([n, dim, round(1000 * (ratio + 1))])
    common, own = rng.normal(size=dim), rng.normal(size=(n, dim)) * rng.uniform(0.5, 2.0, size=(n, 1))
    if n == 1:
        return common[None]
    own -= own.mean(axis=0)
    # (ρ + 1)(n‖c‖² + Σ‖z_i‖²) = n²‖c‖²
    common *= math.sqrt((ratio + 1) / np.sum(common**2))
    own *= math.sqrt(n * (n - 1 - ratio) / np.sum(own**2))
    return common + own


def ratios(n: int) -> list[float]:
    """The ends, the middle and some between, as far as n vectors can have them; a single one has ratio 0."""
    wanted = (-1.0, -0.4, 0.0, n / 4, n / 2, n - 1.0)
    return sorted({min(max(ratio, -1.0), n - 1.0) for ratio in wanted}) if n > 1 else [0.0]


@cache
def samples(count: int, k: int) -> npt.NDArray[np.bool_]:
    """Whether coordinate j is in the sample of key (SEED, round, node), ten nodes a round: shape (DIM, count)."""
    sent = np.zeros((DIM, count), bool)
    for index in range(count):
        sent[sampling.coordinates(Key(SEED, index // 10, str(index % 10)), DIM, k), index] = True
    return sent


@dataclass(frozen=True)
class Trials:
    """Samples of n nodes in many trials: ``sent`` has shape (DIM, trials, n)."""

    sent: npt.NDArray[np.bool_]
    share: float

    @staticmethod
    def of(n: int, share: float) -> Trials:
        if share == 1.0:
            return Trials(np.ones((DIM, 2, n), bool), share)
        drawn = samples(TRIALS * 10, round(share * DIM))
        trials = drawn.shape[1] // n
        return Trials(drawn[:, : trials * n].reshape(DIM, trials, n), share)

    @property
    def dim(self) -> int:
        return len(self.sent)

    def totals(self, vectors: Doubles) -> RoundTotals:
        dim, trials, n = self.sent.shape
        totals = RoundTotals(Blocks((dim * trials,)), moments=False)
        totals.class_nodes[:] = n
        totals.weight[:] = n
        totals.sums[:] = np.einsum("jtn,nj->jt", self.sent, vectors / self.share).ravel()
        totals.counts[:] = np.count_nonzero(self.sent, axis=2).ravel()
        return totals

    def decoded(self, decoder: sm.Decoder, totals: RoundTotals) -> Doubles:
        """The decoder's estimate of every trial: shape (trials, dim)."""
        return decoder.innovation(deepcopy(totals), (self.share,), (Belief(),)).reshape(self.dim, -1).T


def squared_errors(estimates: Doubles, truth: Doubles) -> Doubles:
    return np.asarray(np.sum((estimates - truth) ** 2, axis=1))


def assert_average(samples: Doubles, exact: float, scale: float, what: str) -> None:
    """The average is ``exact`` within Z standard errors; where that is nothing against ``scale``, so is every sample.

    One node that sends half its coordinates is off by exactly ‖x‖² every time, so rounding is allowed for.
    """
    if exact <= 1e-12 * scale:
        assert samples.max() <= 1e-12 * scale, f"{what}: {samples.max()} where the formula says {exact}"
        return
    spread = samples.std() / math.sqrt(samples.size)
    off = samples.mean() - exact
    assert abs(off) < Z * spread + 1e-12 * exact, f"{what}: off by {off:.3g} from {exact:.6g}, z = {off / spread:.2f}"


# Of so many nodes at most that a coordinate which none of them sends is no rare event.
NODES = {0.01: (1, 2, 10, 100), 0.1: (1, 2, 10, 30), 0.5: (1, 2, 10), 1.0: (1, 10)}
# One process draws the samples of a share, for all settings that have it.
SETTINGS = [
    pytest.param(share, n, ratio, marks=pytest.mark.xdist_group(f"trials-{share}"))
    for share, nodes in NODES.items()
    for n in nodes
    for ratio in ratios(n)
]


@pytest.mark.parametrize(("share", "n", "ratio"), SETTINGS)
def test_the_error_of_every_decoder_is_the_formula_of_its_theorem(share: float, n: int, ratio: float) -> None:
    trials = Trials.of(n, share)
    vectors = vectors_with_ratio(n, ratio, trials.dim)
    mean = vectors.mean(axis=0)
    r1, r2 = theory.correlation(vectors)
    assert r2 / r1 == pytest.approx(ratio, abs=1e-9)
    table = tuple(1.0 + 0.9 * math.sin(m) for m in range(1, n + 1))
    decoders = {
        "Lemma 1": (sm.Mean(), theory.rand_k_mse(r1, n, share)),
        "Theorem 1, max": (sm.Spatial("max"), theory.spatial_mse(r1, r2, n, share, "max")),
        "Theorem 1, avg": (sm.Spatial("avg"), theory.spatial_mse(r1, r2, n, share, "avg")),
        "Theorem 1, table": (sm.Spatial(table=table), theory.spatial_mse(r1, r2, n, share, table)),
        "Theorem 2": (sm.Spatial(ratio), theory.spatial_mse(r1, r2, n, share, ratio)),
    }
    totals = trials.totals(vectors)
    for what, (decoder, exact) in decoders.items():
        assert_average(squared_errors(trials.decoded(decoder, totals), mean), exact, r1 / n**2, what)
        assert decoders["Theorem 2"][1] <= exact + 1e-12 * r1 / n**2, "T* is not the best"

    expected = np.random.default_rng(n).normal(size=vectors.shape)
    estimates = expected.mean(axis=0) + trials.decoded(sm.Mean(), trials.totals(vectors - expected))
    energy = float(np.sum((vectors - expected) ** 2))
    exact = theory.temporal_mse(energy, n, share)
    assert_average(squared_errors(estimates, mean), exact, energy / n**2, "Theorem 3")


class ZeroTruncated(sm.Decoder):
    """β̄ as the paper prints it, read as an expectation over Binomial(n, p) given M ≥ 1: a slip to tell apart."""

    reweights = True
    adapts = False
    unbiased = True

    def T(self, belief: Belief, n: int) -> str:
        return "max"

    def innovation(self, totals: RoundTotals, shares: tuple[float, ...], beliefs: tuple[Belief, ...]) -> Doubles:
        (share,), n = shares, int(totals.nodes[0])
        m = np.arange(1, n + 1)
        chance = np.array([math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in m]) / (1 - (1 - share) ** n)
        factor = np.concatenate(([0.0], 1 / m)) / np.sum(chance / m)
        return np.asarray(factor[totals.counts] * totals.sums / totals.weight[0])


@pytest.mark.parametrize(("decoder", "right"), [(sm.Spatial("max"), True), (ZeroTruncated(), False)])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_mean_is_right_and_the_zero_truncated_reading_of_beta_bar_is_not(
    decoder, right: bool, share: float
) -> None:
    trials = Trials.of(10, share)
    vectors = vectors_with_ratio(10, 5.0, trials.dim)
    mean = vectors.mean(axis=0)
    along = trials.decoded(decoder, trials.totals(vectors)) @ mean / (mean @ mean)
    z = (along.mean() - 1.0) / (along.std() / math.sqrt(along.size))
    assert abs(z) < Z if right else abs(z) > 20


@pytest.mark.parametrize("decoder", [sm.Mean(), sm.Spatial("max"), sm.Spatial("avg"), sm.Spatial(-0.4)])
def test_no_coordinate_is_biased(decoder: sm.Decoder) -> None:
    """100 coordinates, so Bonferroni: each two-sided at 6e-5/100, |z| < 5.1."""
    trials = Trials.of(10, 0.1)
    vectors = vectors_with_ratio(10, 2.5, trials.dim)
    estimates = trials.decoded(decoder, trials.totals(vectors))
    z = (estimates.mean(axis=0) - vectors.mean(axis=0)) / (estimates.std(axis=0) / math.sqrt(len(estimates)))
    assert np.abs(z).max() < 5.1


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_all_trials_decoded_at_once_are_what_client_and_server_make_of_them_one_by_one(share: float) -> None:
    trials = Trials.of(10, share)
    vectors = vectors_with_ratio(10, 2.0, trials.dim)
    together = trials.decoded(sm.Spatial("avg"), trials.totals(vectors))
    run = sm.Run(sm.Scheme(sm.RandK(share), sm.Spatial("avg"), values="float64"), trials.dim, seed=SEED)
    one_by_one = sm.simulate(run, np.broadcast_to(vectors, (20, *vectors.shape)))
    for estimate, other in zip(one_by_one, together[:20], strict=True):
        np.testing.assert_allclose(estimate.mean, other, rtol=1e-12, atol=1e-12)


TINY = [(n, d, k) for n, d in ((1, 4), (2, 4), (3, 3), (4, 2)) for k in range(1, d + 1)]


@pytest.mark.parametrize(("n", "d", "k"), TINY)
@pytest.mark.parametrize("T", ["one", "max", "avg", 0.7, -0.5, -1.0, (0.3, 2.0, 1.0, 5.0)])
def test_mean_and_error_over_all_samples_of_all_nodes_are_exact(n: int, d: int, k: int, T) -> None:
    rng = np.random.default_rng([n, d, k])
    x, b, w = rng.normal(size=(n, d)), rng.normal(size=(n, d)), rng.uniform(0.5, 2.0, n)
    share = k / d
    y = n * w[:, None] * (x - b) / w.sum()
    truth, expected = np.average(x, axis=0, weights=w), np.average(b, axis=0, weights=w)
    decoder = sm.Spatial(table=T) if isinstance(T, tuple) else sm.Spatial(T)
    estimates = []
    for chosen in itertools.product(itertools.combinations(range(d), k), repeat=n):
        totals = RoundTotals(Blocks((d,)), moments=True)
        for i, coordinates in enumerate(map(np.array, chosen)):
            totals.add(w[i : i + 1], [Part(coordinates, x[i, coordinates] - b[i, coordinates], scale=d / k)])
        estimates.append(expected + decoder.innovation(totals, (share,), (Belief(),)))
    r1, r2 = theory.correlation(y)
    np.testing.assert_allclose(np.mean(estimates, axis=0), truth, rtol=0, atol=1e-12)
    exact = theory.spatial_mse(r1, r2, n, share, T)
    assert squared_errors(np.array(estimates), truth).mean() == pytest.approx(exact, rel=1e-11, abs=1e-12)
