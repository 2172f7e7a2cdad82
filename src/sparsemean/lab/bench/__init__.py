"""Speed, as ratios against named baselines in the same process and run."""

from sparsemean.lab.bench.link import Break, over_a_link
from sparsemean.lab.bench.machine import machine
from sparsemean.lab.bench.rows import Case, Row, bench

__all__ = ["Break", "Case", "Row", "bench", "machine", "over_a_link"]
