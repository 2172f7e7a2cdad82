"""The example is run as its documentation says, in its quick form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sparsemean[torch]'")
pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'sparsemean[lab]'")
pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'sparsemean[report]'")

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp" / "train.py"


def test_one_table_at_equal_bytes_and_a_plot(tmp_path):
    plot = tmp_path / "ddp.png"
    command = [sys.executable, str(EXAMPLE), "--quick", "--plot", str(plot)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    sent = {row[0]: int(row[1].replace(",", "")) for row in rows}
    powersgd = sent.pop("PowerSGD, rank 4")
    assert sent.pop("dense") > 15 * powersgd
    assert len(sent) >= 4
    for name, size in sent.items():
        assert size == pytest.approx(powersgd, rel=0.01), name
    assert plot.read_bytes().startswith(b"\x89PNG")
