"""The tasks of the paper's evaluation, for any arrays: what nodes send, and what the server does with the mean."""

from __future__ import annotations

from .base import Task
from .kmeans import KMeans
from .linear import LinearRegression
from .logistic import LogisticRegression
from .power_iteration import PowerIteration
from .quadratic import Quadratic
from .shards import Shards
from .stream import Stream

__all__ = [
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "PowerIteration",
    "Quadratic",
    "Shards",
    "Stream",
    "Task",
]
