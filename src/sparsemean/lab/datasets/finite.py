"""The refusal of NaN and infinity, which no mean survives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput


def refuse_non_finite(numbers: Doubles, path: Path, place: Callable[..., str]) -> None:
    """Nothing, unless a number is NaN or infinite: then an error says how many are, and names the first one's place."""
    wrong = ~np.isfinite(numbers)
    if count := np.count_nonzero(wrong):
        first = np.unravel_index(int(np.argmax(wrong)), numbers.shape)
        raise InvalidInput(
            f"{path}: {count} of {numbers.size} numbers are NaN or infinite, the first ({numbers[first]}) at "
            f"{place(*map(int, first))}; repair or leave them out first"
        )
