"""Appendix D, and what the paper says can be done without drawing it."""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue.correlation import STATIONS
from sparsemean.lab.experiments.catalogue.learning import SHARES, SPLITS, power_setting, with_shares
from sparsemean.lab.experiments.catalogue.schemes import BEYOND, SPARSE, VARIANTS
from sparsemean.lab.experiments.catalogue.size import ExperimentSize
from sparsemean.lab.experiments.setting import Setting


def shared_memory(size: ExperimentSize, seed: int) -> list[Setting]:
    """Power iteration, IID, as before; a month of weather beside it, where nodes follow nobody's model."""
    beyond = [(scheme, share) for scheme in BEYOND for share in SHARES]
    images = [
        power_setting(size, seed, scheme, share, "iid", "shared-memory")
        for scheme, share in (*with_shares(SHARES), *beyond)
    ]
    weather = [
        Setting("shared-memory", "stream", "weather", scheme, 0.1, seed, 31, "stations", STATIONS)
        for scheme in (*SPARSE, *BEYOND)
    ]
    return [*images, *weather]


def variants(size: ExperimentSize, seed: int) -> list[Setting]:
    """Other memories, and Top-k nodes."""
    return [power_setting(size, seed, scheme, 0.1, split, "variants") for split in SPLITS for scheme in VARIANTS]
