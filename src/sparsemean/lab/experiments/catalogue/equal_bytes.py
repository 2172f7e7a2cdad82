"""Power iteration and K-means once more, with as many bytes as rand-k sends instead of as many coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparsemean.lab.experiments.catalogue.learning import SPLITS, kmeans_setting, power_setting
from sparsemean.lab.experiments.catalogue.schemes import BEYOND, FEWER_BITS, SIZE_DEPENDS, SPARSE
from sparsemean.lab.experiments.catalogue.size import ExperimentSize
from sparsemean.lab.experiments.setting import EXACT, Setting

SHARE = 0.1


def power_iteration_bytes(size: ExperimentSize, seed: int) -> list[Setting]:
    return _same_bytes(power_setting, size, seed, "power-iteration-bytes")


def kmeans_bytes(size: ExperimentSize, seed: int) -> list[Setting]:
    return _same_bytes(kmeans_setting, size, seed, "kmeans-bytes")


def _same_bytes(
    make: Callable[[ExperimentSize, int, str, float | None, str, str], Setting],
    size: ExperimentSize,
    seed: int,
    figure: str,
) -> list[Setting]:
    """Schemes that send seeded float32 samples have rand-k's bytes anyway, and share their runs with other figures."""
    made = []
    for split in SPLITS:
        made.append(make(size, seed, EXACT, None, split, figure))
        for scheme in (*SPARSE, *BEYOND, *FEWER_BITS):
            setting = make(size, seed, scheme, SHARE, split, figure)
            refit = scheme in SIZE_DEPENDS or scheme in FEWER_BITS
            made.append(replace(setting, options=(("budget", "bytes"),)) if refit else setting)
    return made
