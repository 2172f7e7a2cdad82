"""Estimated run times of settings, and the order in which to run them."""

from __future__ import annotations

from collections.abc import Iterable

from sparsemean.lab.experiments.setting import EXACT, Setting

NODE_SECONDS = 2.5e-4
"""Per node and round: encode, accept, close."""
SLOW_SCHEMES = {"wangni": 2.5, "induced": 2.5}
ROUND_SECONDS = {
    ("power-iteration", "fashion-mnist"): 0.03,
    ("power-iteration", "cifar-10"): 0.2,
    ("kmeans", "fashion-mnist"): 0.2,
    ("logistic", "cifar-10"): 0.1,
}
"""Per round: the computation of the task itself."""
TRIAL_SECONDS = {"ratio-grid": 0.002, "theory": 0.02, "encode-cost": 0.002, "alike": 0.3, "alike-means": 0.01}
"""Per trial, for measures without rounds."""


def seconds(setting: Setting) -> float:
    """Estimated seconds of one process."""
    measure = str(setting.option("measure", ""))
    if measure in TRIAL_SECONDS:
        return TRIAL_SECONDS[measure] * float(setting.option("trials", 1000))
    slowness = 0.0 if setting.scheme == EXACT else SLOW_SCHEMES.get(setting.scheme, 1.0)
    a_round = ROUND_SECONDS.get((setting.task, setting.data), 0.0) + slowness * setting.nodes * NODE_SECONDS
    return setting.rounds * a_round


def longest_first(settings: Iterable[Setting]) -> list[Setting]:
    """Longest first, those of one data set and task together, because a process keeps only the latest of each."""
    known = list(settings)

    def group(setting: Setting) -> tuple[str, str, str, int]:
        return (setting.data, setting.task, setting.split, setting.seed)

    of_data: dict[str, float] = {}
    of_group: dict[tuple[str, str, str, int], float] = {}
    for setting in known:
        of_data[setting.data] = max(of_data.get(setting.data, 0.0), seconds(setting))
        of_group[group(setting)] = max(of_group.get(group(setting), 0.0), seconds(setting))
    return sorted(
        known,
        key=lambda s: (-of_data[s.data], s.data, -of_group[group(s)], group(s), -seconds(s), s.share or 0, s.canonical),
    )
