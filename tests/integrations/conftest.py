"""Engines take turns: each starts processes by the dozen, and on two cores two of them at once end in time-outs.

They begin first, since together they take longest. Tests of the integrations that start no engine go to any worker.
"""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
collect_ignore = ["ray_session.py"]  # a program without examples, which imports what stands beside it
STARTS_ENGINES = (
    "flower_processes",
    "ray",
    "torch_ddp",
    "torch_ddp_example",
    "torch_outer",
    "torch_outer_example",
    "torchft",
    "turns",
)
# The sensor network is one too: stations, their server and a broker, which must answer each other in time.
ENGINES = {FOLDER / f"test_{name}.py" for name in STARTS_ENGINES} | {FOLDER.parent / "examples" / "test_sensors.py"}


@pytest.hookimpl(tryfirst=True)  # xdist looks at the marks when it is its turn
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    engines = [item for item in items if item.path in ENGINES]
    for item in engines:
        item.add_marker(pytest.mark.xdist_group("engines"))
    first = set(engines)
    items.sort(key=lambda item: item not in first)
