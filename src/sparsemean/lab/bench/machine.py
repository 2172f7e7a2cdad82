"""The machine: its description, its memory, and the load by other processes."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

BUSY = 0.15  # of a core that others may take before what is measured is called doubtful
LIBRARIES = ("numpy", "numba", "scipy", "torch")

Machine = dict[str, str | int | float]


def machine() -> Machine:
    """System, processor and versions."""
    libraries: Machine = {library: _version(library) for library in LIBRARIES}
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "memory": total_memory(),
        "python": platform.python_version(),
        **libraries,
    }


class Others:
    """The load by other processes since this object was made.

    The system counts the time of all cores that was not idle, and ours is known: the rest is theirs. A virtual
    machine's stolen time counts as theirs too. Where the system does not tell, the load average has to do.
    """

    def __init__(self) -> None:
        self._start = time.perf_counter(), _all_busy(), _own_busy()
        self._load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0

    def cores(self) -> float:
        """Cores that others had on average."""
        start, busy, own = self._start
        everything = _all_busy()
        if busy is None or everything is None:
            return self._load
        spent = max(time.perf_counter() - start, 0.1)  # the system counts in hundredths of a second
        return max(0.0, round((everything - busy - (_own_busy() - own)) / spent, 2))


def free_memory() -> int:
    """Bytes that can be had without swapping."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return total_memory() // 2


def total_memory() -> int:
    """Bytes of memory the machine has; 4 GB where it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4_000_000_000


def _all_busy() -> float | None:
    """Seconds of all cores that were not idle; the columns are user nice system idle iowait irq softirq steal."""
    try:
        first = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:9]
        ticks = [int(field) for field in first]
        return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def _own_busy() -> float:
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    names = [line for line in cpuinfo.read_text().splitlines() if "model name" in line] if cpuinfo.exists() else []
    return names[0].partition(":")[2].strip() if names else platform.processor()


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
