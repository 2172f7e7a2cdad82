"""compare in a terminal: nothing is cut however narrow it is, work shows from the start, Ctrl-C shows what is done."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from .command import command as sparsemean

pty = pytest.importorskip("pty")
fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")

PROGRAM = "from sparsemean.lab.cli import main; main()"
PATIENCE = 120.0
NAMES = "rand-k,rand-k-temporal-shared,error-feedback-chunked-top-k,rand-k-balanced-hybrid-shrunk,auto"


def in_terminal(columns: int, *arguments: object, stop_at: str = "") -> tuple[int, str]:
    """The exit code and all that a terminal of this width was told; Ctrl-C is pressed once it showed ``stop_at``."""
    child, terminal = pty.fork()
    if not child:
        os.environ.update(TERM="xterm", COLUMNS=str(columns), LINES="50")
        os.execv(sys.executable, [sys.executable, "-c", PROGRAM, *map(str, arguments)])
    told, pressed, end = b"", not stop_at, time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            told += os.read(terminal, 65536)
        except OSError:  # Linux says so that nobody writes there any more
            break
        if not pressed and stop_at.encode() in told:
            os.write(terminal, b"\x03")
            pressed = True
    else:
        os.kill(child, signal.SIGKILL)
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", told.decode()).replace("\r", "")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory) -> Path:
    path: Path = tmp_path_factory.mktemp("vectors") / "mine.npy"
    np.save(path, np.random.default_rng(0).normal(size=(4, 6, 40)))
    return path


@pytest.mark.parametrize("columns", [80, 100, 124, 125, 140])
def test_the_table_fits_the_terminal_and_nothing_is_cut(vectors, monkeypatch, columns):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    options = ("--all", "--schemes", NAMES, "--seeds", "2", "--bytes", "110")
    shown = sparsemean("compare", vectors, *options, columns=columns).stdout
    table, _, rest = re.sub(r"\x1b\[[0-9;]*m", "", shown).partition("error: squared error")
    assert "…" not in table
    lines = [line for line in table.splitlines() if not line.startswith(("Data:", "Report:"))]
    assert max(map(len, lines)) <= columns
    assert all(name in re.sub(r"\s", "", table) for name in NAMES.split(","))
    heads = {"scheme", "k", "bytes", "error", "unbiased"}
    (head,) = [line.split() for line in lines if "unbiased" in line]
    assert (heads == set(head)) == (columns < 140)  # below 125, and with names as long as these
    assert "± two standard errors" in re.sub(r"\s+", " ", rest)


def test_a_pipe_gets_the_table_in_its_own_width(vectors):
    options = ("compare", vectors, "--all", "--schemes", NAMES, "--seeds", "2", "--bytes", "110")
    shown = [sparsemean(*options, columns=columns).stdout.splitlines() for columns in (40, 200)]
    narrow, wide = (next(line for line in lines if "server's own" in line) for lines in shown)
    assert narrow == wide
    assert len(wide.rstrip()) < 150


def test_ctrl_c_shows_what_is_done(tmp_path):
    """Pressed in a real terminal, so that it reaches the processes that play as well."""
    path = tmp_path / "much.npy"
    np.save(path, np.random.default_rng(0).normal(size=(20, 10, 100)))
    names = "identity,rand-k,rand-k-balanced-hybrid,rand-k-hybrid,rand-k-temporal,wangni,induced,auto"
    options = ("--schemes", names, "--seeds", "30", "--bytes", "150")
    code, told = in_terminal(100, "compare", path, *options, stop_at="rand-k")
    assert code == 130, told[-2000:]
    assert "stopped before the end" in told
    assert re.search(r"identity +all +464\+", told)
    assert "rows that are missing were not played" in told
    assert "Traceback" not in told
    before = told[: told.index("finding k")].split()
    assert before[0].endswith("much.npy:")  # what was understood, and nothing else
    assert len(before) < 20


def test_ctrl_c_before_anything_is_done_is_said_to_have_stopped_it(tmp_path):
    path = tmp_path / "much.npy"
    np.save(path, np.random.default_rng(0).normal(size=(20, 10, 100)))
    code, told = in_terminal(100, "compare", path, "--schemes", "rand-k", "--seeds", "3000", stop_at="finding k")
    assert code == 130, told[-2000:]
    assert told.rstrip().endswith("stopped")
