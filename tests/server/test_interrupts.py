"""A call of the server that is interrupted anywhere has happened or not, and can be made again: soak/interrupts.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "soak" / "interrupts.py"
OPERATIONS = ("accept", "accept_many", "close_round", "skip_round", "forget", "close")
BESIDE = "accept, beside another thread"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are those of POSIX")


def swept(*arguments: str) -> None:
    """Every line of every function that the operations come to, once."""
    command = [sys.executable, str(SOAK), "--lines", "--workers", "1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert " 0 left something wrong" in done.stdout


@pytest.mark.parametrize("journal", ["with", "without"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_signal_that_is_seen_in_a_call_leaves_the_state_before_or_after_it(operation: str, journal: str):
    swept("--operation", operation, "--journal", journal, "--way", "signal")


@pytest.mark.parametrize("journal", ["with", "without"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_two_signals_while_another_thread_does_the_work(operation: str, journal: str):
    swept("--operation", operation, "--journal", journal, "--way", "twice", "--scheme", "rand-k-temporal")


@pytest.mark.parametrize("journal", ["with", "without"])
def test_an_exception_of_a_signal_handler_at_any_place_and_at_any_time(journal: str):
    operations = (argument for operation in OPERATIONS for argument in ("--operation", operation))
    ways = ("--way", "raise", "--way", "timer", "--timers", "40")
    swept(*operations, *ways, "--journal", journal, "--scheme", "rand-k-temporal")


@pytest.mark.parametrize("journal", ["with", "without"])
def test_another_thread_gets_its_receipt_while_the_main_thread_is_interrupted(journal: str):
    ways = ("--way", "signal", "--way", "timer", "--timers", "40")
    swept("--operation", BESIDE, *ways, "--journal", journal, "--scheme", "rand-k-temporal")
