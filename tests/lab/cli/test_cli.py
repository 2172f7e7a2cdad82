"""The command as people use it: what it prints, how it ends; in a process of its own where that may matter."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.lab.cli.sizes import bytes_of, share_of

from .command import command as sparsemean

COMMAND = [sys.executable, "-c", "from sparsemean.lab.cli import main; main()"]


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    settings = {**os.environ, "COLUMNS": "140"}
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, env=settings, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def vectors(tmp_path_factory) -> Path:
    path: Path = tmp_path_factory.mktemp("vectors") / "mine.npy"
    rng = np.random.default_rng(0)
    np.save(path, rng.normal(size=40) + 0.1 * rng.normal(size=(2, 6, 40)))
    return path


def test_compare_prints_a_table_and_advice_and_writes_the_page(vectors, tmp_path):
    page = tmp_path / "page.html"
    done = process("compare", str(vectors), "--share", "25%", "--seeds", "2", "--all", "--report", str(page))
    assert done.returncode == 0, done.stderr
    for name in sm.names():
        assert name in done.stdout
    assert "answering 0" in done.stdout
    assert "\nUse " in done.stdout
    assert str(page) in done.stdout
    shown = page.read_text(encoding="utf-8")
    assert "rand-k-spatial-avg" in shown
    code = re.search(r"^  (sm\.named\(.*\))$", done.stdout, re.MULTILINE)
    assert code is not None
    assert html.escape(code[1]) in shown
    best = sparsemean("compare", vectors, "--share", "25%", "--seeds", "1").stdout
    assert len(best.splitlines()) < len(done.stdout.splitlines()) - 30
    assert "more rows with --all" in best


def test_compare_as_json_has_the_numbers(vectors):
    arguments = ("compare", str(vectors), "--bytes", "120", "--schemes", "rand-k, identity", "--seeds", "2", "--json")
    found = json.loads(sparsemean(*arguments).stdout)
    whole = {"identity", "identity float16", "identity int8"}
    assert {result["scheme"] for result in found["results"]} == {"rand-k", "rand-k int8", *whole}
    rand_k = next(result for result in found["results"] if result["scheme"] == "rand-k")
    assert rand_k["bytes_per_node"] == 120
    assert rand_k["exact"] == pytest.approx((40 / 14 - 1) / 6)
    assert (rand_k["k"], rand_k["code"]) == (14, 'sm.named("rand-k", k=14)')
    assert found["advice"].startswith("Use identity int8:")  # rand-k would send the same
    assert (found["recommended"], found["code"]) == ("identity int8", 'sm.named("identity", values="int8")')


def test_compare_marks_rows_over_the_budget(vectors):
    arguments = ("--bytes", "120", "--schemes", "rand-k,identity", "--values", "float32", "--seeds", "1")
    shown = sparsemean("compare", vectors, *arguments).stdout
    assert re.search(r"^ *identity +all +224\+ ", shown, re.MULTILINE)
    assert re.search(r"^ *rand-k +14 +120 +\d", shown, re.MULTILINE)
    assert "+: has payloads of more than 120 bytes" in shown
    assert "+:" not in sparsemean("compare", vectors, "--share", "50%", "--schemes", "identity").stdout


def test_compare_marks_what_is_but_an_upper_bound(vectors):
    """Six nodes that send four of 40 coordinates each never send the same one; with 20 each they do."""
    schemes = ("--schemes", "rand-k,rand-k-balanced", "--seeds", "1")
    shown = sparsemean("compare", vectors, "--share", "10%", *schemes).stdout
    assert re.search(r"^ *rand-k-balanced .* ≤ \d", shown, re.MULTILINE)
    assert "≤: an upper bound" in shown
    assert shown.count("≤ ") == 2  # float32 and int8
    assert "≤" not in sparsemean("compare", vectors, "--share", "50%", *schemes).stdout
    few = ("--schemes", "rand-k-balanced", "--values", "1-bit", "--share", "50%", "--seeds", "1")
    assert re.search(r"rand-k-balanced 1-bit .* ≤ \d\S* +≤ \d", sparsemean("compare", vectors, *few).stdout)


def test_compare_prints_numbers_for_large_vectors(tmp_path):
    path = tmp_path / "large.npy"
    np.save(path, 1e30 * (1.0 + np.random.default_rng(0).normal(size=(2, 6, 40))))
    done = sparsemean("compare", str(path), "--share", "25%", "--seeds", "1")
    assert done.returncode == 0, done.stderr
    assert "nan" not in done.stdout
    assert "inf" not in done.stdout


def test_compare_says_what_it_took_for_pandas_header(tmp_path):
    path, page = tmp_path / "frame.csv", tmp_path / "page.html"
    path.write_text("0,1,2\n" + "5,6,7.5\n" * 4)
    arguments = ("compare", str(path), "--schemes", "identity", "--share", "50%", "--seeds", "1")
    shown = sparsemean(*arguments, "--report", str(page)).stdout
    assert shown.startswith("4 nodes")
    (note,) = [line for line in shown.splitlines() if line.startswith("Note: ")]
    assert "line 1, which counts 0, 1, 2, …, was read as pandas' column names" in note
    assert "was read as pandas" in page.read_text(encoding="utf-8")
    assert json.loads(sparsemean(*arguments, "--json").stdout)["note"] in note
    forced = sparsemean(*arguments, "--no-header").stdout
    assert forced.startswith("5 nodes")
    assert "Note" not in forced
    assert sparsemean(*arguments, "--header").stdout.startswith("4 nodes")


def test_compare_says_first_what_it_understood_and_takes_the_options_of_reading(tmp_path):
    for node in ("east", "west"):
        lines = [f"2024-01-{day:02} {hour:02}:00;{day},5;{hour},25" for day in (1, 2) for hour in range(4)]
        lines[3] = lines[3].partition(";")[0] + ";NA;1,0"
        (tmp_path / f"{node}.csv").write_text("time;temp;rain\n" + "\n".join(lines), encoding="utf-8")
    arguments = ("compare", tmp_path, "--steps", "4", "--schemes", "identity", "--share", "50%", "--seeds", "1")
    refused = sparsemean(*arguments)
    assert refused.returncode == 2
    assert "2 of 32 numbers are missing (empty, NA or NaN), the first at east.csv, row 3" in refused.stderr
    assert "--missing drop-rounds, drop-nodes, mean or last" in refused.stderr
    done = sparsemean(*arguments, "--missing", "drop-rounds", "--json")
    assert done.stderr.splitlines()[0].startswith(
        f"{tmp_path}: 3 rounds × 2 nodes × 4 coordinates, from 2 files, each with"
    )
    assert (json.loads(done.stdout)["rounds"], json.loads(done.stdout)["dim"]) == (3, 4)
    assert "1 round of 4 left out" in json.loads(done.stdout)["note"]
    files = sparsemean("compare", tmp_path / "east.csv", tmp_path / "west.csv", *arguments[2:], "--columns", "rain")
    assert "2 rounds × 2 nodes × 4 coordinates" in files.stderr
    assert sparsemean("compare", "weather", "--missing", "mean").returncode == 2


def test_what_a_file_holds_does_not_reach_the_terminal_raw(tmp_path):
    path = tmp_path / "bad\x1b[2J.csv"
    path.write_text("\x1b[31mred,1,2\n")
    done = sparsemean("compare", str(path))
    assert done.returncode == 2
    assert "\x1b" not in done.stdout + done.stderr
    assert "bad\\x1b[2J.csv" in done.stderr
    assert "\\x1b[31mred" in done.stderr


def test_weights_are_read_from_a_file(vectors, tmp_path):
    weights = tmp_path / "weights.csv"
    weights.write_text("1\n1\n1\n1\n1\n5\n")
    done = sparsemean(
        "compare", str(vectors), "--weights", str(weights), "--schemes", "identity", "--seeds", "1", "--json"
    )
    assert json.loads(done.stdout)["results"][0]["nmse"] < 1e-10


def test_theory_prints_the_exact_numbers():
    done = sparsemean("theory", "-n", "10", "-d", "1000", "-k", "10%", "--ratio", "5", "--error", "0.1", "--json")
    found = json.loads(done.stdout)
    assert found["k"] == 100
    families: list[str | float] = ["one", "max", "avg", 5.0]
    for row, T in zip(found["schemes"], families, strict=True):
        assert row["nmse"] == sm.theory.spatial_mse(10, 50, 10, 0.1, T)
        needed = row["k_for_error"]
        assert sm.theory.spatial_mse(10, 50, 10, needed / 1000, T) <= 0.1
        assert sm.theory.spatial_mse(10, 50, 10, (needed - 1) / 1000, T) > 0.1
    assert "0.9" in sparsemean("theory", "-n", "10", "-d", "1000", "-k", "100").stdout


def test_schemes_lists_every_name():
    rows = json.loads(sparsemean("schemes", "--json").stdout)
    assert [row["scheme"] for row in rows] == [*sm.names(), "auto"]
    assert "rand-k-temporal" in sparsemean("schemes").stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("compare", "nowhere.npy"), "nowhere.npy"),
        (("compare", "--schemes", "rand-k-spatial-agv"), "did you mean 'rand-k-spatial-avg'"),
        (("compare", "--share", "200%"), "share"),
        (("compare", "--share", "10%", "--bytes", "4KB"), "either"),
        (("compare", "--bytes", "4XB"), "4KB"),
        (("compare", "--bytes", "10"), "too small"),
        (("theory", "-n", "10", "-d", "100", "-k", "200"), "dimension"),
        (("theory", "-n", "10", "-d", "100", "-k", "10", "--ratio", "10"), "between"),
        (("theory", "-n", "10", "-d", "100", "-k", "many"), "10%"),
        (("reproduce", "--figures", "no-such-figure"), "no-such-figure"),
    ],
)
def test_mistakes_are_one_message_and_exit_code_2(arguments, why):
    done = sparsemean(*arguments)
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_process_ends_with_the_same_message_and_exit_code():
    mistake = ("theory", "-n", "10", "-d", "100", "-k", "many")
    one, other = process(*mistake), sparsemean(*mistake)
    assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr)


@pytest.mark.parametrize(
    ("content", "why"),
    [(np.array([[1.0, np.nan]]), "NaN"), (np.ones(3), "shape"), (np.array([["a", "b"]]), "number")],
)
def test_bad_files_are_named(tmp_path, content, why):
    path = tmp_path / "bad.npy"
    np.save(path, content)
    done = sparsemean("compare", str(path), "--schemes", "rand-k")
    assert done.returncode == 2
    assert "bad.npy" in done.stderr
    assert why.lower() in done.stderr.lower()
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("content", [np.ones((1, 5)), np.ones((4, 5))])
def test_one_node_and_constant_vectors_work(tmp_path, content):
    path = tmp_path / "flat.npy"
    np.save(path, content)
    assert sparsemean("compare", str(path), "--seeds", "1").returncode == 0


@pytest.mark.parametrize("command", [(), ("compare",), ("frontier",), ("reproduce",), ("theory",), ("schemes",)])
def test_help_says_what_the_command_does(command):
    done = sparsemean(*command, "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout
    assert len(done.stdout.splitlines()) > 5


def test_version():
    assert process("--version").stdout.strip() == sm.__version__


def test_shell_completion_offers_commands_and_schemes():
    def offered(words: str) -> str:
        env = {"_SPARSEMEAN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        code = "import sys; sys.argv[0] = 'sparsemean'; from sparsemean.lab.cli import main; main()"
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env}, check=False
        )
        return run.stdout

    assert "compare" in offered("sparsemean com")
    assert "wangni" in offered("sparsemean compare --schemes wan")


def test_without_typer_the_remedy_is_named():
    code = "import sys; sys.modules['typer'] = None\nfrom sparsemean.lab.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "sparsemean[cli]" in done.stderr


def test_sizes_people_write():
    assert [bytes_of(text) for text in ("4000", "4KB", "4 kib", "0.5MB")] == [4000, 4000, 4096, 500_000]
    assert share_of("12.5%") == 0.125
    for wrong in ("", "KB", "-3KB", "4 XB"):
        with pytest.raises(sm.InvalidInput):
            bytes_of(wrong)
    for wrong in ("", "ten", "0", "101%"):
        with pytest.raises(sm.InvalidInput):
            share_of(wrong)
