"""What the tests of the data sets share: a tiny set of their own, and an environment without data directories."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sparsemean.lab.datasets.entry import DatasetEntry, Download, File

CONTENT = {"a.txt": b"first file\n", "b.txt": b"second\n"}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def content() -> dict[str, bytes]:
    return dict(CONTENT)


@pytest.fixture
def entry() -> DatasetEntry:
    """A set of two small files, to be downloaded as they are."""
    return DatasetEntry(
        name="tiny",
        folder="tiny-folder",
        files=tuple(File(name, len(content), sha256(content)) for name, content in CONTENT.items()),
        page="https://example.org/tiny",
        licence="CC0",
        attribution="nobody",
        base_url="https://example.invalid/files",
        downloads=tuple(Download(name, sha256(content)) for name, content in CONTENT.items()),
    )


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Neither the environment nor the current directory leads to data; the folder that is current is returned."""
    current = tmp_path / "nowhere" / "current"
    current.mkdir(parents=True)
    monkeypatch.chdir(current)
    monkeypatch.delenv("SPARSEMEAN_DATA", raising=False)
    return current
