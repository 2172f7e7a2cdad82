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


def test_pictures_are_played_by_what_a_node_may_know(tmp_path):
    arguments = ("frontier", "digits", "--budgets", "90", "--rounds", "2", "--seeds", "1", "--keep", tmp_path / "kept")
    page = tmp_path / "page.html"
    done = sparsemean(*arguments, "--report", page)
    assert done.returncode == 0, done.stderr
    for kind in ("nothing: identity eden", "the broadcast: auto-broadcast", "a vector: difference eden"):
        assert re.search(rf"{kind} +\S+ ÷\S+", done.stdout)
    assert "At 90 bytes, below whole vectors in as many bits, in round 2: nodes that hear nothing" in done.stdout
    assert "Error against bytes: what a node may know" in page.read_text(encoding="utf-8")
    found = json.loads(sparsemean(*arguments, "--json").stdout)  # from what is kept
    assert (found["task"], found["data"], found["complete"], len(found["points"])) == (
        *("power-iteration", "digits"),
        *(True, 9),
    )


@pytest.mark.parametrize("option", [("--schemes", "rand-k"), ("--values", "int4"), ("--steps", "2")])
def test_options_about_vectors_are_refused_with_pictures(option):
    done = sparsemean("frontier", "digits", *option)
    assert done.returncode == 2
    assert f"{option[0]} is for vectors" in " ".join(done.stderr.split())


def test_pictures_that_are_not_there_are_named_with_their_source(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARSEMEAN_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    done = sparsemean("frontier", "fashion-mnist", "--seeds", "1")
    assert done.returncode == 2
    assert "the data set fashion-mnist lacks 4 of its 4 files" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


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
