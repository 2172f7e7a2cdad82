"""The tasks of the paper's evaluation, on any arrays: what nodes send, and what the server does with the mean."""

from __future__ import annotations

from .base import Task
from .kmeans import KMeans
from .logistic import LogisticRegression
from .network import FederatedNetwork
from .node_rows import NodeRows
from .power_iteration import PowerIteration
from .quadratic import Quadratic
from .stream import StreamTask, abrupt_change, new_vectors

__all__ = [
    "FederatedNetwork",
    "KMeans",
    "LogisticRegression",
    "NodeRows",
    "PowerIteration",
    "Quadratic",
    "StreamTask",
    "Task",
    "abrupt_change",
    "new_vectors",
]
