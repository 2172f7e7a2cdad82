"""What one process compiled, the next one only loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROUND = """
import numpy as np
import sparsemean as sm
from sparsemean.kernels import compiled, compiled_arrays

sm.estimate_mean(np.ones((3, 5000), np.float32), sm.named("rand-k-spatial-avg", k=0.1))
loops = [loop for module in (compiled, compiled_arrays) for loop in vars(module).values() if hasattr(loop, "stats")]
print(*(sum(sum(getattr(loop.stats, kind).values()) for loop in loops) for kind in ("cache_hits", "cache_misses")))
"""


def hits_and_misses(folder: Path) -> list[int]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", ROUND], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return [int(number) for number in done.stdout.split()]


def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    hits, misses = hits_and_misses(tmp_path)
    assert hits == 0 < misses
    hits, misses = hits_and_misses(tmp_path)
    assert misses == 0 < hits
