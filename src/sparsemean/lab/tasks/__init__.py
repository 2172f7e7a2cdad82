"""The tasks of the paper's evaluation, for any arrays: what nodes send, and what the server does with the mean."""

from __future__ import annotations

from .base import Task
from .kmeans import KMeans
from .linear import LinearRegression
from .logistic import LogisticRegression
from .node_rows import NodeRows
from .power_iteration import PowerIteration
from .quadratic import Quadratic
from .stream import Stream

__all__ = [
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "NodeRows",
    "PowerIteration",
    "Quadratic",
    "Stream",
    "Task",
]
