"""A journal of which a byte has changed, or a part is lost, is refused, reported or equal: soak/at_rest.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parent.parent.parent / "soak" / "at_rest.py"
CHANGES = 100  # of each journal; the soak tries them all
JOURNALS = ("rand-k-temporal, crashed", "rand-k-hybrid, closed", "rand-k-hybrid, synced")
HOUR = 3600


@pytest.mark.skipif(sys.platform == "win32", reason="journals need a POSIX system")
def test_a_change_of_a_journal_at_rest_is_refused_or_reported_or_makes_no_difference():
    """A sample of bits flipped, files cut, files missing; nine in ten where bytes are in use."""
    journals = [argument for journal in JOURNALS for argument in ("--journal", journal)]
    command = [sys.executable, str(SOAK), *journals, "--sample", str(CHANGES), "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HOUR)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert " 3 journals, 0 faults" in done.stdout
