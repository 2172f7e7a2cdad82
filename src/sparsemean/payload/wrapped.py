"""Values that wait for what the receiver expects of their sender."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy.typing as npt

from sparsemean._types import Doubles, Floats
from sparsemean.payload.noise import Levels


class Resolved(NamedTuple):
    """Values of x once an expectation has told which ones were meant.

    Attributes
    ----------
    values, kept, noise
        As in ``Part``.
    failed : int
        Tiles of which it could not be told; their values are the expectation.
    """

    values: Floats
    kept: Floats
    noise: Levels
    failed: int


class Wrapped(ABC):
    """What a part holds in place of its values until then."""

    @abstractmethod
    def near(self, expected: Doubles) -> Resolved:
        """The values, where these are expected."""

    @property
    @abstractmethod
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """What it holds."""
