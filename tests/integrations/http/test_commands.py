"""The commands around a service, as its page shows them."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.integrations.http.service.tokens import Tokens

from ...lab.cli.command import command
from .serving import START, serving

pytestmark = pytest.mark.xdist_group("http")

PAGE = Path(__file__).parents[3] / "docs" / "serve.md"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_tutorial_of_the_page_runs_as_it_stands(tmp_path):
    found = re.search(r"```sh tutorial\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found
    script = found[1].replace("8443", str(port := free_port()))
    script = script.replace(
        "--tokens tokens.json --journal", f"--tokens tokens.json --listen 127.0.0.1:{port} --journal"
    )
    here = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-e", "-c", f"{script}\nwait"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=2 * START,
    )
    assert done.returncode == 0, done.stderr
    error = re.search(r"relative error (\S+)", done.stdout)
    assert error
    assert float(error[1]) < 0.2  # a tenth of the bytes
    heard, exact = np.load(tmp_path / "mean.npy"), np.load(tmp_path / "estimates" / "round-000000004.npy")
    np.testing.assert_array_equal(heard, exact.astype(np.float32))
    assert done.stdout.count("round 4:") == 3  # each node's own line


def test_every_command_of_the_page_has_the_options_that_it_names():
    """The words of each line in its ``sh`` blocks are options of that command."""
    lines = [
        line for block in re.findall(r"```sh.*?\n(.*?)```", PAGE.read_text(), re.DOTALL) for line in block.splitlines()
    ]
    seen = set()
    for line in lines:
        for part in re.split(r"&&|&|;", line.partition("#")[0]):
            words = shlex.split(part.replace("'", "")) if "sparsemean" in part else []
            if words[:1] != ["sparsemean"]:
                continue
            name = words[1:3] if words[1] in ("run", "token") else words[1:2]
            told = command(*name, "--help", columns=200).stdout
            for option in (word for word in words if word.startswith("--")):
                assert option in told, (line, option)
            seen.add(" ".join(name))
    assert seen >= {"run new", "token add", "token admin", "token revoke", "serve", "node", "admin"}


def test_run_new_writes_what_for_bytes_makes(tmp_path):
    path = tmp_path / "run.json"
    asked = ("--scheme", "rand-k-hybrid", "--dim", "10k", "--bytes", "2KB", "--values", "int8", "--seed", 5)
    done = command("run", "new", path, *asked, "--blocks", "6000,4000")
    assert done.returncode == 0
    made = sm.Run.from_json(path.read_text())
    assert made == sm.Run.for_bytes("rand-k-hybrid", 10_000, 2000, 5, [6000, 4000], values="int8")
    assert f"{made.payload_bytes:,}" in command("run", "show", path).stdout
    again = command("run", "new", path, *asked)
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert command("run", "new", path, *asked, "--force").returncode == 0
    share = ("--scheme", "rand-k", "--dim", 1000, "--k", "10%")
    assert command("run", "new", tmp_path / "share.json", *share).returncode == 0
    first, second = (tmp_path / f"{name}.json" for name in ("first", "second"))
    for each in (first, second):
        command("run", "new", each, *share)
    assert sm.Run.from_json(first.read_text()).seed != sm.Run.from_json(second.read_text()).seed  # at random


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--scheme", "rand-q", "--dim", 10, "--k", 2), "rand-k"),
        (("--scheme", "rand-k", "--dim", "ten", "--k", 2), "whole number"),
        (("--scheme", "rand-k", "--dim", 10), "k"),
        (("--scheme", "rand-k", "--dim", 10, "--k", 2, "--bytes", 100), "one of the two"),
        (("--scheme", "rand-k", "--dim", 10, "--bytes", 10), "at least"),
    ],
)
def test_run_new_says_what_is_wrong(tmp_path, words, said):
    done = command("run", "new", tmp_path / "run.json", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "run.json").exists()


def test_tokens_are_added_listed_rotated_and_revoked(tmp_path):
    path = tmp_path / "tokens.json"
    shown = command("token", "add", path, "a", "b", "--weight", 2, "--expires", "30d").stdout.split()
    assert shown[::2] == ["a", "b"]
    assert Tokens(path).of_token(shown[1]).weight == 2.0
    assert command("token", "rotate", path, "a", "--out", tmp_path / "new").returncode == 0
    assert Tokens(path).of_token((tmp_path / "new").read_text().strip()).node == "a"
    assert command("token", "revoke", path, "b").returncode == 0
    rows = json.loads(command("token", "list", path, "--json").stdout)
    assert [(row["node"], row["state"]) for row in rows] == [("a", "revoked"), ("b", "revoked"), ("a", "open")]
    assert command("token", "admin", tmp_path / "admin").returncode == 0
    assert command("token", "admin", tmp_path / "admin").returncode == 2  # it is there, and in use
    for words, said in (
        (("revoke", path, "c"), "token list"),
        (("add", path, "../x", "--out", tmp_path), "--out"),
        (("add", path, "x", "--expires", "soon"), "30d"),
        (("add", path, "x", ""), "node"),
        (("list", tmp_path / "none"), "token add"),
    ):
        done = command("token", *words)
        assert done.returncode == 2
        assert said in done.stderr
    assert "x" not in {each.node for each in Tokens(path)}  # nobody is let in where one name is wrong
    assert command("token", "add", path, "x", "--out", tmp_path).returncode == 0
    assert "token rotate" in command("token", "add", path, "x", "--out", tmp_path).stderr


def test_a_service_says_what_it_lacks(tmp_path):
    run, tokens = tmp_path / "run.json", tmp_path / "tokens.json"
    run.write_text(sm.Run(sm.named("rand-k", k=2), dim=10).to_json())
    Tokens.create(tokens).add("a")
    good = ("--run", run, "--tokens", tokens)
    for words, said in (
        (("--run", tmp_path / "no.json", "--tokens", tokens), "sparsemean run new"),
        (("--run", run, "--tokens", tmp_path / "no.json"), "sparsemean token add"),
        ((*good, "--listen", "nowhere"), "HOST:PORT"),
        ((*good, "--listen", "0.0.0.0:0"), "--insecure"),
        ((*good, "--tls-cert", run), "--tls-key"),
        ((*good, "--listen", "127.0.0.1:0", "--tls-cert", run, "--tls-key", run), "cannot be used"),
        ((*good, "--minimum", 3, "--wanted", 2), "wanted"),
        ((*good, "--deadline", -1), "deadline"),
        ((*good, "--missing", "carry"), "PerNode"),
        ((*good, "--missing", "cary"), "drop, carry"),
        ((*good, "--admin-token-file", tmp_path / "no"), "cannot be read"),
        ((*good, "--log-format", "xml"), "text, json or auto"),
        ((*good, "--listen", "127.0.0.1:0", "--estimates", run), "--estimates"),
        ((*good, "--listen", "127.0.0.1:0", "--tls-cert", run, "--tls-key", tmp_path / "no"), "there is no file"),
        ((*good, "--journal", run), "journal"),
        ((*good, "--shards", 4), "--ray local"),
        ((*good, "--ray", "nowhere"), "HOST:PORT, or auto, or local"),
        ((*good, "--ray", "127.0.0.1:1"), "ray start"),
    ):
        done = command("serve", *words)
        assert done.returncode == 2, (words, done.stderr)
        assert said in done.stderr, done.stderr
        assert done.stdout == ""  # it does not say that it serves


def test_a_node_and_an_operator_at_the_command_line(tmp_path):
    run = sm.Run(sm.named("identity"), dim=4)
    np.save(tmp_path / "rows.npy", np.arange(8.0).reshape(2, 4))
    np.save(tmp_path / "wrong.npy", np.ones(5))
    with serving(tmp_path, run, "--wanted", 1) as service:
        (tmp_path / "a.token").write_text(service.tokens["a"])
        at = ("--server", service.url, "--token-file", tmp_path / "a.token")
        done = command("node", tmp_path / "rows.npy", *at, "--mean", tmp_path / "mean.npy")
        assert done.stdout.splitlines() == ["round 0: a's vector is taken", "round 1: a's vector is taken"]
        np.testing.assert_array_equal(np.load(tmp_path / "mean.npy"), [4, 5, 6, 7])
        assert "round 2 is open, and there are 2 rows" in command("node", tmp_path / "rows.npy", *at).stdout
        for words, said in (
            ((tmp_path / "wrong.npy", *at), "4 coordinates"),
            ((tmp_path / "none.npy", *at), ".npy"),
            ((tmp_path / "rows.npy", "--server", service.url), "credential"),
            ((tmp_path / "rows.npy", *at, "--repeat"), "one vector"),
            ((tmp_path / "rows.npy", *at, "--mean", tmp_path / "none" / "mean.npy"), "no such folder"),
            ((tmp_path / "rows.npy", *at, "--patience", 0, "--server", "http://127.0.0.1:1"), "does not answer"),
            ((tmp_path / "rows.npy", *at, "--server", "ftp://x"), "https://HOST:PORT"),
        ):
            done = command("node", *words)
            assert done.returncode == 2, words
            assert said in done.stderr, done.stderr
        operator = ("--server", service.url, "--admin-token-file", tmp_path / "admin")
        assert "round 2 is open" in command("admin", "pause", *operator).stderr
        assert command("admin", "resume", *operator).returncode == 0
        assert len(command("admin", "rotate", "a", *operator).stdout.strip()) > 40
        for wrong in (("dance",), ("forget",), ("pause", "a")):
            done = command("admin", *wrong, *operator)
            assert done.returncode == 2
            assert "forget NODE" in done.stderr
