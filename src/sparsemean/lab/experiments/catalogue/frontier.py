"""Error against bytes: what nodes that know nothing, hear the mean or keep a vector reach with the same bytes."""

from __future__ import annotations

from collections.abc import Sequence

from sparsemean._names import ValueName
from sparsemean.lab.datasets import PICTURES
from sparsemean.lab.experiments.catalogue.designed import similar
from sparsemean.lab.experiments.catalogue.learning import SPLITS
from sparsemean.lab.experiments.catalogue.size import ExperimentSize
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.node_schemes import AUTO, BY_KNOWLEDGE, EDEN
from sparsemean.run import Run
from sparsemean.schemes import named

GAUSSIAN_NODES, GAUSSIAN_ROUNDS = 10, 6
UNLIKE, ALIKE, MORE_ALIKE = 0.0, 8.9 / 9.0, 0.99
"""(R2/R1)/(n − 1) of Gaussian vectors."""
WHOLE_BITS: tuple[ValueName, ...] = ("eden-1", "eden-2", "eden-3", "eden-4")
FEW, MANY = 1.8, 3.2
"""Bits a coordinate, header included."""
NETWORK_NODES, NETWORK_BYTES = 8, 4566
"""4,566 bytes are a header and a twentieth of the network's 22,510 parameters as float32."""
SWIFT, SLOW = 0.3, 0.1
"""Learning rates of its nodes: with the first, updates have little in common with those of the round before."""
INT4 = tuple(
    f"{name} int4"
    for name in (
        *("rand-k", "rand-k-spatial-avg", "rand-k-spatial-adaptive", "rand-k-balanced"),
        *("rand-k-hybrid", "rand-k-balanced-hybrid", "rand-k-epochs-hybrid"),
    )
)


def frontier_nodes(size: ExperimentSize, seed: int) -> list[Setting]:
    """Power iteration at the bytes of whole vectors with one bit a value, and with two."""
    budgets = [whole_bytes(PICTURES[size.images], values) for values in WHOLE_BITS[: size.node_budgets]]
    return [
        setting
        for split in SPLITS
        for setting in node_settings(size.images, size.nodes, size.node_rounds, budgets, seed, split)
    ]


def node_settings(
    data: str, nodes: int, rounds: int, budgets: Sequence[int], seed: int, split: str = "iid"
) -> list[Setting]:
    """Power iteration on a set of pictures, by every scheme for every kind of node, at every budget of bytes."""
    return [
        Setting(
            *("frontier-nodes", "power-iteration", data, scheme, None, seed, rounds, split, nodes),
            options=(("measure", "within"), ("bytes", budget)),
        )
        for budget in budgets
        for schemes in BY_KNOWLEDGE.values()
        for scheme in schemes
    ]


def frontier_gaussian(size: ExperimentSize, seed: int) -> list[Setting]:
    """Gaussian vectors, new in every round: whole ones in few bits, and auto, by how alike nodes are."""
    dim = size.correlated_dim
    whole = [whole_bytes(dim, values) for values in WHOLE_BITS]
    few, many = (int(bits * dim / 8) for bits in (FEW, MANY))
    wanted = {UNLIKE: [*whole, few, many], ALIKE: [few, many], MORE_ALIKE: [few, many]}
    options = (("measure", "within-mean"), ("dim", dim))
    return [
        Setting(
            *("frontier-gaussian", "new-vectors", "normal", scheme, None, seed, GAUSSIAN_ROUNDS, similar(correlation)),
            nodes=GAUSSIAN_NODES,
            options=(*options, ("bytes", budget), ("correlation", correlation)),
        )
        for correlation, budgets in wanted.items()
        for budget in budgets
        for scheme in (EDEN, "rand-k-balanced int8", AUTO["stateless"])
    ]


def frontier_network(size: ExperimentSize, seed: int) -> list[Setting]:
    """A network of 64, 300 and 10 units on digits, 8 nodes with labels by Dirichlet's law: its updates, 4.6 kB each."""
    options = (("measure", "within"), ("bytes", NETWORK_BYTES), ("hidden", 300), ("alpha", 0.5))
    return [
        Setting(
            *("frontier-network", "network", "digits", scheme, None, seed, size.network_rounds, "dirichlet"),
            nodes=NETWORK_NODES,
            options=(*options, ("rate", rate)),
        )
        for rate in (SWIFT, SLOW)
        for scheme in (*INT4, EDEN, AUTO["stateless"])
    ]


def whole_bytes(dim: int, values: ValueName) -> int:
    """The bytes of a frame of a whole vector in these values, header included.

    >>> whole_bytes(784, "eden-1"), whole_bytes(784, "eden-2")
    (166, 264)
    """
    return Run(named("identity", values=values), dim).payload_bytes
