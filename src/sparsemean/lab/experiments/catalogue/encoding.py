"""What encoding costs a node, of which the paper speaks without measuring it."""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue.schemes import AVG, BASELINES, TEMPORAL
from sparsemean.lab.experiments.catalogue.size import ExperimentSize
from sparsemean.lab.experiments.setting import Setting

DIMS = (784, 30730)
"""A Fashion-MNIST image; the model of the logistic regression on CIFAR-10."""


def encode_cost(size: ExperimentSize, seed: int) -> list[Setting]:
    """The paper's estimators and the baselines, k = 0.1d."""
    return [
        Setting("encode-cost", "encode-cost", "normal", scheme, 0.1, seed, options=(*MEASURE, ("dim", dim)))
        for dim in DIMS
        for scheme in (*BASELINES, AVG, TEMPORAL)
    ]


MEASURE = (("measure", "encode-cost"),)
