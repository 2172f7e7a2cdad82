"""What compact frames gain on the weather data, as `examples/sensors/sizes.py` measures it."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SENSORS = Path(__file__).parents[2] / "examples" / "sensors"


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(SENSORS))
    yield importlib.import_module("sizes")
    for file in SENSORS.glob("*.py"):
        sys.modules.pop(file.stem, None)


def test_no_full_frame_fits_51_bytes(sizes: Any):
    readings = sizes.load(rounds=2, days=3, stations=5)
    assert sizes.run_of(readings, "rand-k", "int4", 51, "full") is None
    assert sizes.best(readings, "rand-k-spatial-avg", 51, "full", 2).startswith("the header does not fit")
    cell = sizes.best(readings, "rand-k-spatial-avg", 51, "compact", 2)
    assert re.fullmatch(r"(int4 \| 88|eden-3 \| 117|2-bit \| 176) \| 0\.\d{3} ± 0\.\d{3}", cell), cell


def test_100_bytes_of_a_day_have_less_than_half_the_error_in_compact_frames(sizes: Any):
    readings = sizes.load(rounds=4, days=1, stations=37)
    runs = [sizes.run_of(readings, "rand-k-spatial-avg", "int4", 100, frame) for frame in ("compact", "full")]
    compact, full = (np.mean(sizes.squared_errors(readings, run, range(2))) for run in runs)
    assert compact < full / 2
