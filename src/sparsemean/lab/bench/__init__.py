"""Speed of the library, as ratios against named baselines in the same process and run."""

from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.machine import machine
from sparsemean.lab.bench.measurement import Measurement, bench, too_large

__all__ = ["Case", "Measurement", "bench", "machine", "too_large"]
