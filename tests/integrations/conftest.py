"""Engines take turns: each starts processes by the dozen, and on two cores two of them at once end in time-outs.

They begin first, since together they take longest.
"""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)  # xdist looks at the marks when it is its turn
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    engines = [item for item in items if Path(__file__).parent in item.path.parents]
    for item in engines:
        item.add_marker(pytest.mark.xdist_group("engines"))
    first = set(engines)
    items.sort(key=lambda item: item not in first)
