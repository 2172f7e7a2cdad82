"""``sparsemean bench --ddp``: what it measures of a small model, and prints."""

from __future__ import annotations

import json
import math
import sys

import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.bench.ddp import DENSE, FP16, METHODS, POWER, DdpRecord, DdpRow, ddp_record
from sparsemean.lab.bench.machine import machine
from sparsemean.lab.bench.timing import Timing
from sparsemean.lab.cli.bench_ddp import show

from .command import command


def test_every_method_takes_its_bytes_and_time():
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sparsemean[torch]'")
    done = command("bench", "--ddp", "--parameters", "20k", "--repeats", "1", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = {row["method"]: row for row in found["rows"]}
    assert tuple(rows) == METHODS
    width, biases = 71, 4 * 71  # four layers; biases go whole, beside k = 252 of 5,041 coordinates
    assert found["parameters"] == 4 * width**2 + biases
    sent = {name: row["bytes_sent"] for name, row in rows.items()}
    assert sent[DENSE] == 2 * sent[FP16] == 4 * found["parameters"]
    assert sent["rand-k-spatial-avg, float32, k = 5 %"] == 4 * (4 * 252 + biases)
    assert (
        sent["rand-k-balanced, int8, k = 20 %"]
        == sent["rand-k-hybrid, int8, k = 20 %"]
        == 4 * (1008 + 2 * 4 + 4 * width)
    )
    assert sent[POWER] < sent[FP16]
    for row in rows.values():  # of two ranks, whatever the collective
        assert row["bytes_moved"] == row["bytes_sent"]
        assert row["ratio"] == pytest.approx(row["seconds"]["median"] / rows[DENSE]["seconds"]["median"])
        assert row["processor"]["median"] > 0.0
    assert rows[DENSE]["pays_below"] == 0.0


def test_the_table_says_which_links_are_slow_enough(capsys):
    once = Timing.of([0.1])
    rows = (
        DdpRow(DENSE, once, once, 4_000_000, 4_000_000, 0, 1.0, 0.0),
        DdpRow("slower", Timing.of([0.12]), once, 400_000, 400_000, None, 1.2, 1.44e9),
        DdpRow("faster", Timing.of([0.08]), once, 400_000, 400_000, 17_000_000, 0.8, math.inf),
        DdpRow("longer", Timing.of([0.08]), once, 5_000_000, 5_000_000, 0, 0.8, 0.0),
    )
    show(DdpRecord(machine(), 1_000_000, 2, 1.0, rows))
    said = capsys.readouterr().out
    cells = {line.split()[0]: line.split() for line in said.splitlines() if line.strip()}
    assert cells["slower"][-1] == "1440"
    assert cells["faster"][1:] == ["80", "0.80", "1.00", "400,000", "17", "MB", "always"]
    assert cells["longer"][-1] == "never"
    assert "Something else ran meanwhile, on 1 of" in said


def test_what_cannot_be_measured_is_refused_with_the_remedy(monkeypatch):
    for arguments, remedy in (
        (["--ddp", "--link", "1Mbit"], "leave the others out"),
        (["--ddp", "--nodes", "4"], "leave the others out"),
        (["--parameters", "100"], "goes with --ddp"),
        (["--ddp", "--parameters", "100"], "16,384 parameters or more"),
    ):
        done = command("bench", *arguments)
        assert done.returncode != 0
        assert remedy in done.stderr
    with pytest.raises(InvalidInput, match="'top-k' is not measured; use dense"):
        ddp_record(methods=["top-k"])
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InvalidInput, match=r"pip install 'sparsemean\[torch\]'"):
        ddp_record()
