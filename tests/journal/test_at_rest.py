"""A journal of which a byte has changed, or a part is lost, is refused, reported or equal: soak/at_rest.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parent.parent.parent / "soak" / "at_rest.py"
CHANGES = 5000
JOURNALS = [
    f"{scheme}, {left}" for scheme in ("rand-k-temporal", "rand-k-hybrid") for left in ("closed", "crashed", "synced")
]


@pytest.mark.skipif(sys.platform == "win32", reason="journals need a POSIX system")
@pytest.mark.parametrize("journal", JOURNALS)
def test_a_change_of_a_journal_at_rest_is_refused_or_reported_or_makes_no_difference(journal: str):
    """5,000 changes in all: bits flipped, files cut, files missing; nine in ten where bytes are in use."""
    sample = ("--journal", journal, "--sample", str(CHANGES // len(JOURNALS)), "--workers", "1")
    command = [sys.executable, str(SOAK), *sample]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert " 0 faults" in done.stdout
