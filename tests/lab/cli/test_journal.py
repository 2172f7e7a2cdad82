"""``sparsemean inspect`` and ``verify`` as people use them: while the server runs, in a process of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm

from .command import command

CODE = "from sparsemean.lab.cli import main; main()"


def sparsemean(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CODE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def server(tmp_path: Path):
    run = sm.Run(sm.named("rand-k-temporal", k=0.1), dim=1000, seed=7)
    with sm.Server(run, missing="carry", journal=tmp_path / "journal", clip=sm.Clip(norm=100.0)) as server:
        for round in range(3):
            for node in ("station-1", "station-2"):
                server.accept(node, sm.Client(run, node).encode(np.full(1000, 1.0), round))
            if round < 2:
                server.close_round()
        yield server


def test_inspect_shows_what_is_in_the_journal_of_a_server_that_runs(server, tmp_path):
    shown = sparsemean("inspect", tmp_path / "journal")
    assert shown.returncode == 0, shown.stderr
    lines = {line.split("  ")[0].strip(): line.split("  ")[-1].strip() for line in shown.stdout.splitlines()}
    for name, value in {
        "memory": "PerNode",
        "dimension": "1,000",
        "absent nodes": "carry",
        "clip": "norm 100.0, value None",
        "open round": "2",
        "accepted in it": "2 (station-1, station-2)",
        "nodes known": "2",
        "ended rounds kept": "0, 1",
    }.items():
        assert value in lines[name], shown.stdout
    server.close_round()
    found = json.loads(sparsemean("inspect", tmp_path / "journal", "--json").stdout)
    assert found["open_round"] == 3
    assert found["waiting"] == []
    assert found["kept_rounds"] == [1, 2]


def test_names_of_nodes_have_no_effect_on_the_terminal(tmp_path):
    """Neither escape codes nor line breaks nor markup: they come from outside."""
    names = [
        "clear\x1b[2J",
        "title\x1b]0;x\x07",
        "[red]a[/b]",
        "line\naccepted in it  0",
        "back\u202eward",
        "\x9b31m",
        "é",
    ]
    run = sm.Run(sm.named("rand-k", k=2), dim=4)
    with sm.Server(run, journal=tmp_path / "journal") as server:
        for name in names:
            server.accept(name, sm.Client(run, name).encode(np.ones(4), 0))
        shown = sparsemean("inspect", tmp_path / "journal")
        told = json.loads(sparsemean("inspect", tmp_path / "journal", "--json").stdout)
    assert shown.returncode == 0, shown.stderr
    assert told["waiting"] == names
    assert all(c.isprintable() for c in shown.stdout.replace("\n", ""))
    (line,) = [line for line in shown.stdout.splitlines() if line.lstrip().startswith("accepted in it")]
    for name in (
        "clear\\x1b[2J",
        "title\\x1b]0;x\\x07",
        "[red]a[/b]",
        "line\\naccepted",
        "back\\u202eward",
        "\\x9b31m",
        "é",
    ):
        assert name in line


def test_verify_says_that_all_is_whole_and_what_is_not(server, tmp_path):
    whole = sparsemean("verify", tmp_path / "journal")
    assert (whole.returncode, whole.stdout.strip()) == (0, "every record, state and row is whole"), whole.stderr
    server.close()
    (state,) = (tmp_path / "journal").glob("*.state")
    state.write_bytes(state.read_bytes()[:-1])
    damaged = sparsemean("verify", tmp_path / "journal")
    assert damaged.returncode == 1
    assert "checksum" in damaged.stdout


@pytest.mark.parametrize("name", ["inspect", "verify"])
def test_a_folder_that_is_no_journal_is_named(name, tmp_path):
    done = command(name, tmp_path)
    assert done.returncode != 0
    assert "is no journal" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_folder_of_a_server_in_shards_is_shown_and_checked_shard_by_shard(server, tmp_path):
    """As RayServer leaves it: a journal for each range of coordinates."""
    server.close()
    for number in range(2):
        shutil.copytree(tmp_path / "journal", tmp_path / "shards" / f"shard-{number:03}")
    shown = command("inspect", tmp_path / "shards")
    assert shown.stdout.count("nodes known") == 2, shown.stderr
    assert len(json.loads(command("inspect", tmp_path / "shards", "--json").stdout)) == 2
    assert command("verify", tmp_path / "shards").stdout.strip() == "every record, state and row is whole"
    (state,) = (tmp_path / "shards" / "shard-001").glob("*.state")
    state.write_bytes(state.read_bytes()[:-1])
    damaged = command("verify", tmp_path / "shards")
    assert damaged.returncode == 1
    assert damaged.stdout.startswith("shard-001: the state after record")


def test_a_journal_without_its_log_is_damaged(server, tmp_path):
    server.close()
    for path in (tmp_path / "journal").glob("log.sqlite*"):
        path.unlink()
    done = command("verify", tmp_path / "journal")
    assert done.returncode == 1
    assert "has lost its log" in done.stdout
