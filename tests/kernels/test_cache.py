"""What one process compiled, the next one only loads."""

from __future__ import annotations

import subprocess
import sys

ROUND = """
import numpy as np
import sparsemean as sm
from sparsemean.kernels import compiled, compiled_arrays

sm.estimate_mean(np.ones((3, 5000), np.float32), sm.named("rand-k-spatial-avg", k=0.1))
loops = [loop for module in (compiled, compiled_arrays) for loop in vars(module).values() if hasattr(loop, "stats")]
print(*(sum(sum(getattr(loop.stats, kind).values()) for loop in loops) for kind in ("cache_hits", "cache_misses")))
"""


def hits_and_misses() -> list[int]:
    done = subprocess.run([sys.executable, "-c", ROUND], check=True, stdout=subprocess.PIPE, text=True)
    return [int(number) for number in done.stdout.split()]


def test_the_second_process_compiles_nothing() -> None:
    hits_and_misses()  # compiles what no process has compiled before
    hits, misses = hits_and_misses()
    assert misses == 0 < hits
