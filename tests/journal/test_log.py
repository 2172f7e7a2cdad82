"""The log: whole changes or none, long payloads in pieces, damage found."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsemean.errors import DamagedJournal, JournalError
from sparsemean.journal import log as log_module
from sparsemean.journal.log import NAME, Log, Record


@pytest.fixture
def log(tmp_path: Path):
    log = Log(tmp_path)
    yield log
    log.close()


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 20, 95])
def test_a_payload_longer_than_a_piece_is_cut_and_joined(log, monkeypatch, length):
    monkeypatch.setattr(log_module, "PIECE", 10)
    record = Record(0, "accept", 7, "é", b"weight", bytes(range(length)))
    with log.change(durable=True):
        log.add(record)
        log.add_changes(0, [b"", bytes(range(length)), memoryview(b"more")])
    assert list(log.records()) == [record]
    assert list(log.changes(-1)) == [bytes(range(length)) + b"more"]
    assert log.changes_bytes(-1) == length + 4
    pieces = log._database.execute("SELECT length(bytes) FROM payloads ORDER BY piece").fetchall()
    assert [size for (size,) in pieces] == [10] * (length // 10) + [length % 10] * (length % 10 > 0)


def test_a_change_that_fails_in_the_middle_leaves_nothing(log):
    def same_node_twice() -> None:
        with log.change(durable=True):
            log.add(Record(0, "accept", 0, "a", b"", b"one"))
            log.add(Record(1, "accept", 0, "a", b"", b"two"))

    with pytest.raises(JournalError, match="nothing was changed"):
        same_node_twice()
    assert list(log.records()) == []
    with log.change(durable=False):
        log.add(Record(0, "accept", 0, "a", b"", b"one"))
        log.add(Record(1, "close", 0))
    assert log.last() == 1
    assert log.last(("accept",)) == 0
    assert log.last(("skip",)) is None


def test_pruned_records_take_their_payloads_along(log):
    with log.change(durable=False):
        for round in range(4):
            log.add(Record(2 * round, "accept", round, "a", b"", b"payload"))
            log.add(Record(2 * round + 1, "close", round))
            log.add_changes(2 * round + 1, [b"changes"])
        log.drop_records(before_round=2)
        log.drop_changes(up_to=3)
    assert [record.round for record in log.records()] == [2, 2, 3, 3]
    assert log._database.execute("SELECT count(*) FROM payloads").fetchone() == (2,)
    assert len(list(log.changes(-1))) == 2


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE payloads SET bytes = x'00'",
        "DELETE FROM payloads",
        "UPDATE records SET node = 'b'",
        "UPDATE records SET weight = x'0000'",
        "UPDATE records SET round = 1",
        "UPDATE records SET kind = 'forget'",
        "UPDATE records SET sequence = 1",
        "UPDATE records SET length = 1",
    ],
)
def test_a_record_that_was_changed_is_damage(log, damage):
    with log.change(durable=False):
        log.add(Record(0, "accept", 0, "a", b"weight", b"payload"))
    log._database.execute(damage)
    with pytest.raises(DamagedJournal, match="record"):
        list(log.records())


def test_what_is_read_is_of_one_moment_and_does_not_disturb_the_writer(tmp_path, log):
    with log.change(durable=True):
        log.add(Record(0, "accept", 0, "a", b"", b"payload"))
    reader = Log(tmp_path, reading=True)
    assert reader.last() == 0
    with log.change(durable=True):
        log.add(Record(1, "close", 0))
        log.drop_records(before_round=1)
    assert [record.kind for record in reader.records()] == ["accept"]
    with pytest.raises(JournalError), reader.change(durable=False):
        reader.note("a", "b")
    reader.close()


def test_after_a_failed_change_the_log_is_written_over_before_anything_else(log):
    with pytest.raises(ZeroDivisionError), log.change(durable=True):
        log.note("never", str(1 // 0))
    assert not log.doubtful
    assert log.facts()[log_module.FAILURES] == "1"


@pytest.mark.parametrize("where", [0, 18, 100, 4096])
def test_a_file_that_is_no_database_is_refused(tmp_path, where):
    def looked() -> list[str]:
        log = Log(tmp_path)
        try:
            return [*log.integrity(), *map(str, log.records())]
        finally:
            log.close()

    assert looked() == []
    file = tmp_path / NAME
    blob = bytearray(file.read_bytes())
    blob[where : where + 40] = b"\xff" * 40
    file.write_bytes(blob)
    with pytest.raises(JournalError):
        assert looked() == ["something is wrong"]


def test_a_checksum_tells_names_from_weights():
    one, other = Record(0, "accept", 0, "ab", b"c"), Record(0, "accept", 0, "a", b"bc")
    assert one.checksum != other.checksum
