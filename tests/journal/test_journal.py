"""A server with a journal: who may open it, what is in it, what is pruned, and what a crash or a power cut leaves."""

from __future__ import annotations

import logging
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.errors import DamagedJournal, ForeignJournal, InvalidInput, JournalError
from sparsemean.journal import Journal, contents, faults
from sparsemean.journal import journal as journal_module
from sparsemean.journal.log import NAME, Log
from sparsemean.journal.mapped_rows import MappedShelf
from sparsemean.server.fingerprint import fingerprint
from sparsemean.server.local import LocalRounds

FIRST = 4


def crashed(folder: Path, name: str = "crashed") -> Path:
    """A copy of a journal in use: what its server would leave if it were killed now."""
    return Path(shutil.copytree(folder, folder.parent / name, ignore=shutil.ignore_patterns("*-shm")))


def journal_of(server: sm.Server) -> Journal:
    rounds = server._rounds
    assert isinstance(rounds, LocalRounds)
    assert rounds._journal is not None
    return rounds._journal


def settled(server: sm.Server) -> None:
    """Wait for rows to be synced."""
    journal_of(server)._join()


# A journal keeps payloads as bytes, and rows in either precision: each scheme with both, and each other kind of value
# with a memory of rows, one of them with node states.
@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, "float32") for name in sm.names()),
        *((name, "float64") for name in ("rand-k-temporal-window", "rand-k-hybrid", "lag")),
        *(("rand-k-temporal", values) for values in ("float16", "bfloat16", "int8", "int4", "1-bit")),
        ("diana", "1-bit"),
    ],
)
@pytest.mark.filterwarnings("ignore::sparsemean.errors.DivergenceWarning")
def test_every_scheme_goes_on_where_it_was_killed(name, values, opened, folder, tmp_path):
    options = {"ratio": 2.0} if name == "rand-k-spatial-opt" else {}
    scheme = sm.named(name, k=0.5, values=values, **options)
    nodes = ["a", "b"] if scheme.encoder.facts.planned else None
    run = sm.Run(scheme, 30, seed=1, blocks=[10, 20], nodes=nodes)
    plain, server = sm.Server(run), opened(run)
    clients = [sm.Client(run, node) for node in "abc"]
    for round in range(4):
        for client in clients[: 1 + round % 3]:
            blob = client.encode(np.cos(np.arange(30) + round / 3 + ord(client.node)), round)
            client.delivered(plain.accept(client.node, blob, [1.0, 0.5]))
            server.accept(client.node, blob, [1.0, 0.5])
        assert opened(run, crashed(folder, f"mid-{round}")).digest() == plain.digest() == server.digest()
        expected = plain.close_round()
        assert fingerprint(server.close_round()) == fingerprint(expected)
        again = opened(run, crashed(folder, f"end-{round}"))
        assert again.digest() == plain.digest() == server.digest()
        assert fingerprint(again.last_estimate()) == fingerprint(expected)


def test_rounds_without_anybody_can_be_skipped_and_last_estimate_knows(opened, run, folder, play):
    plain, server = sm.Server(run), opened()
    assert server.last_estimate() is None
    for each in (plain, server):
        each.skip_round()
        play(each, 1)
        each.skip_round()
    assert server.last_estimate() is None
    assert plain.last_estimate() is None
    server.close()
    assert opened().digest() == plain.digest()


def test_a_folder_is_for_one_server_at_a_time_and_free_after_any_failure(opened, run, folder):
    server = opened()
    with pytest.raises(JournalError, match="in use by another server"):
        sm.Server(run, journal=folder)
    server.close()
    server.close()
    with pytest.raises(ForeignJournal):
        sm.Server(sm.Run(run.scheme, run.dim, seed=99), journal=folder)
    opened()


def test_a_closed_server_says_so(opened, run, payload):
    server = opened()
    server.close()
    with pytest.raises(JournalError, match="closed"):
        server.accept("a", payload(run, "a", 0))


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("seed", {"run": sm.Run(sm.named("rand-k-temporal", k=0.25), 40, seed=4)}),
        ("blocks", {"run": sm.Run(sm.named("rand-k-temporal", k=0.25), 41, seed=3)}),
        ("memory", {"run": sm.Run(sm.named("rand-k", k=0.25), 40, seed=3)}),
        ("k", {"run": sm.Run(sm.named("rand-k-temporal", k=0.3), 40, seed=3)}),
        ("blocks", {"run": sm.Run(sm.named("rand-k-temporal", k=0.25), 40, seed=3, blocks=[20, 20])}),
        ("decoder", {"run": sm.Run(sm.Scheme(sm.RandK(0.25), sm.Spatial("avg"), sm.PerNode()), 40, seed=3)}),
        ("missing", {"missing": "carry"}),
        ("clip", {"clip": sm.Clip(norm=1.0)}),
    ],
)
def test_the_journal_of_another_server_is_refused_and_stays_as_it_was(name, other, opened, folder, play):
    server = opened()
    play(server, 2)
    server.close()
    before = contents(folder)
    with pytest.raises(ForeignJournal, match=f" {name} = "):
        opened(**other)
    assert contents(folder) == before
    assert faults(folder) == []
    assert opened().round == 2


def test_the_journal_of_another_release_is_refused(opened, folder):
    opened().close()
    log = Log(folder)
    with log.change(durable=True):
        log.note("binding", '{"version": 99}')
    log.close()
    with pytest.raises(ForeignJournal, match="another release"):
        opened()


def test_contents_tell_what_there_is_while_the_server_runs(opened, run, folder, play, payload):
    server = opened(missing="carry", clip=sm.Clip(value=9.0), round=FIRST)
    fresh = contents(folder)
    assert (fresh.waiting, fresh.known, fresh.kept_rounds) == ((), 0, ())
    play(server, 5)
    for node in ("c", "x"):
        server.accept(node, payload(run, node, server.round))
    server.forget("a")
    held = contents(folder)
    assert held.run["seed"] == run.seed
    assert (held.missing, held.clip) == ("carry", [None, 9.0])
    assert (held.open_round, held.waiting, held.waiting_bytes) == (FIRST + 5, ("c", "x"), 2 * run.payload_bytes)
    assert held.known == 3  # a is forgotten in the open round, after the state that was counted
    assert held.kept_rounds == (FIRST + 3, FIRST + 4)
    assert held.rows_bytes == 1 << 16
    assert held.log_bytes > 0
    assert held.state_bytes > 8 * run.dim
    assert faults(folder) == []
    server.close()
    assert contents(folder).waiting == ("c", "x")


def test_contents_and_faults_of_what_is_no_journal(tmp_path):
    for look in (contents, faults):
        with pytest.raises(InvalidInput, match="no journal"):
            look(tmp_path)
    Log(tmp_path).close()
    with pytest.raises(JournalError, match="about to begin"):
        contents(tmp_path)
    assert faults(tmp_path) == []


def test_a_journal_that_was_just_made_goes_on_in_the_round_it_began_with(opened, run, folder, payload):
    server = opened(round=FIRST)
    server.accept("a", payload(run, "a", FIRST))
    digest = server.digest()
    server.close()
    assert contents(folder).open_round == FIRST
    again = opened()
    assert again.round == FIRST
    assert again.digest() == digest


@pytest.fixture
def whole(opened, folder, play, payload, run):
    """A journal with ended rounds and an open one, given back by its server."""
    server = opened()
    play(server, 4)
    server.accept("a", payload(run, "a", 4))
    server.close()
    assert faults(folder) == []
    return folder


def states(folder: Path) -> list[Path]:
    return list(folder.glob("*.state"))


def test_a_state_is_replaced_round_by_round(whole):
    assert len(states(whole)) == 1
    assert not list(whole.glob("*.aside"))


@pytest.mark.parametrize("at", [0, 5, 40, -1])
def test_a_damaged_state_is_found_and_refused(whole, at, opened):
    (state,) = states(whole)
    blob = bytearray(state.read_bytes())
    blob[at] ^= 16
    state.write_bytes(blob)
    assert faults(whole)
    with pytest.raises(DamagedJournal):
        opened()
    blob[at] ^= 16
    state.write_bytes(blob)
    assert faults(whole) == []
    opened()


def test_a_missing_state_is_found_and_refused(whole, opened):
    (state,) = states(whole)
    state.unlink()
    assert faults(whole) == ["the state after record 15 is missing; restore a copy of the journal"]
    for _ in range(2):
        with pytest.raises(DamagedJournal, match="missing"):
            opened()
    with pytest.raises(DamagedJournal, match="missing"):
        contents(whole)


def test_a_missing_log_is_refused_and_nothing_else_is_touched(whole, opened):
    for path in whole.glob(f"{NAME}*"):
        path.unlink()
    before = sorted(path.name for path in whole.iterdir())
    with pytest.raises(DamagedJournal, match="lost its log"):
        opened()
    assert {path.name for path in whole.iterdir()} >= set(before)


def test_flipped_bytes_of_the_log_are_found_or_do_no_harm(whole, run, opened, tmp_path):
    """A byte of every 64 of the database is flipped; what opens is the state as it was, and most do not."""
    digest = opened().digest()
    for server in [opened(journal=crashed(whole, "other"))]:
        assert server.digest() == digest
    blob, refused = (whole / NAME).read_bytes(), 0
    assert blob.startswith(b"SQLite format 3")
    copy = tmp_path / "copy"
    for at in range(0, len(blob), 64 * 7 + 3):
        shutil.copytree(whole, copy, ignore=shutil.ignore_patterns("*-shm", "*-wal", "lock"))
        damaged = bytearray(blob)
        damaged[at] ^= 0x55
        (copy / NAME).write_bytes(damaged)
        found = faults(copy)
        try:
            with sm.Server(run, journal=copy) as server:
                same = server.digest() == digest
        except JournalError:
            same, refused = True, refused + 1
            assert found
        assert same
        shutil.rmtree(copy)
    assert refused > 3


def test_a_damaged_payload_in_the_log_is_named(whole, opened):
    log = Log(whole)
    log._database.execute("UPDATE payloads SET bytes = zeroblob(length(bytes)) WHERE sequence = 16")
    log.close()
    assert faults(whole) == ["record 16 of the journal is damaged; restore a copy of it"]
    with pytest.raises(DamagedJournal, match="record 16"):
        opened()


def test_a_gap_in_the_log_and_a_payload_of_another_round_are_named(whole, payload, run):
    log = Log(whole)
    log._database.execute("DELETE FROM records WHERE sequence = 13")
    log.close()
    assert faults(whole) == ["records between 12 and 14 are missing"]


def test_rounds_are_pruned(opened, folder, play, monkeypatch):
    monkeypatch.setattr(journal_module, "KEPT_ROUNDS", 3)
    server = opened()
    play(server, 7)
    assert contents(folder).kept_rounds == (4, 5, 6)
    assert journal_of(server)._log._database.execute("SELECT count(*) FROM payloads").fetchone() == (9,)


def unsynced_bytes(server: sm.Server) -> int:
    return journal_of(server)._log.changes_bytes(-1)


def test_changes_are_kept_until_the_rows_are_synced(opened, folder, play, monkeypatch):
    server = opened()
    play(server, 2)
    each = unsynced_bytes(server) // 2
    assert each > 0
    monkeypatch.setattr(journal_module, "UNSYNCED", 4 * each)
    play(server, 3)  # after the fifth round there is more than that, and rows are synced
    settled(server)
    assert unsynced_bytes(server) > 4 * each
    play(server, 1)  # which notes that they were
    assert unsynced_bytes(server) < 2 * each
    digest = server.digest()
    assert opened(journal=crashed(folder)).digest() == digest


@pytest.mark.parametrize("loss", ["deleted", "cut short"])
def test_rows_that_are_lost_once_their_changes_are_gone_are_missed(loss, opened, run, folder, play, monkeypatch):
    monkeypatch.setattr(journal_module, "UNSYNCED", 0)
    server = opened()
    play(server, 3)
    settled(server)
    play(server, 1)
    server.close()
    assert faults(folder) == []
    (rows,) = folder.glob("*.rows")
    held = rows.read_bytes()
    rows.unlink()
    if loss == "cut short":
        rows.write_bytes(held[:-4096])
    expected = f"{rows} is {'missing' if loss == 'deleted' else 'shorter'}.*restore a copy"
    (fault,) = faults(folder)
    with pytest.raises(DamagedJournal, match=expected) as caught:
        opened()
    assert fault == str(caught.value)
    rows.write_bytes(held)
    play(opened(), 1)


def test_rows_that_are_lost_while_their_changes_are_kept_are_made_again(opened, folder, play):
    server = opened()
    play(server, 3)
    digest = server.digest()
    copy = crashed(folder)
    for rows in copy.glob("*.rows"):
        rows.unlink()
    assert faults(copy) == []
    assert opened(journal=copy).digest() == digest


def test_changes_of_servers_that_crashed_count_too(opened, folder, play, monkeypatch):
    server = opened()
    play(server, 4)
    held = unsynced_bytes(server)
    monkeypatch.setattr(journal_module, "UNSYNCED", held)
    server.close()
    server = opened()
    play(server, 1)
    settled(server)
    play(server, 1)
    assert unsynced_bytes(server) < held


def test_rows_that_could_not_be_synced_are_synced_later(opened, play, monkeypatch, caplog):
    caplog.set_level(logging.ERROR)
    monkeypatch.setattr(journal_module, "UNSYNCED", 0)
    sync = MappedShelf.sync

    def fail(_: MappedShelf) -> None:
        raise JournalError("no")

    monkeypatch.setattr(MappedShelf, "sync", fail)
    server = opened()
    play(server, 3)
    settled(server)
    kept = unsynced_bytes(server)
    assert "could not be synced" in caplog.text
    monkeypatch.setattr(MappedShelf, "sync", sync)
    play(server, 2)
    settled(server)
    play(server, 1)
    assert unsynced_bytes(server) < kept


@pytest.mark.parametrize("name", ["rand-k-temporal", "rand-k-temporal-stale", "rand-k-hybrid", "diana", "lag"])
def test_a_power_cut_may_take_any_of_the_rows_that_are_not_synced(name, opened, folder, monkeypatch, tmp_path):
    """Each page of a row's file is, at random, as it is now or as it was when the rows were last synced."""
    run = sm.Run(sm.named(name, k=0.25), 2000, seed=5)
    monkeypatch.setattr(journal_module, "UNSYNCED", 100_000)
    rng, server, clients = np.random.default_rng(6), opened(run), [sm.Client(run, node) for node in "abcdef"]
    old: dict[str, bytes] = {}
    for round in range(12):
        for client in clients:
            client.delivered(server.accept(client.node, client.encode(rng.normal(size=run.dim), round)))
        if round == 5:
            server.forget("z")
        server.close_round()
        settled(server)
        journal = journal_of(server)
        if journal._syncing is not None or not old:  # a sync has just ended, or there has been none
            synced = {path.name: path.read_bytes() for path in folder.glob("*.rows")}
            old = synced if journal._syncing is not None else {file: bytes(len(blob)) for file, blob in synced.items()}
        copy = crashed(folder, f"cut-{round}")
        for path in copy.glob("*.rows"):
            now = path.read_bytes()
            before = old[path.name].ljust(len(now), b"\0")
            pages = [(now, before)[rng.integers(2)][at : at + 4096] for at in range(0, len(now), 4096)]
            path.write_bytes(b"".join(pages))
        again = opened(run, copy)
        assert again.digest() == server.digest()
        again.close()
        shutil.rmtree(copy)


def test_rows_are_worth_nothing_without_the_changes(opened, folder, play):
    """The test above can fail: with the changes gone as well, the loss of rows is seen."""
    server = opened()
    play(server, 3)
    copy = crashed(folder)
    log = Log(copy)
    with log.change(durable=True):
        log.drop_changes(up_to=99)
    log.close()
    (copy / "rows.rows").write_bytes(bytes(1 << 16))
    assert opened(journal=copy).digest() != server.digest()


def test_a_node_that_takes_part_is_not_forgotten_for_want_of_room(opened, run, folder, play, payload):
    """With less room than before, those in the open round stay."""
    server = opened()
    for node in "abcd":
        server.accept(node, payload(run, node, 0))
    server.close()
    small = opened(memory_bytes=2 * 2000)
    small.close_round()
    assert set(small._rounds.roster.known) == set(small._rounds.estimator.memory._rows) == set("abcd")
    play(small, 1, nodes=("a",))
    assert set(small._rounds.roster.known) == set(small._rounds.estimator.memory._rows)
    assert len(small._rounds.roster.known) < 4


def test_an_interrupt_between_the_log_and_the_memory_leaves_the_server_sound(opened, run, payload, monkeypatch):
    """The payload is in the log and the caller does not know it: as after a crash, it counts."""
    server, plain = opened(), sm.Server(run)
    change = Log.change

    @contextmanager
    def interrupted(self, durable):
        with change(self, durable):
            yield
        raise KeyboardInterrupt

    monkeypatch.setattr(Log, "change", interrupted)
    with pytest.raises(KeyboardInterrupt):
        server.accept("a", payload(run, "a", 0))
    monkeypatch.setattr(Log, "change", change)
    for node in "ab":
        assert server.accept(node, payload(run, node, 0)) == plain.accept(node, payload(run, node, 0))
    assert server.digest() == plain.digest()


@pytest.mark.parametrize(
    "name", ["rand-k-temporal", "rand-k-temporal-window", "rand-k-temporal-stale", "rand-k-hybrid"]
)
def test_a_flipped_bit_in_what_is_remembered_is_found_by_verify_and_when_it_is_read(
    name, opened, folder, play, monkeypatch
):
    """Once rows are synced and their changes are gone from the log; before that, the changes make them again."""
    monkeypatch.setattr(journal_module, "UNSYNCED", 0)
    run = sm.Run(sm.named(name, k=0.25), 40, seed=3)
    server = opened(run)
    play(server, 4)
    settled(server)
    server.skip_round()
    settled(server)
    server.skip_round()
    server.close()
    assert faults(folder) == []
    for rows in folder.glob("*.rows"):
        held = rows.read_bytes()
        for at in (0, 39, len(held.rstrip(b"\0")) - 1):  # all within the rows of the three nodes
            damaged = bytearray(held)
            damaged[at] ^= 1
            rows.write_bytes(damaged)
            (fault,) = faults(folder)
            assert f"{rows.name}: what is remembered of node" in fault
            server = opened(run)
            for node in "abc":
                if repr(node) in fault:
                    with pytest.raises(DamagedJournal, match=f"node '{node}' is damaged"):
                        server.expected(node)
                else:
                    server.expected(node)
            server.close()
            rows.write_bytes(held)
    assert faults(folder) == []


def test_verify_looks_again_where_the_server_writes_into_rows_meanwhile(opened, folder, play, monkeypatch):
    monkeypatch.setattr(journal_module, "UNSYNCED", 0)
    server = opened()
    play(server, 3)
    stop = threading.Event()

    def go_on() -> None:
        while not stop.is_set():
            play(server, 1)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        found = [faults(folder) for _ in range(30)]
    finally:
        stop.set()
        thread.join()
    assert found == [[]] * 30
