"""Figure 2 and Appendix B: error against R2/R1, and the R2/R1 of real data."""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue.size import ExperimentSize
from sparsemean.lab.experiments.measures.ratio_grid import DECODERS
from sparsemean.lab.experiments.setting import EXACT, Setting

STATIONS = 37


def mse_vs_ratio(size: ExperimentSize, seed: int) -> list[Setting]:
    """n = 10, d = 100, as in the paper; the text says k = 1 and 50, the captions 0.1d and 0.5d: all three."""
    options = (("measure", "ratio-grid"), ("trials", size.grid_trials))
    return [
        Setting("mse-vs-ratio", "sign-flips", "synthetic", scheme, share, seed, nodes=10, options=options)
        for share in (0.01, 0.1, 0.5)
        for scheme in DECODERS
    ]


def ratio_first_round(size: ExperimentSize, seed: int) -> list[Setting]:
    """Power iteration on both image sets; the weather's first days beside them."""
    options = (("measure", "first-round"),)
    images = [
        Setting(*("ratio-first-round", "power-iteration", data, "rand-k", 0.1, seed, 1, split, size.nodes, options))
        for data in dict.fromkeys((size.images, size.colour))
        for split in ("iid", "non-iid")
    ]
    place = ("stations", STATIONS, options)
    return [*images, Setting("ratio-first-round", "stream", "weather", "rand-k", 0.1, seed, 1, *place)]


def ratio_rounds(size: ExperimentSize, seed: int) -> list[Setting]:
    """The same over many rounds, with exact means."""
    images = [
        Setting("ratio-rounds", "power-iteration", data, EXACT, None, seed, size.power_rounds, split, size.nodes)
        for data in dict.fromkeys((size.images, size.colour))
        for split in ("iid", "non-iid")
    ]
    return [*images, Setting("ratio-rounds", "stream", "weather", EXACT, None, seed, 31, "stations", STATIONS)]
