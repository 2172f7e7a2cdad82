"""Which strategies can be fed a mean, and why others cannot."""

from __future__ import annotations

from flwr.serverapp import strategy as flower
from flwr.serverapp.strategy import FedAvg, Strategy

import sparsemean as sm
from sparsemean.integrations.flower.privacy import WRAPPERS

# All these do with the nodes' arrays is to take their weighted mean; a subclass may change anything else.
MEANS = (FedAvg, flower.FedAvgM, flower.FedProx, flower.FedAdagrad, flower.FedAdam, flower.FedYogi)
ONE_BY_ONE = "compares the nodes' arrays one by one, and of payloads only the mean is known"
REASONS: dict[tuple[type[Strategy], ...], str] = {
    (flower.FedMedian, flower.FedTrimmedAvg, flower.MultiKrum, flower.Bulyan): ONE_BY_ONE,
    (flower.QFedAvg,): "weights each node by its loss and by the length of its own difference",
    (flower.FedXgbBagging, flower.FedXgbCyclic): "collects trees, which have no mean",
    WRAPPERS: "promises privacy for arrays it clips and adds noise to itself, which a mean of payloads does not keep",
}


def check_inner(inner: object) -> FedAvg:
    """The strategy, if all it does with the nodes' arrays is to take their weighted mean.

    >>> check_inner(flower.FedMedian())
    Traceback (most recent call last):
    ...
    sparsemean.errors.InvalidInput: SparseMean cannot wrap FedMedian, which compares the nodes' arrays one by one, and
    of payloads only the mean is known; use FedAvg, FedAvgM, FedProx, FedAdagrad, FedAdam, FedYogi, or no SparseMean
    """
    for kinds, reason in REASONS.items():
        if isinstance(inner, kinds):
            raise _refusal(inner, reason)
    if not isinstance(inner, FedAvg):
        raise _refusal(inner, "is not built on FedAvg")
    if type(inner).aggregate_train not in {kind.aggregate_train for kind in MEANS}:
        raise _refusal(inner, "has an aggregate_train of its own, which may need each node's arrays")
    return inner


def _refusal(inner: object, reason: str) -> sm.InvalidInput:
    known = ", ".join(kind.__name__ for kind in MEANS)
    return sm.InvalidInput(
        f"SparseMean cannot wrap {type(inner).__name__}, which {reason}; use {known}, or no SparseMean"
    )
