"""An estimate as a tree, so that one whose receiver died is not lost."""

from __future__ import annotations

from dataclasses import asdict, fields

import numpy as np

from sparsemean.results import Correlation, Estimate
from sparsemean.state_tree import Tree, array_in, branch, names_in

PLAIN = ("round", "bytes", "error", "error_se", "rounding")
BOUND = "error_is_bound"  # written where it is true
ACTUAL, INTERVAL = "actual_error", "actual_error_interval"  # written where they are known


def estimate_tree(estimate: Estimate | None) -> Tree:
    """The estimate as plain values and arrays; None for a round that was skipped."""
    if estimate is None:
        return None
    return {
        "mean": estimate.mean,
        "counts": estimate.counts,
        "nodes": list(estimate.nodes),
        "correlation": None if estimate.correlation is None else asdict(estimate.correlation),
        **{name: getattr(estimate, name) for name in PLAIN},
        **({BOUND: True} if estimate.error_is_bound else {}),
        **({} if estimate.actual_error is None else {ACTUAL: estimate.actual_error}),
        **({} if estimate.actual_error_interval is None else {INTERVAL: np.array(estimate.actual_error_interval)}),
    }


def estimate_in(tree: Tree) -> Estimate | None:
    """The estimate that ``estimate_tree`` wrote."""
    if tree is None:
        return None
    assert isinstance(tree, dict)
    found, actual = branch(tree, "correlation"), tree.get(ACTUAL)
    correlation = None if found is None else [branch(found, each.name) for each in fields(Correlation)]
    return Estimate(
        mean=array_in(tree, "mean"),
        counts=array_in(tree, "counts"),
        nodes=tuple(names_in(tree, "nodes")),
        correlation=None if correlation is None else Correlation(*correlation),  # type: ignore[arg-type]
        error_is_bound=bool(tree.get(BOUND)),
        actual_error=actual if isinstance(actual, float) else None,
        actual_error_interval=tuple(array_in(tree, INTERVAL).tolist()) if INTERVAL in tree else None,
        **{name: branch(tree, name) for name in PLAIN},  # type: ignore[arg-type]
    )
