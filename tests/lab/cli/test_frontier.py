"""``sparsemean frontier``: what it prints, how it is stopped and goes on."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from sparsemean.lab.trace import play

from .command import command as sparsemean

OPTIONS = ("--schemes", "rand-k,rand-k-spatial-adaptive-unbiased,top-k", "--budgets", "90,0.1KB", "--seeds", "2")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors") / "mine.npy"
    rng = np.random.default_rng(0)
    np.save(path, rng.normal(size=20) + 0.1 * rng.normal(size=(5, 20)))
    return path


def test_it_prints_the_front_and_the_trade_and_writes_the_page(vectors, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal, 80 columns wide
    done = sparsemean("frontier", vectors, *OPTIONS, "--values", "bfloat16,int8", "--report", page, columns=80)
    assert done.returncode == 0, done.stderr
    shown = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    rows = shown[: shown.index("Report:")].splitlines()
    assert max(map(len, rows[: rows.index(next(row for row in rows if row.startswith("Data:")))])) <= 80
    assert "…" not in shown
    assert re.search(r"identity float16 +104 +all +\S+ ± \S+ +yes", shown)
    assert "The knee of the front is" in " ".join(shown.split())
    assert "front of unbiased schemes" in page.read_text(encoding="utf-8")


def test_json_has_all_points_and_says_which_are_on_the_fronts(vectors):
    found = json.loads(sparsemean("frontier", vectors, *OPTIONS, "--json").stdout)
    assert found["budgets"] == [90, 100]
    assert found["complete"] is True
    assert {point["scheme"] for point in found["points"]} >= {"rand-k float32", "rand-k int8", "identity float16"}
    front = [point for point in found["points"] if point["on_unbiased_front"]]
    assert front
    assert all(point["unbiased"] for point in front)
    assert found["trade"].startswith("The knee")


def test_the_estimator_of_another_paper_is_shown_to_compare_with(vectors):
    names = ("--schemes", "rand-k,rand-proj-spatial-avg", "--budgets", "0.1KB", "--seeds", "1", "--values", "float32")
    done = sparsemean("frontier", vectors, *names)
    assert re.search(r"on no front: rand-proj-spatial-avg has \S+ at 100 bytes\.", " ".join(done.stdout.split()))
    found = json.loads(sparsemean("frontier", vectors, *names, "--json").stdout)
    assert [point["scheme"] for point in found["points"] if point["peer"]] == ["rand-proj-spatial-avg float32"]
    assert found["not_played"] == ""


def test_ctrl_c_shows_what_is_done_and_the_next_run_goes_on(vectors, tmp_path, monkeypatch):
    arguments = ("frontier", vectors, *OPTIONS, "--json")
    whole = json.loads(sparsemean(*arguments).stdout)
    played: list[object] = []

    def interrupted(*work):
        played.append(work)
        if len(played) == 9:
            raise KeyboardInterrupt
        return play(*work)

    monkeypatch.setattr("sparsemean.lab.compare.playing.play", interrupted)
    first = sparsemean(*arguments, "--keep", tmp_path / "kept")
    assert first.returncode == 130
    assert "run the same again to go on" in first.stderr
    part = json.loads(first.stdout)
    assert (part["complete"], len(part["points"])) == (False, 4)  # of two seeds each
    second = json.loads(sparsemean(*arguments, "--keep", tmp_path / "kept").stdout)
    assert second == whole
    assert len(played) == 9 + 2 * (len(whole["points"]) - 4)
    played.clear()
    unkept = sparsemean("frontier", vectors, *OPTIONS)
    assert unkept.returncode == 130
    assert "--keep FOLDER" in unkept.stderr
    assert "identity float32" in unkept.stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--budgets", "60"), "too small"),
        (("--budgets", "much"), "not a size in bytes"),
        (("--schemes", "rand-q"), "did you mean"),
        (("--values", "int9"), "values is one of"),
        (("--keep", "."), "name a new folder"),
        (("--report", "."), "is a folder"),
    ],
)
def test_mistakes_are_one_message(vectors, tmp_path, monkeypatch, arguments, why):
    (tmp_path / "something").touch()
    monkeypatch.chdir(tmp_path)
    done = sparsemean("frontier", vectors, *OPTIONS, *arguments)
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr
