"""Compare schemes on the same vectors at the same budget: errors, bytes and what the server said of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy.typing as npt

from sparsemean.errors import InvalidInput
from sparsemean.lab.compare.budget import Budget, scheme_within
from sparsemean.lab.compare.correlation import VectorCorrelation
from sparsemean.lab.compare.given_vectors import GivenVectors
from sparsemean.lab.compare.playing import Entry, Result, played
from sparsemean.schemes import AUTO, SIZELESS, names


@dataclass(frozen=True)
class Comparison:
    """All results, sorted by error.

    Parameters
    ----------
    results
        One per scheme.
    correlation
        Of the vectors, between nodes and between rounds.
    rounds, nodes, dim, seeds, budget
        What was compared.
    left_out
        Names of the schemes too large for the budget.
    """

    results: tuple[Result, ...]
    correlation: VectorCorrelation
    rounds: int
    nodes: int
    dim: int
    seeds: int
    budget: Budget
    left_out: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain data. The correlation is called "likeness" there, as in files written by earlier versions."""
        return {"likeness" if name == "correlation" else name: value for name, value in asdict(self).items()}


def compare(
    vectors: npt.ArrayLike,
    budget: Budget,
    schemes: Sequence[str] | None = None,
    weights: npt.ArrayLike | None = None,
    seeds: int = 5,
    jobs: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Comparison:
    """Play each scheme on the vectors.

    Parameters
    ----------
    vectors
        Shape (n, d) or (rounds, n, d).
    budget
        What a node may send in a round.
    schemes
        Names, which may end in the kind of the values: ``"rand-k int8"``; all schemes by default.
    weights
        One number per node.
    seeds
        How often each scheme is played.
    jobs
        Number of processes; all cores by default.
    progress
        Called with (done, total) after every run.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> vectors = rng.normal(size=50) + 0.1 * rng.normal(size=(12, 50))
    >>> found = compare(vectors, Budget(share=0.2), ["rand-k", "rand-k-spatial-max"], seeds=20)
    >>> [result.scheme for result in found.results]
    ['rand-k-spatial-max', 'rand-k']
    """
    given = GivenVectors(vectors, weights)
    fitting, left_out = entries_within(given, [(name, budget) for name in schemes or [*names(), AUTO]])
    results = played(given, fitting, seeds, jobs, progress)
    return Comparison(
        results=tuple(sorted(results, key=lambda result: result.nmse)),
        correlation=given.correlation,
        rounds=len(given.rounds),
        nodes=given.task.nodes,
        dim=given.task.dim,
        seeds=seeds,
        budget=budget,
        left_out=tuple(name for name, _ in left_out),
    )


def entries_within(
    given: GivenVectors, wanted: Iterable[tuple[str, Budget]]
) -> tuple[list[Entry], list[tuple[str, Budget]]]:
    """Each name with the largest k that its budget allows; and those of which not even one value fits.

    Raises ``InvalidInput`` where nothing fits but schemes that send whole vectors, whatever the budget.
    """
    fitting: list[Entry] = []
    left_out: list[tuple[str, Budget]] = []
    for name, budget in wanted:
        scheme = scheme_within(name, budget, given.rounds[0], given.correlation.ratio)
        if scheme is None:
            left_out.append((name, budget))
        else:
            fitting.append(Entry(name, scheme, budget))
    if left_out and {entry.name.partition(" ")[0] for entry in fitting} <= set(SIZELESS):
        largest = max(budget.bytes or 0 for _, budget in left_out)
        raise InvalidInput(
            f"a budget of {largest} bytes is too small for every scheme: "
            "a payload has a header of 64 bytes and one value"
        )
    return fitting, left_out
