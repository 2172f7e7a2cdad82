"""The site builds without a warning, so that no link is broken, and its reference has every public name."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import sparsemean as sm
from sparsemean import extending, theory

DOCS = Path(__file__).parents[2] / "docs"
ELSEWHERE = {"Decoder", "Encoder", "Memory"}  # extending's, which are described as names of the package


def test_the_site_builds_without_warnings_and_describes_every_public_name(tmp_path: Path) -> None:
    pytest.importorskip("furo", reason="the site needs Sphinx and its theme: pip install 'sparsemean[docs]'")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(tmp_path / "trees")]
    command += [str(DOCS), str(tmp_path / "site")]
    built = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stderr
    inventory = (tmp_path / "site" / "objects.inv").read_bytes().split(b"\n", 4)[4]  # below four lines of header
    described = {line.partition(" ")[0] for line in zlib.decompress(inventory).decode().splitlines()}
    wanted = {f"sparsemean.{name}" for name in sm.__all__ if name not in ("__version__", "theory")}
    wanted |= {f"sparsemean.theory.{name}" for name in theory.__all__}
    wanted |= {f"sparsemean.extending.{name}" for name in extending.__all__ if name not in ELSEWHERE}
    assert wanted <= described, wanted - described
