"""Size of the experiments: as in the paper, or a few minutes on data that come with packages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExperimentSize:
    """Data, nodes and rounds of every figure, and how many seeds each setting is run with."""

    seeds: int
    images: str
    """For power iteration and K-means."""
    colour: str
    """For logistic regression; its R2/R1 is shown beside that of ``images``."""
    nodes: int
    power_rounds: int
    kmeans_rounds: int
    logistic_rounds: int
    logistic_rate: float
    loss_rows: int
    """Training rows of which the logistic loss is taken; 0 for all."""
    quadratic_rounds: int
    beyond_shares: tuple[float, ...]
    """Of the figures past the paper."""
    correlated_dim: int
    """Of the nearly equal Gaussian vectors."""
    designed_trials: int
    """Single rounds of each setting of correlated vectors."""
    dithered: tuple[str, ...]
    """Kinds of values whose dither senders share out."""
    weather_runs: int
    """Runs of the weather for each seed, where designed draws are compared."""
    grid_trials: int
    theory_trials: int
    node_rounds: int
    """Of power iteration, where nodes of several kinds are compared."""
    node_budgets: int
    """At the bytes of whole vectors with 1, 2, … bits a value."""
    network_rounds: int


FULL = ExperimentSize(
    seeds=3,
    images="fashion-mnist",
    colour="cifar-10",
    nodes=100,
    power_rounds=60,
    kmeans_rounds=25,
    logistic_rounds=300,
    logistic_rate=0.01,
    loss_rows=5000,
    quadratic_rounds=300,
    beyond_shares=(0.05, 0.1, 0.2),
    correlated_dim=65536,
    designed_trials=200,
    dithered=("1-bit", "2-bit", "int4", "int8"),
    weather_runs=4,
    grid_trials=1000,
    theory_trials=1000,
    node_rounds=41,
    node_budgets=2,
    network_rounds=30,
)

QUICK = ExperimentSize(
    seeds=3,
    images="digits",
    colour="digits",
    nodes=40,
    power_rounds=22,
    kmeans_rounds=12,
    logistic_rounds=70,
    logistic_rate=0.1,
    loss_rows=0,
    quadratic_rounds=160,
    beyond_shares=(0.1,),
    correlated_dim=4096,
    designed_trials=25,
    dithered=("1-bit",),
    weather_runs=1,
    grid_trials=1000,
    theory_trials=120,
    node_rounds=12,
    node_budgets=1,
    network_rounds=8,
)
