"""What dither that senders share out gains: Gaussian vectors through real bytes, with the common scale and without.

    python scripts/measure_shared_dither.py [--nodes 100] [--dim 1000] [--k 1000]

Vectors are drawn anew in every round; rounds 7 to 12 count, when the scale has settled. A table as in docs/beyond.md.
"""

from __future__ import annotations

import argparse

import numpy as np

import sparsemean as sm
from sparsemean._types import Doubles

ROUNDS, SETTLED = 12, 6


def main() -> None:
    """Print a line for each value kind and correlation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("nodes", 100), ("dim", 1000), ("k", 1000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    for values in ("1-bit", "2-bit", "int4", "int8"):
        for correlation in (0.0, 0.5, 0.9, 0.99, 1.0):
            own, common = (measured(given, values, correlation, scale) for scale in (False, True))
            print(
                f"{values:6} {correlation:4}: own scales {own[0]:.3g} in {own[1]:.1f} bytes, "
                f"common scale {common[0]:.3g} in {common[1]:.1f}: {own[0] / common[0]:.2f} times lower",
                flush=True,
            )


def measured(given: argparse.Namespace, values: str, correlation: float, common_scale: bool) -> tuple[float, float]:
    """Mean of ‖error‖²/‖mean‖², and bytes of values for each node."""
    draw = sm.Balanced(common_scale=common_scale)
    decoder = sm.Mean() if given.k == given.dim else sm.Spatial("max")
    run = sm.Run(sm.Scheme(sm.RandK(given.k, draw=draw), decoder, values=values), given.dim, seed=3)
    rng = np.random.default_rng(0)
    rounds = np.stack([_vectors(given.nodes, given.dim, correlation, rng) for _ in range(ROUNDS)])
    settled = list(zip(sm.simulate(run, rounds), rounds.mean(axis=1), strict=True))[SETTLED:]
    errors = [np.sum((estimate.mean - mean) ** 2) / np.sum(mean**2) for estimate, mean in settled]
    return float(np.mean(errors)), float(np.mean([estimate.bytes / given.nodes - 64 for estimate, _ in settled]))


def _vectors(nodes: int, dim: int, correlation: float, rng: np.random.Generator) -> Doubles:
    common, own = rng.normal(size=dim), rng.normal(size=(nodes, dim))
    vectors: Doubles = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * own
    return vectors


if __name__ == "__main__":
    main()
