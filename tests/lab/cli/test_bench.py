"""``sparsemean bench`` as people use it: what it measures and prints, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.bench import Case, machine
from sparsemean.lab.bench.link import over_a_link
from sparsemean.lab.bench.record import BenchRecord
from sparsemean.lab.cli.sizes import bits_of, count_of

from .command import command

SMALL = ("--dims", "2k", "--shares", "10%", "--nodes", "2", "--repeats", "1")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return command("bench", *arguments)


def test_a_link_adds_the_time_of_its_bytes_and_is_even_where_both_take_as_long():
    case = Case("rand-k", 100_000, 0.01, 3)
    slow = over_a_link(case, 1e3, repeats=1)
    assert (slow.bytes_sent, slow.bytes_dense) == (4064, 400_000)
    assert slow.dense / slow.ours == pytest.approx(400_000 / 4064, rel=0.01)
    assert slow.even_bits > 1e3
    whole = over_a_link(Case("identity", 1_000, 1.0, 2), 1e3, repeats=1)
    assert whole.even_bits == 0.0
    assert whole.unlike == pytest.approx(0.0, abs=1e-12)


def test_a_link_shows_what_the_speed_costs_and_what_is_quick_and_useless(tmp_path: Path):
    """Of n vectors that are unlike, answering 0 has an error of 1/n, and rand-k one of (1/p − 1)/n."""
    case = Case("rand-k-spatial-avg", 20_000, 0.2, 16)
    found = over_a_link(case, 1e6, repeats=1)
    assert found.unlike_zero == pytest.approx(1 / 16, rel=0.1)
    assert found.unlike is not None
    assert found.unlike_zero is not None
    assert found.unlike_zero < found.unlike < 1.5 * (1 / 0.2 - 1) / 16
    assert found.alike is not None
    assert found.alike < found.unlike
    assert found.alike_zero == pytest.approx(1 / 1.09, rel=0.05)
    record = BenchRecord(machine(), links=(found,))
    record.write(tmp_path / "links.json")
    (row,) = [line for line in run("--from", str(tmp_path / "links.json")).stdout.splitlines() if "spatial-avg" in line]
    assert row.split()[-3:] == [f"{found.unlike:.2g}", "useless", f"{found.alike:.2g}"]


def test_the_command_writes_what_it_prints_and_reads_it_again(tmp_path: Path):
    out, page, plot = tmp_path / "bench.json", tmp_path / "bench.html", tmp_path / "bench.png"
    done = run(*SMALL, "--out", str(out), "--report", str(page), "--plot", str(plot))
    assert done.returncode == 0, done.stderr
    assert "dense" in done.stdout
    found = json.loads(out.read_text())
    assert found["machine"]["cores"] == machine()["cores"]
    assert {row["case"]["dim"] for row in found["rows"]} == {2000}
    assert found["complete"] is True
    assert page.exists()
    assert plot.exists()
    again = run("--from", str(out), "--against", str(out))
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[:9] == done.stdout.splitlines()[:9]
    assert "Of 3 rows that both have, 0 are slower, 0 faster, and 3 the same" in again.stdout


def test_a_link_is_printed_as_json():
    linked = run(*SMALL, "--link", "1 Mbit/s", "--json")
    assert json.loads(linked.stdout)["links"][0]["bytes_dense"] == 8000


def test_schemes_and_values_may_be_all():
    done = run("--dims", "100", "--shares", "10%", "--nodes", "2", "--repeats", "1", "--values", "all", "--json")
    kinds = [row["case"]["values"] for row in json.loads(done.stdout)["rows"] if row["what"] == "encode"]
    assert kinds == ["float32", "float64", "float16", "bfloat16", "int8", "int4", "2-bit", "1-bit", "eden-1", "eden-4"]


def test_what_does_not_fit_is_left_out_and_said():
    done = run("--dims", "2000,1e11", "--shares", "10%", "--nodes", "2", "--repeats", "1")
    assert done.returncode == 0, done.stderr
    assert "Left out: rand-k-spatial-avg, d=100,000,000,000, k/d=10 %, n=2: needs about" in done.stdout


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path):
    """A real signal, sent by the process to itself once the fourth row is there."""
    out = tmp_path / "bench.json"
    stopping = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell leaves it ignored
from sparsemean.lab.cli import bench as command, main
measure = command.bench
def stopped(cases, repeats):
    for i, row in enumerate(measure(cases, repeats)):
        if i == 4:
            os.kill(os.getpid(), signal.SIGINT)
        yield row
command.bench = stopped
main()
"""
    wide = ["bench", *SMALL, "--schemes", "rand-k,top-k,wangni", "--out", str(out)]
    done = subprocess.run([sys.executable, "-c", stopping, *wide], capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    assert "Stopped after 4 rows, which are kept." in done.stdout
    found = json.loads(out.read_text())
    assert found["complete"] is False
    assert len(found["rows"]) == 4


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--dims", "many"), "is not a whole number from 1 on"),
        (("--dims", "2^50"), "dim goes up to"),
        (("--link", "fast"), "speed of a link"),
        (("--link", "10MB/s"), "in bits a second"),
        (("--link", "10"), "in bits a second"),
        (("--out", "."), "is a folder"),
        (("--plot", "a.png", "--schemes", "top-k"), "no plot without rounds of rand-k-spatial-avg"),
        (("--from", "a.json", "--link", "1Mbit"), "leave --link"),
        (("--schemes", "rand-l"), "did you mean"),
        (("--values", "int3"), "values is one of"),
        (("--nodes", "1e6", "--dims", "1e6"), "fits into memory"),
        (("--shares", "0"), "share"),
        (("--plot", "plot.gif"), "png, svg, pdf"),
        (("--against", "nowhere.json"), "cannot be read"),
        (("--from", "nowhere.json"), "cannot be read"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(arguments: tuple[str, ...], told: str):
    done = run(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("10Mbit", 1e7),
        ("10 Mbit/s", 1e7),
        ("10Mb", 1e7),
        ("1Gbit", 1e9),
        ("1 gbps", 1e9),
        ("300bit", 300.0),
        ("56k", 56e3),
    ],
)
def test_speeds_as_people_write_them(text: str, bits: float):
    assert bits_of(text) == bits


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("10000", 10**4),
        ("10k", 10**4),
        ("1e6", 10**6),
        ("1.5M", 1_500_000),
        ("2^22", 1 << 22),
        ("1_000", 1000),
        (" 7 ", 7),
    ],
)
def test_counts_as_people_write_them(text: str, count: int):
    assert count_of(text) == count


@pytest.mark.parametrize("text", ["", "0", "-3", "1.5", "2^", "^3", "1e999", "many", "10kB", "0.1k5", "1e6e6"])
def test_what_is_no_count_is_refused(text: str):
    with pytest.raises(InvalidInput, match="whole number"):
        count_of(text)
