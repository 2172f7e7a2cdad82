"""Past means: which are kept, where, and what becomes of them when the process ends."""

from __future__ import annotations

import pytest

import sparsemean as sm
from sparsemean.integrations.http.service.means import Means


@pytest.mark.parametrize("durable", [False, True])
def test_the_oldest_go_when_there_is_no_room(tmp_path, durable):
    folder = tmp_path / "means" if durable else None
    means = Means(folder, most_bytes=10)
    for round in (0, 2, 3):  # round 1 ended without one
        means.add(round, bytes([round]) * 4)
    assert means.first == 2
    assert [means.frame(round) for round in range(5)] == [None, None, b"\2" * 4, b"\3" * 4, None]
    means.add(4, b"larger than all the room")
    assert (means.first, means.frame(4)) == (4, b"larger than all the room")
    if folder is not None:
        again = Means(folder, most_bytes=10)
        assert (again.first, again.frame(4)) == (4, b"larger than all the room")
        assert [path.name for path in folder.iterdir()] == ["round-000000004.frame"]


def test_a_mean_stays_as_it_was_told(tmp_path):
    means = Means(tmp_path / "means")
    means.add(7, b"told")
    Means(tmp_path / "means").add(7, b"otherwise")
    assert means.frame(7) == b"told"


def test_a_folder_that_cannot_be_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(sm.InvalidInput, match="move it away"):
        Means(tmp_path / "file")
