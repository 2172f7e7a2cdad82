"""From the payloads of a round to the mean innovation, and how good it is."""

from sparsemean.decoding.decoders import Belief, Decoder, Mean, Spatial
from sparsemean.decoding.ratio import Ratio
from sparsemean.decoding.shrunk import Shrunk
from sparsemean.decoding.totals import RoundTotals

__all__ = ["Belief", "Decoder", "Mean", "Ratio", "RoundTotals", "Shrunk", "Spatial"]
