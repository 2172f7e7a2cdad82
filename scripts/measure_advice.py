"""Whether the advice of ``compare`` holds: on ten data sets, with other seeds, by plain NumPy.

    python scripts/measure_advice.py [--data DIR] [--sets 'weather;gaussian'] [--fixed] [--fresh 12]

``compare`` runs as the command does by default: within the bytes of ``rand-k`` at a tenth of the coordinates, all
schemes in float32 and int8, whole vectors and ``auto``. Then what is recommended, and every unbiased scheme within the
budget that ``compare`` saw within half as much again of the best of them, are simulated from the code that it printed,
with seeds that it did not have, and ‖mean − truth‖² of the second half of the rounds is summed here. Printed is a line
for each set, a row of the table in docs/compare.md: the error of what is recommended, of answering 0, and the first
over the least of an unbiased scheme, which should be at most 1.1. Twenty minutes of one core for all.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.lab import datasets
from sparsemean.lab.compare import Budget, Comparison, Contest, GivenVectors, Result
from sparsemean.lab.datasets import Images, Stream, splits

FEWEST, CLOSE = 1000, 1.5
"""The first fresh seed; how much more than of the best ``compare`` may have seen of what is simulated again."""
ALLOWED = 1.1
"""Times the least error of an unbiased scheme that what is recommended may have."""
ROUNDING = 1e-12


def pictures(name: str, data: Path | None, nodes: int, rounds: int) -> Doubles:
    """Means of 16 pictures that each node, which has those of two classes, draws in a round; less the mean of all."""
    found = datasets.load(name, data)
    assert isinstance(found, Images)
    rng = np.random.default_rng(1)
    parts = splits.shards(found.train_y, nodes, rng, shards_per_node=2)
    drawn = [[found.train_x[rng.choice(part, 16)].mean(axis=0) for part in parts] for _ in range(rounds)]
    vectors: Doubles = np.asarray(drawn, np.float64) - found.train_x.mean(axis=0, dtype=np.float64)
    return vectors


def sensors(name: str, data: Path | None, rounds: int, every: int = 1) -> Doubles:
    """The first rounds of a sensor network, of every node or of some."""
    found = datasets.load(name, data)
    assert isinstance(found, Stream)
    return found.vectors[:rounds, ::every].astype(np.float64)


def made(name: str) -> Doubles:
    """Twenty rounds of ten nodes with 200 coordinates."""
    rng, shape = np.random.default_rng(2), (20, 10, 200)
    own: Doubles = rng.normal(size=shape)
    if name == "heavy-tailed":
        own = rng.standard_t(1.5, size=shape)
    if name == "identical":
        return np.repeat(own[:, :1], 10, axis=1)
    if name == "constant":
        return np.repeat(own[:1], 20, axis=0)
    if name == "drifting":
        return np.asarray(own[:1, :1] + np.cumsum(0.1 * own, axis=0), np.float64)
    return own


def sets(data: Path | None) -> dict[str, Callable[[], Doubles]]:
    """Five real ones, then five made ones."""
    return {
        "Fashion-MNIST": lambda: pictures("fashion-mnist", data, 20, 12),
        "CIFAR-10": lambda: pictures("cifar-10", data, 10, 10),
        "weather": lambda: sensors("weather", data, 31),
        "beijing": lambda: sensors("beijing", data, 24),
        "los-loop": lambda: sensors("los-loop", data, 7, every=4),
        **{name: lambda name=name: made(name) for name in MADE},  # type: ignore[misc]
    }


MADE = ("gaussian", "heavy-tailed", "identical", "constant", "drifting")


def compared(vectors: Doubles, fixed: bool) -> Comparison:
    """As ``sparsemean compare`` does, or of the fixed schemes alone."""
    dim = vectors.shape[2]
    budget = Budget(bytes=sm.Run(sm.named("rand-k", max(1, round(0.1 * dim))), dim).payload_bytes)
    names = [f"{name}{kind}" for kind in ("", " int8") for name in sm.names()]
    contest = Contest(GivenVectors(vectors), budget, names if fixed else [*names, "auto"])
    return contest.comparison(contest.results())


def fresh_error(result: Result, vectors: Doubles, seeds: int) -> float:
    """The error in the second half of the rounds, of the code that was printed, with other seeds."""
    half = len(vectors) // 2
    truth, squares = vectors.mean(axis=1), np.sum(vectors**2, axis=2).mean(axis=1)
    scheme: sm.Scheme = eval(result.code, {"sm": sm})
    total = 0.0
    for seed in range(FEWEST, FEWEST + seeds):
        run = sm.Run(scheme, vectors.shape[2], seed)
        estimates = np.array([estimate.mean for estimate in sm.simulate(run, vectors)])
        total += float(np.sum((estimates - truth)[half:] ** 2))
    return total / seeds / float(squares[half:].sum())


def checked(name: str, vectors: Doubles, fixed: bool, seeds: int) -> bool:
    """Print the row of a set, and say whether the advice holds there."""
    found = compared(vectors, fixed)
    best = found.recommended
    half, squares = len(vectors) // 2, np.sum(vectors**2, axis=2).mean(axis=1)
    zero = float(np.sum(vectors.mean(axis=1)[half:] ** 2) / squares[half:].sum())
    unbiased = [result for result in found.results if result.unbiased and not result.over_budget and _usable(result)]
    least = min((result.steady for result in unbiased), default=0.0)
    near = {result for result in unbiased if result.steady <= CLOSE * least} | ({best} if best else set())
    errors = {result.scheme: fresh_error(result, vectors, seeds) for result in near}
    rounds, nodes, dim = vectors.shape
    row = f"| {name} | {rounds} × {nodes} × {dim} | {found.budget.bytes} "
    rival = min((result.scheme for result in near if result.unbiased), key=lambda each: errors[each])
    if best is None:
        print(f"{row}| nothing | – | {zero:.3g} | `{rival}` | – |", flush=True)
        return errors[rival] * ALLOWED >= zero
    ratio = max(errors[best.scheme], ROUNDING) / max(errors[rival], ROUNDING)
    row += f"| `{best.scheme}` | {errors[best.scheme]:.3g} | {zero:.3g} | `{rival}` | {ratio:.2f} |"
    print(row, flush=True)
    return ratio <= ALLOWED and errors[best.scheme] < zero


def _usable(result: Result) -> bool:
    """Not one that is told what nobody knows, or made for nodes of unequal weight."""
    return not (result.name == "rand-k-spatial-opt" or result.name.endswith("-ratio") or result.diverges)


def main() -> int:
    """Print a row for each set; the exit code is 1 where the advice does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets")
    parser.add_argument("--fresh", type=int, default=12, help="how many fresh seeds")
    parser.add_argument("--fixed", action="store_true", help="without auto")
    given = parser.parse_args()
    warnings.simplefilter("ignore", sm.DivergenceWarning)
    every = sets(given.data)
    chosen = given.sets.split(";") if given.sets else list(every)
    failed = [name for name in chosen if not checked(name, every[name](), given.fixed, given.fresh)]
    print(f"the advice does not hold on {', '.join(failed)}" if failed else "the advice holds on all")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
