"""The scheme of a setting: its name, its values and its k."""

from __future__ import annotations

from sparsemean.encoders.size import count
from sparsemean.errors import InvalidInput
from sparsemean.lab.experiments.setting import EXACT, Setting
from sparsemean.schemes import Scheme, named


def k_of(setting: Setting, dim: int) -> int | None:
    """How many coordinates its share is; None for the exact mean."""
    if setting.scheme == EXACT:
        return None
    if setting.share is None:
        raise InvalidInput(f"{setting.scheme} needs a share of the coordinates to send")
    return count(setting.share, dim)


def scheme_of(setting: Setting, k: int | tuple[int, ...]) -> Scheme:
    """The scheme with this k, or with these to choose from.

    >>> scheme_of(Setting("mine", "stream", "weather", "rand-k", 0.1), 8) == named("rand-k", 8)
    True
    """
    name, _, kind = setting.scheme.partition(" ")
    return named(name, k, values=kind or str(setting.option("values", "float32")))
