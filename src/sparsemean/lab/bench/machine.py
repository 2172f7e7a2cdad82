"""What was measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np

BUSY = 0.5  # load average above which something else is running


def machine() -> dict[str, str | int | float | bool]:
    """System, processor, versions, and whether something else was running."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": _version("numba"),
        "load": round(load, 2),
        "busy": load > BUSY,
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    names = [line for line in cpuinfo.read_text().splitlines() if "model name" in line] if cpuinfo.exists() else []
    return names[0].partition(":")[2].strip() if names else platform.processor()


def _version(module: str) -> str:
    try:
        found: str = __import__(module).__version__
    except ImportError:
        return "not installed"
    return found
