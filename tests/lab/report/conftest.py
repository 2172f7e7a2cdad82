"""One set of tables and one page for all tests of the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsemean.lab.report import write_report

from .fake import write_tables


@pytest.fixture(scope="session")
def out_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``sparsemean reproduce`` leaves behind."""
    return write_tables(tmp_path_factory.mktemp("reproduction"), seeds=3, rounds=12)


@pytest.fixture(scope="session")
def page(out_dir: Path) -> Path:
    """The report about it."""
    return write_report(
        out_dir, out_dir / "report.html", "Figures & <claims>", "First.\n\nSecond <b>.", "sparsemean reproduce --out x"
    )
