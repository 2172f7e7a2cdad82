"""The example is run as its documentation says, in its quick form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sparsemean[torch]'")
pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'sparsemean[lab]'")

EXAMPLE = Path(__file__).parents[2] / "examples" / "outer" / "train.py"


def test_a_row_for_each_exchange_with_its_bytes_loss_and_time(tmp_path):
    keep = tmp_path / "outcomes.jsonl"
    command = [sys.executable, str(EXAMPLE), "--quick", "--keep", str(keep)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    found = {row[0]: row[1:] for row in rows}
    assert len(found) == len(keep.read_text().splitlines()) == 8
    dim = 64 * 128 + 128 + 128 * 10 + 10
    assert found["dense"][:3] == [f"{4 * dim + 64:,}"] * 2 + ["1 ×"]
    assert found["fp16"][3] == found["dense"][3]  # to the digits that are shown
    for name, (up, down, _, loss, *_) in found.items():
        assert 0 < int(up.replace(",", "")) <= 4 * dim + 64, name
        assert float(loss.split(" ± ")[0]) < 2.31, name  # ln 10 is what guessing has
        assert name in ("dense", "fp16") or int(down.replace(",", "")) < 4 * dim / 5, name
    again = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert again.stdout.splitlines()[-10:] == done.stdout.splitlines()[-10:], "kept outcomes are not played again"
