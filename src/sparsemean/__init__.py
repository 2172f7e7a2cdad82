"""sparsemean: the mean of vectors on many nodes, from a few of their coordinates, and how good it is."""

from sparsemean import theory
from sparsemean._version import __version__
from sparsemean.client import Client
from sparsemean.decoders import Decoder, Mean, Spatial
from sparsemean.encoders import (
    Difference,
    Encoder,
    ErrorFeedback,
    Identity,
    Induced,
    Lazy,
    OneOf,
    RandK,
    RTopK,
    TopK,
    Wangni,
)
from sparsemean.errors import (
    CheckFailed,
    ConflictingPayload,
    DivergenceWarning,
    ForeignPayload,
    IncompatibleScheme,
    InvalidInput,
    MalformedPayload,
    NonFiniteValues,
    OutOfStep,
    PayloadError,
    SparseMeanError,
    TooFewNodes,
    WrongRound,
)
from sparsemean.layers import Layers
from sparsemean.memory import Hybrid, Memory, Offset, PerNode, Shared, SharedStable, Window
from sparsemean.results import Correlation, Estimate, Receipt
from sparsemean.run import Run
from sparsemean.schemes import Scheme, named, names
from sparsemean.server import Server
from sparsemean.simulation import estimate_mean, simulate

__all__ = [
    "CheckFailed",
    "Client",
    "ConflictingPayload",
    "Correlation",
    "Decoder",
    "Difference",
    "DivergenceWarning",
    "Encoder",
    "ErrorFeedback",
    "Estimate",
    "ForeignPayload",
    "Hybrid",
    "Identity",
    "IncompatibleScheme",
    "Induced",
    "InvalidInput",
    "Layers",
    "Lazy",
    "MalformedPayload",
    "Mean",
    "Memory",
    "NonFiniteValues",
    "Offset",
    "OneOf",
    "OutOfStep",
    "PayloadError",
    "PerNode",
    "RTopK",
    "RandK",
    "Receipt",
    "Run",
    "Scheme",
    "Server",
    "Shared",
    "SharedStable",
    "SparseMeanError",
    "Spatial",
    "TooFewNodes",
    "TopK",
    "Wangni",
    "Window",
    "WrongRound",
    "__version__",
    "estimate_mean",
    "named",
    "names",
    "simulate",
    "theory",
]
