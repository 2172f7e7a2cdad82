"""The bench measures what it says, against every baseline at hand, and its JSON holds what the table shows."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sparsemean.lab.bench import Case, bench, machine, over_a_link
from sparsemean.lab.cli.sizes import bits_of


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from sparsemean.lab.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "bench", *arguments], capture_output=True, text=True, check=False
    )


def test_every_row_is_a_ratio_of_two_times_of_the_same_run():
    rows = list(bench([Case("rand-k-spatial-avg", 20_000, 0.1, 3)], repeats=3))
    assert {row.what for row in rows} == {"encode", "server round"}
    assert {"dense mean", "choice and np.add.at", "Generator.choice and gather"} <= {row.baseline for row in rows}
    for row in rows:
        assert row.ratio == pytest.approx(row.baseline_seconds / row.seconds)
        assert 0 < row.low <= row.ratio <= row.high
        assert row.peak_bytes > 0


def test_a_link_adds_the_time_of_its_bytes_and_is_even_where_both_take_as_long():
    case = Case("rand-k", 100_000, 0.01, 3)
    slow = over_a_link(case, 1e3, repeats=1)
    assert (slow.bytes_sent, slow.bytes_dense) == (4064, 400_000)
    assert slow.dense / slow.ours == pytest.approx(400_000 / 4064, rel=0.01)
    assert slow.even_bits > 1e3


def test_the_command_writes_what_it_prints(tmp_path):
    out = tmp_path / "bench.json"
    small = ("--dims", "2000", "--shares", "10%", "--nodes", "2", "--repeats", "1")
    done = run(*small, "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "dense mean" in done.stdout
    found = json.loads(out.read_text())
    assert found["machine"]["cores"] == machine()["cores"]
    assert {row["case"]["dim"] for row in found["rows"]} == {2000}
    linked = run(*small, "--link", "1Mbit", "--json")
    assert json.loads(linked.stdout)["links"][0]["bytes_dense"] == 8000


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--dims", "many"), "is not a number from 1 on"),
        (("--link", "fast"), "speed of a link"),
        (("--schemes", "rand-l"), "did you mean"),
        (("--nodes", "1e6", "--dims", "1e6"), "do not fit into memory"),
        (("--shares", "0"), "share"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(arguments, told):
    done = run(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_speeds_as_people_write_them():
    assert [bits_of(text) for text in ("10Mbit", "1 gbit/s", "300")] == [1e7, 1e9, 300.0]
