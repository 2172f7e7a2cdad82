"""Speed, as ratios against named baselines in the same process and run."""

from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.machine import machine
from sparsemean.lab.bench.rows import Row, bench, too_large

__all__ = ["Case", "Row", "bench", "machine", "too_large"]
