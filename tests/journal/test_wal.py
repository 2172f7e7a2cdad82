"""A write-ahead log whose bytes were changed: what it held is lost, and that is told."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.journal import contents, faults
from sparsemean.journal.wal import lost_commits

RUN = sm.Run(sm.named("rand-k-temporal", k=0.5), 4000)
WAL = "log.sqlite-wal"


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """The folder of a server that died in the middle of its second round."""
    with sm.Server(RUN, journal=tmp_path / "running") as server:
        for node in "abcd":
            server.accept(node, sm.Client(RUN, node).encode(np.ones(4000), 0))
        server.close_round()
        for node in "abc":
            server.accept(node, sm.Client(RUN, node).encode(np.ones(4000), 1))
        shutil.copytree(tmp_path / "running", tmp_path / "left")
    return tmp_path / "left"


def test_as_it_was_left_nothing_is_lost(left, caplog):
    assert lost_commits(left / WAL) == 0
    assert faults(left) == []
    with sm.Server(RUN, journal=left):
        assert caplog.text == ""
    assert lost_commits(left / "nothing") == 0


@pytest.mark.parametrize("cut", [1, 3000, 4120, 9000])
def test_what_a_crash_cuts_off_was_never_acknowledged(left, cut):
    (left / WAL).write_bytes((left / WAL).read_bytes()[:-cut])
    assert lost_commits(left / WAL) == 0


@pytest.mark.parametrize("place", [0, 5, 20, 40, 300, 0.3, 0.5, 0.8, 0.99, 1.0])
def test_a_changed_bit_is_told_by_verify_and_when_the_journal_is_opened(left, place, caplog):
    data = bytearray((left / WAL).read_bytes())
    data[place if isinstance(place, int) else int(place * len(data)) - 200] ^= 4
    (left / WAL).write_bytes(data)
    assert lost_commits(left / WAL) > 0
    if place not in (0, 5, 20, 40, 300):  # else SQLite sees an empty database, or one without our tables
        assert (contents(left).open_round, len(contents(left).waiting)) < (1, 3)
        assert any("is damaged" in fault for fault in faults(left))
        with caplog.at_level(logging.WARNING, "sparsemean"):
            try:
                sm.Server(RUN, journal=left).close()
            except sm.DamagedJournal:  # the state that belongs to what is left is gone
                return
        assert "is damaged" in caplog.text
