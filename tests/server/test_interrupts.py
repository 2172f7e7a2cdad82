"""A call of the server that is interrupted anywhere has happened or not, and can be made again: soak/interrupts.py."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "soak" / "interrupts.py"
OPERATIONS = ("accept", "accept_many", "close_round", "skip_round", "forget", "close")
BESIDE = "accept, beside another thread"
# Operations take turns with these, from another one on where there is a journal: memories in rows, a fitted one, and
# nodes with a state.
SCHEMES = {
    "with": ("rand-k-temporal", "rand-k-hybrid", "diana"),
    "without": ("diana", "rand-k-temporal", "rand-k-hybrid"),
}
HOUR = 3600

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are those of POSIX")


def swept(journal: str, operations: tuple[str, ...], ways: tuple[str, ...], nth: int, timers: int) -> None:
    """Each n-th of the lines that the operations come to in the main thread, each eighth of those in the other one.

    Ways take turns: with two of them, n is twice as large, and each is tried at the lines between those of the other.
    The soak tries every event, with every scheme, in every way.
    """
    named = {"--operation": operations, "--scheme": SCHEMES[journal], "--way": ways}
    choice = chain.from_iterable((option, value) for option, values in named.items() for value in values)
    sample = ("--in-turn", "--lines", "--nth", str(nth), "--helper-nth", "8", "--timers", str(timers), "--workers", "1")
    command = [sys.executable, str(SOAK), "--journal", journal, *choice, *sample]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HOUR)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert f" in {len(operations)} settings, 0 left something wrong" in done.stdout


@pytest.mark.parametrize("journal", ["with", "without"])
def test_an_interrupted_call_leaves_the_state_before_or_after_it_and_can_be_made_again(journal: str):
    # Without a journal a payload is put into the queue by the main thread itself, so more of its lines count.
    nth = {"with": 54, "without": 12}[journal]
    swept(journal, OPERATIONS, ("signal", "raise", "twice", "timer"), nth, timers=6)


@pytest.mark.parametrize("journal", ["with", "without"])
def test_another_thread_gets_its_receipt_while_the_main_thread_is_interrupted(journal: str):
    swept(journal, (BESIDE,), ("signal", "timer"), nth=18, timers=10)
