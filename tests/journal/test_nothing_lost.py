"""What once ruined a journal, or lost something without a word: other folders, lost logs, flipped bits, forks."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import shutil
import sqlite3
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.journal import contents, faults
from sparsemean.journal.folder import LOCK
from sparsemean.journal.log import NAME

RUN = sm.Run(sm.named("rand-k-temporal", k=0.25), 40, seed=3)


def send(server: sm.Server, nodes: str) -> None:
    for node in nodes:
        vector = np.random.default_rng((ord(node), server.round)).normal(size=server.run.dim)
        server.accept(node, sm.Client(server.run, node).encode(vector, server.round))


def played(server: sm.Server, rounds: int) -> sm.Server:
    for _ in range(rounds):
        send(server, "abc")
        server.close_round()
    return server


def files(folder: Path) -> dict[str, bytes]:
    """What lies in a folder, but for empty files and SQLite's index of its write-ahead log."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != f"{NAME}-shm"}
    return {name: blob for name, blob in found.items() if blob}


def test_a_journal_stays_where_it_was_opened_whatever_the_current_folder_becomes(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    played(sm.Server(RUN, journal=there / "journal"), 2).close()
    before = files(there / "journal")
    monkeypatch.chdir(here)
    server = played(sm.Server(RUN, journal="journal"), 1)
    monkeypatch.chdir(there)
    played(server, 2)
    digest = server.digest()
    server.close()
    assert files(there / "journal") == before
    with sm.Server(RUN, journal=here / "journal") as again:
        assert (again.round, again.digest()) == (3, digest)
    with sm.Server(RUN, journal=there / "journal") as again:
        assert again.round == 2


def test_a_round_does_not_end_in_a_folder_that_took_the_place_of_the_journal(tmp_path):
    server = played(sm.Server(RUN, journal=tmp_path / "journal"), 1)
    send(server, "ab")
    (tmp_path / "journal").rename(tmp_path / "moved")
    (tmp_path / "journal").mkdir()
    with pytest.raises(sm.JournalError, match="another folder than before"):
        server.close_round()
    assert list((tmp_path / "journal").iterdir()) == []
    (tmp_path / "journal").rmdir()
    (tmp_path / "moved").rename(tmp_path / "journal")
    assert server.close_round().round == 1
    server.close()


def test_a_flipped_bit_in_the_schema_is_refused_and_nothing_is_deleted(tmp_path):
    played(sm.Server(RUN, journal=tmp_path), 2).close()
    log = tmp_path / NAME
    held = log.read_bytes()
    place = held.index(b"sequence INTEGER PRIMARY KEY") + len("sequence INTEGER ")
    log.write_bytes(held[:place] + b"Q" + held[place + 1 :])
    before = files(tmp_path)
    assert any("tables" in fault for fault in faults(tmp_path))
    for _ in range(2):
        with pytest.raises(sm.DamagedJournal, match="tables"):
            sm.Server(RUN, journal=tmp_path)
    assert files(tmp_path) == before
    log.write_bytes(held)
    with sm.Server(RUN, journal=tmp_path) as server:
        assert server.round == 2


def test_another_programs_database_is_refused_and_stays_as_it_was(tmp_path):
    database = sqlite3.connect(tmp_path / NAME)
    database.execute("CREATE TABLE theirs (a)")
    database.commit()
    database.close()
    before = files(tmp_path)
    with pytest.raises(sm.DamagedJournal, match="not those of a journal"):
        sm.Server(RUN, journal=tmp_path)
    assert files(tmp_path) == before


@pytest.mark.parametrize("cut", ["lost", "cut"])
@pytest.mark.parametrize("golden", [False, True])
def test_rounds_that_are_lost_with_the_write_ahead_log_are_missed(tmp_path, cut, golden):
    """The database has a checkpoint from the middle of round 0; round 2 was open when the rest was lost."""
    server = sm.Server(RUN, journal=tmp_path / "journal")
    send(server, "abcdefghij")
    database = sqlite3.connect(tmp_path / "journal" / NAME)
    database.execute("PRAGMA wal_checkpoint")
    database.close()
    send(server, "klmn")
    server.close_round()
    played(server, 1)
    left = Path(shutil.copytree(tmp_path / "journal", tmp_path / "left", ignore=shutil.ignore_patterns("*-shm")))
    server.close()
    if golden:  # a journal of version 1 has no head to show it
        (left / "head").unlink()
    wal = left / f"{NAME}-wal"
    if cut == "lost":
        wal.unlink()
    else:
        wal.write_bytes(wal.read_bytes()[:4000])
    before = files(left)
    assert any("lost" in fault for fault in faults(left))
    for _ in range(2):
        with pytest.raises(sm.DamagedJournal, match=r"record \d+, which ended a round, is lost"):
            sm.Server(RUN, journal=left)
    assert {name: blob for name, blob in files(left).items() if name in before} == before


def test_payloads_that_are_lost_with_the_end_of_the_write_ahead_log_are_missed(tmp_path, caplog):
    server = played(sm.Server(RUN, journal=tmp_path / "journal"), 1)
    send(server, "abcd")
    left = Path(shutil.copytree(tmp_path / "journal", tmp_path / "left", ignore=shutil.ignore_patterns("*-shm")))
    server.close()
    wal = left / f"{NAME}-wal"
    wal.write_bytes(wal.read_bytes()[: -3 * 4120])
    assert any("is lost" in fault for fault in faults(left))
    with caplog.at_level(logging.WARNING, "sparsemean.journal"), sm.Server(RUN, journal=left) as again:
        assert again.round == 1
    assert "is lost" in caplog.text
    assert faults(left) == []


def test_a_flipped_bit_in_the_salt_of_the_last_frame_is_told(tmp_path, caplog):
    server = sm.Server(RUN, journal=tmp_path / "journal")
    send(server, "ab")
    left = Path(shutil.copytree(tmp_path / "journal", tmp_path / "left", ignore=shutil.ignore_patterns("*-shm")))
    server.close()
    wal = left / f"{NAME}-wal"
    data = bytearray(wal.read_bytes())
    (page,) = struct.unpack(">I", data[8:12])
    data[-page - 24 + 8] ^= 1  # the first salt of the last frame's header
    wal.write_bytes(data)
    for without_head in (False, True):
        if without_head:
            (left / "head").unlink()
        assert any("is damaged" in fault for fault in faults(left))
    with caplog.at_level(logging.WARNING, "sparsemean.journal"):
        sm.Server(RUN, journal=left).close()
    assert "is damaged" in caplog.text
    assert (left / "damaged-0.wal").read_bytes() == data  # SQLite cuts it off there, so a copy is kept


def test_the_journal_of_a_shard_is_refused_by_a_plain_server_and_the_other_way_round(tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'sparsemean[ray]'")
    from sparsemean.integrations.ray.ranges import Sharding
    from sparsemean.integrations.ray.shard import Shard

    sharding = Sharding(RUN, 1, "drop", 0, 1 << 16, str(tmp_path), True, None)
    shard = Shard(sharding, 0)
    shard.forget(-1, 0, "a")
    shard.close()
    folder = tmp_path / "shard-000"
    before = files(folder)
    with pytest.raises(sm.ForeignJournal, match="shard"):
        sm.Server(RUN, journal=folder)
    assert files(folder) == before
    assert Shard(sharding, 0).status().sequence == 0
    with pytest.raises(sm.InvalidInput, match="no journal"):
        sm.Server(RUN, journal=tmp_path)
    other = Sharding(RUN, 1, "drop", 0, 1 << 16, str(tmp_path / "plain"), True, None)
    sm.Server(RUN, journal=tmp_path / "plain" / "shard-000").close()
    with pytest.raises(sm.ForeignJournal, match="shard"):
        Shard(other, 0).status()


def test_only_files_of_the_journal_are_ever_removed(tmp_path):
    server = played(sm.Server(RUN, journal=tmp_path), 1)
    theirs = ["model.state", "notes.aside", "1x.state", "state", "7.state.bak"]
    for name in theirs:
        (tmp_path / name).write_text("mine")
    played(server, 3)
    server.close()
    played(sm.Server(RUN, journal=tmp_path), 1).close()
    assert all((tmp_path / name).read_text() == "mine" for name in theirs)


@pytest.mark.parametrize("name", ["model.state", "data.csv", "folder"])
def test_a_folder_that_is_used_for_something_else_is_refused(tmp_path, name):
    (tmp_path / name).mkdir() if name == "folder" else (tmp_path / name).write_text("mine")
    with pytest.raises(sm.InvalidInput, match=f"holds '{name}' and no journal"):
        sm.Server(RUN, journal=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_journal_of_which_only_the_head_is_left_has_lost_its_log(tmp_path):
    played(sm.Server(RUN, journal=tmp_path), 1).close()
    for path in tmp_path.iterdir():
        if path.name not in ("head", "lock"):
            path.unlink()
    before = files(tmp_path)
    with pytest.raises(sm.DamagedJournal, match="lost its log"):
        sm.Server(RUN, journal=tmp_path)
    assert files(tmp_path) == before


def test_a_server_that_nobody_closed_gives_its_lock_back(tmp_path):
    server = played(sm.Server(RUN, journal=tmp_path), 1)
    digest = server.digest()
    del server
    gc.collect()
    with sm.Server(RUN, journal=tmp_path) as again:
        assert again.digest() == digest


def test_what_systems_put_into_folders_does_not_matter(tmp_path):
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".hidden").write_text("")
    played(sm.Server(RUN, journal=tmp_path), 1).close()


@pytest.mark.parametrize("journal", ["", "a\0b", 3, b"bytes"])
def test_a_journal_that_is_no_path_is_refused(journal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sm.InvalidInput, match="path of a folder"):
        sm.Server(RUN, journal=journal)
    assert list(tmp_path.iterdir()) == []


def test_a_closed_server_says_that_it_is_closed(tmp_path):
    server = played(sm.Server(RUN, journal=tmp_path), 1)
    blob = sm.Client(RUN, "a").encode(np.ones(40), 1)
    server.close()
    for call in (
        lambda: server.accept("a", blob),
        lambda: server.accept_many({"a": blob}),
        server.close_round,
        server.skip_round,
        lambda: server.forget("a"),
        lambda: server.expected("a"),
        server.last_estimate,
        server.digest,
    ):
        with pytest.raises(sm.JournalError, match="the server is closed"):
            call()
    assert server.round == 1


@pytest.mark.parametrize("journal", [False, True])
def test_the_last_round_cannot_be_left(tmp_path, journal):
    last = 2**63 - 1
    server = sm.Server(RUN, round=last, journal=tmp_path / "journal" if journal else None)
    send(server, "a")
    digest = server.digest()
    for end in (server.skip_round, server.close_round):
        with pytest.raises(sm.InvalidInput, match="is the last"):
            end()
    assert (server.round, server.digest()) == (last, digest)
    server.close()


def _use(server: sm.Server, results: multiprocessing.SimpleQueue[str]) -> None:
    for call in (lambda: send(server, "z"), server.close_round, server.digest):
        try:
            call()
            results.put("done")
        except sm.JournalError as error:
            results.put(str(error))
    server.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_may_not_use_the_server_and_does_not_keep_its_lock(tmp_path):
    server = played(sm.Server(RUN, journal=tmp_path), 1)
    digest = server.digest()
    context = multiprocessing.get_context("fork")
    results, hold = context.SimpleQueue(), context.Event()
    child = context.Process(target=_use, args=(server, results))
    child.start()
    said = [results.get() for _ in range(3)]
    child.join(60)
    assert child.exitcode == 0
    assert all("make the server after the fork" in each for each in said)
    assert server.digest() == digest
    sleeper = context.Process(target=hold.wait, args=(60,))
    sleeper.start()
    try:
        server.close()
        with sm.Server(RUN, journal=tmp_path) as again:  # although the sleeper has a copy of every open file
            assert again.digest() == digest
            assert faults(tmp_path) == []
    finally:
        hold.set()
        sleeper.join(60)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no list of open files here")
def test_a_closed_server_is_unlocked_although_a_process_forked_just_now_still_has_its_files(tmp_path):
    server = played(sm.Server(RUN, journal=tmp_path), 1)
    digest = server.digest()
    # What a fork copies, and has not yet closed when the parent goes on.
    locks = [int(each.name) for each in Path("/proc/self/fd").iterdir() if _is(each, tmp_path / LOCK)]
    copies = [os.dup(each) for each in locks]
    assert len(copies) == 1
    server.close()
    with sm.Server(RUN, journal=tmp_path) as again:
        assert again.digest() == digest
    os.close(copies[0])


def _is(link: Path, file: Path) -> bool:
    return link.exists() and link.samefile(file)


def test_what_cannot_be_read_is_damage_and_no_other_error(tmp_path):
    """Types and texts that no server wrote, with the checksums set right where that is possible."""
    played(sm.Server(RUN, journal=tmp_path / "journal"), 2).close()
    for number, damage in enumerate(
        (
            "UPDATE records SET node = x'ff'",
            "UPDATE records SET node = CAST(x'ff' AS TEXT)",
            "UPDATE records SET kind = 3",
            "UPDATE records SET weight = 'text'",
            "UPDATE records SET round = 1.5",
            "UPDATE records SET checksum = 'x'",
            "UPDATE payloads SET bytes = 'text'",
            "UPDATE changes SET bytes = 7",
            "UPDATE facts SET value = x'00'",
            "UPDATE facts SET checksum = NULL",
            "UPDATE facts SET value = CAST(x'ff' AS TEXT)",
            "DELETE FROM facts",
        )
    ):
        copy = Path(shutil.copytree(tmp_path / "journal", tmp_path / str(number)))
        database = sqlite3.connect(copy / NAME)
        try:
            database.execute(damage)
            database.commit()
        except sqlite3.IntegrityError:
            continue
        finally:
            database.close()
        assert faults(copy), damage
        for look in (contents, lambda folder: sm.Server(RUN, journal=folder).close()):
            with suppress(sm.JournalError):
                look(copy)


def test_a_journal_that_is_a_file_is_refused_and_a_home_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(sm.InvalidInput, match="is a file; a journal is a folder"):
        sm.Server(RUN, journal=tmp_path / "file")
    with pytest.raises(sm.InvalidInput, match="give the whole path"):
        sm.Server(RUN, journal="~nobody-of-this-name/journal")
    monkeypatch.setenv("HOME", str(tmp_path))
    played(sm.Server(RUN, journal="~/journal"), 1).close()
    assert contents(tmp_path / "journal").open_round == 1
