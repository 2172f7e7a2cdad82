"""Encoders: vector → Payload, one a file."""

from sparsemean.encoders.auto import Auto
from sparsemean.encoders.base import Encoder, EncoderFacts, State, Stateful
from sparsemean.encoders.chunked_top_k import ChunkedTopK
from sparsemean.encoders.difference import Difference
from sparsemean.encoders.error_feedback import ErrorFeedback
from sparsemean.encoders.identity import Identity
from sparsemean.encoders.induced import Induced
from sparsemean.encoders.lazy import Lazy
from sparsemean.encoders.one_of import OneOf
from sparsemean.encoders.rand_k import RandK
from sparsemean.encoders.relative import Relative
from sparsemean.encoders.remembered import Remembered
from sparsemean.encoders.rtop_k import RTopK
from sparsemean.encoders.sign import Sign
from sparsemean.encoders.top_k import TopK
from sparsemean.encoders.wangni import Wangni

__all__ = [
    "Auto",
    "ChunkedTopK",
    "Difference",
    "Encoder",
    "EncoderFacts",
    "ErrorFeedback",
    "Identity",
    "Induced",
    "Lazy",
    "OneOf",
    "RTopK",
    "RandK",
    "Relative",
    "Remembered",
    "Sign",
    "State",
    "Stateful",
    "TopK",
    "Wangni",
]
