"""The tasks of the paper's evaluation, on any arrays: what nodes send, and what the server does with the mean."""

from __future__ import annotations

from .base import Task
from .kmeans import KMeans
from .logistic import LogisticRegression
from .node_rows import NodeRows
from .power_iteration import PowerIteration
from .quadratic import Quadratic
from .stream import StreamTask, abrupt_change

__all__ = [
    "KMeans",
    "LogisticRegression",
    "NodeRows",
    "PowerIteration",
    "Quadratic",
    "StreamTask",
    "Task",
    "abrupt_change",
]
