"""sparsemean: the mean of vectors on many nodes, from a few of their coordinates, and how good it is."""

from types import ModuleType as _ModuleType

from sparsemean import theory
from sparsemean._names import SchemeName as SchemeName
from sparsemean._names import ValueName as ValueName
from sparsemean._version import __version__
from sparsemean.client import Client
from sparsemean.decoding import Decoder, Mean, Spatial
from sparsemean.encoders import Auto as Auto
from sparsemean.encoders import ChunkedTopK as ChunkedTopK
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
from sparsemean.encoders import Relative as Relative
from sparsemean.encoders import Remembered as Remembered
from sparsemean.encoders import Sign as Sign
from sparsemean.errors import BrokenServer as BrokenServer  # not in __all__, whose names are fixed
from sparsemean.errors import (
    CheckFailed,
    ConflictingPayload,
    DamagedJournal,
    DivergenceWarning,
    ForeignJournal,
    ForeignPayload,
    IncompatibleScheme,
    InvalidInput,
    JournalError,
    MalformedPayload,
    NonFiniteValues,
    OutOfStep,
    PayloadError,
    RoundFull,
    SparseMeanError,
    TooFewNodes,
    WrongRound,
)
from sparsemean.errors import WrongPlan as WrongPlan
from sparsemean.layers import Layers
from sparsemean.memory import Hybrid, Memory, Offset, PerNode, Shared, SharedStable, Window
from sparsemean.results import Correlation, Estimate, Receipt
from sparsemean.run import Run
from sparsemean.sampling import Balanced as Balanced
from sparsemean.sampling import Draw as Draw
from sparsemean.sampling import Epochs as Epochs
from sparsemean.sampling import Independent as Independent
from sparsemean.schemes import Scheme, named, names
from sparsemean.server import Clip, CsvReports, PrometheusReports, RoundReport, Server, TensorBoardReports
from sparsemean.simulation import estimate_mean, simulate

__all__ = [
    "CheckFailed",
    "Client",
    "Clip",
    "ConflictingPayload",
    "Correlation",
    "CsvReports",
    "DamagedJournal",
    "Decoder",
    "Difference",
    "DivergenceWarning",
    "Encoder",
    "ErrorFeedback",
    "Estimate",
    "ForeignJournal",
    "ForeignPayload",
    "Hybrid",
    "Identity",
    "IncompatibleScheme",
    "Induced",
    "InvalidInput",
    "JournalError",
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
    "PrometheusReports",
    "RTopK",
    "RandK",
    "Receipt",
    "RoundFull",
    "RoundReport",
    "Run",
    "Scheme",
    "Server",
    "Shared",
    "SharedStable",
    "SparseMeanError",
    "Spatial",
    "TensorBoardReports",
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


def __dir__() -> list[str]:
    """What programs use, and no modules but ``theory``."""
    own = {name for name, thing in globals().items() if name[0] != "_" and not isinstance(thing, _ModuleType)}
    return sorted({*__all__, *own})
