"""Whose data it is: shown wherever a figure made from it is."""

from __future__ import annotations

from collections.abc import Iterable

from sparsemean.lab.datasets import ENTRIES, digits
from sparsemean.lab.report.words import setting
from sparsemean.lab.weather import load_weather


def sources(names: Iterable[str]) -> dict[str, str]:
    """Data set, as people call it → its attribution; a name that is not known brings none.

    >>> sources(["cifar-10", "simulated"])
    {'CIFAR-10': 'Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009 (CIFAR-10)'}
    """
    found = {name: text for name in dict.fromkeys(names) if (text := _attribution(name))}
    return {setting("data", name): text for name, text in found.items()}


def _attribution(name: str) -> str:
    if name in ENTRIES:
        return ENTRIES[name].attribution
    return {"digits": lambda: digits.ATTRIBUTION, "weather": lambda: load_weather().attribution}.get(name, str)()
