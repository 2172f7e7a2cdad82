"""The machine is described, and what else ran on it is noticed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sparsemean.lab.bench.machine import BUSY, Others, free_memory, machine, total_memory

counted = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux counts the time of all processes")


def test_it_says_what_was_measured_on():
    here = machine()
    assert here["numpy"] == np.__version__
    assert int(here["cores"]) >= 1
    assert here["processor"]
    assert {"numba", "scipy", "torch", "python", "system", "memory"} <= set(here)


def test_memory_is_told_in_bytes():
    assert 10**8 < free_memory() <= total_memory() < 10**15


@counted
def test_other_processes_are_noticed_and_our_own_work_is_not():
    def busy_for(seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            sum(range(1000))

    alone = Others()
    busy_for(0.4)
    before = alone.cores()
    code = "import time\nprint(flush=True)\nend = time.perf_counter() + 20\nwhile time.perf_counter() < end: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        watched = Others()
        busy_for(0.8)
        beside = watched.cores()
        other.kill()
    # Whatever else runs here runs during both; half a core less than the whole one leaves room for it to stop.
    assert beside > max(BUSY, min(before, 0.2))
