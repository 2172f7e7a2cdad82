"""Measure what the server says of its own error against the truth, through real bytes.

    python scripts/measure_own_error.py [--rounds 300] [--draw balanced] [--seed 1] [vectors.npz …]

Each array of a file is (nodes, dim); without files, weather of the package and Gaussian vectors are used. In each round
all nodes send the same vectors anew, so that rounds differ in the draw alone. A line tells, over all rounds but the
first, in which nothing is known of the correlation: z of the mean of ``error``, its standard deviation relative to the
exact expected error, the root mean square of ``error_se`` over that standard deviation, and how often the interval
holds the actual error.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import sparsemean as sm
from sparsemean.lab.weather import load_weather


@dataclass(frozen=True)
class Measured:
    """What rounds said, and what was true."""

    expected: float
    error: np.ndarray
    error_se: np.ndarray
    actual: np.ndarray
    predicted: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def z(self) -> float:
        """Of the mean of ``error``."""
        spread = self.error.std(ddof=1)
        return float((self.error.mean() - self.expected) / (spread / math.sqrt(self.error.size))) if spread else 0.0

    @property
    def relative_sd(self) -> float:
        return float(self.error.std(ddof=1) / self.expected)

    @property
    def se_ratio(self) -> float:
        return float(math.sqrt(np.mean(self.error_se**2)) / self.error.std(ddof=1))

    @property
    def covered(self) -> float:
        return float(np.mean((self.low <= self.actual) & (self.actual <= self.high)))


def measure(vectors: np.ndarray, scheme: sm.Scheme, rounds: int, seed: int = 0) -> Measured:
    """Rounds with the same vectors, in which only the draw differs."""
    n, dim = vectors.shape
    run = sm.Run(scheme, dim, seed)
    mean = vectors.mean(axis=0)
    weighting = scheme.decoder.T(sm.Server(run).beliefs()[0], n)
    assert weighting is not None
    slots = n if run.planned else None
    expected = sm.theory.spatial_mse(*sm.theory.correlation(vectors), n, run.shares[0], weighting, slots=slots)
    told = sm.simulate(run, np.broadcast_to(vectors, (rounds + 1, n, dim)))[1:]
    nothing = math.nan, math.nan
    rows = [
        (e.error, e.error_se, np.sum((e.mean - mean) ** 2), e.actual_error, *(e.actual_error_interval or nothing))
        for e in told
    ]
    return Measured(expected, *np.array(rows, float).T)


def gaussian(n: int, dim: int, correlation: float, rng: np.random.Generator) -> np.ndarray:
    """Vectors whose entries at a coordinate have this correlation."""
    common, own = rng.normal(size=dim), rng.normal(size=(n, dim))
    return np.asarray(math.sqrt(correlation) * common + math.sqrt(1.0 - correlation) * own)


def cases(files: list[Path]) -> Iterator[tuple[str, np.ndarray, tuple[float, ...]]]:
    """Name, vectors, and the shares that nodes send."""
    for path in files:
        for name, vectors in np.load(path).items():
            yield name, vectors, (0.05, 0.1) if len(vectors) >= 100 else (0.1, 0.3)
    if not files:
        weather, rng = load_weather().vectors.astype(float), np.random.default_rng(11)
        yield "weather, day 20", weather[20], (0.1, 0.3)
        for n, dim, correlation in ((3, 700, 0.5), (10, 400, 0.0), (10, 400, 0.9), (100, 400, 0.99)):
            yield f"Gaussian, r = {correlation:g}", gaussian(n, dim, correlation, rng), (0.1, 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--draw", choices=["independent", "balanced"], default="independent")
    parser.add_argument("--values", default="float32")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    draw = sm.Balanced() if chosen.draw == "balanced" else sm.Independent()
    print(f"{'vectors':22} {'n':>4} {'k':>5} {'T':5} {'expected':>9} {'z':>5} {'sd':>8} {'se/sd':>6} {'covered':>8}")
    for name, vectors, shares in cases(chosen.files):
        for share in shares:
            k = max(1, round(share * vectors.shape[1]))
            if chosen.draw == "balanced" and len(vectors) * k <= vectors.shape[1]:
                continue
            for T in ("one", "max", "avg"):
                scheme = sm.Scheme(sm.RandK(k, draw=draw), sm.Spatial(T), values=chosen.values)
                found = measure(vectors, scheme, chosen.rounds, chosen.seed)
                print(
                    f"{name:22} {len(vectors):4} {k:5} {T:5} {found.expected:9.3g} {found.z:5.1f} "
                    f"{found.relative_sd:8.2g} {found.se_ratio:6.2f} {found.covered:8.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
