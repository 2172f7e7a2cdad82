"""The soaks, for some seconds each: what ``make soak`` does for hours."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

SOAK = Path(__file__).parent.parent.parent / "soak"
NO_COMPILER = 77


def soaked(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SOAK / f"{name}.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="servers are killed in forked processes")
def test_a_server_that_is_killed_again_and_again_goes_on(tmp_path: Path):
    done = soaked("kill", "--kills", "15", "--rounds", "4", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every state, receipt and estimate as without a journal" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="calls are intercepted by a library that knows Linux")
@pytest.mark.parametrize("case", ["hybrid", "capped"])
def test_any_call_on_a_file_may_fail(case: str):
    done = soaked("faults", "--case", case, "--every", "80")
    if done.returncode == NO_COMPILER:
        pytest.skip("there is no C compiler to build the library that lets calls fail")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broke something" in done.stdout


def test_schedules():
    found = runpy.run_path(str(SOAK / "schedules.py"))["play"](40, 0)
    assert found["schedules"] >= 40
    for what in ("accepted", "repeated", "ended", "too few", "forgotten", "crashed", "refused: WrongRound"):
        assert found[what] > 0, f"{what} is not tried"


@pytest.mark.parametrize(
    ("name", "missing"),
    [("rand-k-spatial-avg", "drop"), ("rand-k-temporal", "carry"), ("rand-k-hybrid", "drop"), ("diana", "drop")],
)
def test_the_mean_of_those_who_come_is_unbiased(name: str, missing: str):
    """At most 4.5 standard errors off at any of 30 coordinates and along the mean, however many come.

    200 seeds see a mean of five nodes that is 6% too long, and one of a single node that is 12% too long.
    """
    soak = runpy.run_path(str(SOAK / "attendance.py"))
    for share in (0.1, 0.5):
        assert soak["largest_z"](name, share, missing, range(200)) < 4.5, share


def test_nobody_comes():
    soak = runpy.run_path(str(SOAK / "attendance.py"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some diverge where only one node comes, and say so
        for name in soak["sm"].names():
            soak["nobody_comes"](name)
