"""Plans and the journal: noted before they are told, the same after any crash, and read as strictly as all else."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean.errors import DamagedJournal, ForeignJournal, JournalError
from sparsemean.journal import contents, faults
from sparsemean.journal.log import NAME, Log, Record
from sparsemean.sampling import Plan
from sparsemean.server.fingerprint import fingerprint

DIM = 30
SCHEMES = {
    "plain": sm.named("rand-k-balanced", k=0.4),
    "hybrid": sm.named("rand-k-balanced-hybrid", k=(0.5, 0.2), values="2-bit"),
    "few bits": sm.Scheme(sm.RandK(0.9, draw=sm.Balanced()), values="1-bit"),
    "epochs": sm.named("rand-k-epochs-hybrid", k=(0.5, 0.2), values="int8"),
    "epochs without restarts": sm.Scheme(sm.RandK(0.4, draw=sm.Epochs(ratio=3.0, restart=False)), memory=sm.PerNode()),
    "in step": sm.Scheme(sm.Difference(sm.RandK(0.4, draw=sm.Balanced())), memory=sm.Offset()),
}
PLAIN = SCHEMES["plain"]
Opener = Callable[..., sm.Server]


def crashed(folder: Path, name: str) -> Path:
    """A copy of a journal in use: what its server would leave if it were killed now."""
    return Path(shutil.copytree(folder, folder.parent / name, ignore=shutil.ignore_patterns("*-shm")))


def vector(node: str, round: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    found: np.ndarray[Any, np.dtype[np.float64]] = np.cos(np.arange(DIM) + round / 3 + ord(node[0]))
    return found


def told(server: sm.Server, nodes: Sequence[str]) -> list[Plan]:
    return [codec.unpack_plan(server.run, node, server.round, server.plan(node)) for node in nodes]


def send(server: sm.Server, nodes: Sequence[str], **plans: bytes) -> None:
    for node in nodes:
        plan = plans.get(node) or server.plan(node)
        server.accept(node, sm.Client(server.run, node).encode(vector(node, server.round), server.round, plan))


@pytest.mark.parametrize("durability", ["accept", "round"])
@pytest.mark.parametrize("name", SCHEMES)
def test_plans_are_the_same_after_a_crash_at_any_moment(
    name: str, durability: str, opened: Opener, folder: Path
) -> None:
    """Before anybody asked; when slots are dealt; when some have come; when the round is over. To the bit."""
    run = sm.Run(SCHEMES[name], DIM, seed=1, blocks=[10, 20])
    plain, server = sm.Server(run), opened(run, durability=durability)
    clients = {node: sm.Client(run, node, run.encoders[i % len(run.encoders)]) for i, node in enumerate("abcd")}

    def check(moment: str, plans: dict[str, bytes]) -> None:
        again = opened(run, crashed(folder, f"{moment}-{server.round}"))
        assert again.digest() == plain.digest() == server.digest(), moment
        for node, plan in plans.items():
            assert again.plan(node) == plan, moment
        assert again.digest() == plain.digest(), moment

    for round in range(4 if run.epochs is None else 7):
        check("fresh", {})
        cohort = [["a", "b", "c"], ["c", "a"], ["a", "b", "c", "d"], ["d"]][round % 4]
        plans = plain.plans(cohort) if round != 3 else {node: plain.plan(node) for node in cohort}
        assert plans == (server.plans(cohort) if round != 3 else {node: server.plan(node) for node in cohort})
        plans["e"] = plain.plan("e")
        check("dealt", plans)
        for i, node in enumerate(cohort):
            blob = clients[node].encode(vector(node, round), round, plans[node])
            clients[node].delivered(plain.accept(node, blob, [1.0, 0.5]))
            server.accept(node, blob, [1.0, 0.5])
            if i == 0:
                check("some", plans)
        expected = plain.close_round()
        assert fingerprint(server.close_round()) == fingerprint(expected)
        assert fingerprint(opened(run, crashed(folder, f"last-{round}")).last_estimate()) == fingerprint(expected)


def test_a_plan_is_in_the_journal_before_it_is_told(opened: Opener, folder: Path) -> None:
    run = sm.Run(PLAIN, DIM)
    server = opened(run)
    server.plan("a")
    with closing(Log(folder, reading=True)) as log:
        assert [(record.kind, record.round, record.dealt) for record in log.records()] == [("deal", 0, [])]
    send(server, "ab")
    server.close_round()
    server.plans(["b", "c"])
    for _ in range(3):
        server.plan("x")  # noted once
    with closing(Log(folder, reading=True)) as log:
        *_, last = log.records()
        assert [record.kind for record in log.records()] == ["deal", "accept", "accept", "close", "deal"]
    assert (last.round, last.dealt) == (1, ["b", "c"])


def test_a_plan_that_cannot_be_noted_is_not_told(opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = opened(sm.Run(PLAIN, DIM))
    digest = server.digest()
    with monkeypatch.context() as broken:
        broken.setattr(Log, "add", _fails)
        for ask in (lambda: server.plan("a"), lambda: server.plans(["a"])):
            with pytest.raises(JournalError, match="no space"):
                ask()
    assert server.digest() == digest
    assert told(opened(server.run, crashed(folder, "without")), "a") == [Plan()]
    assert codec.unpack_plan(server.run, "a", 0, server.plans(["a", "b"])["a"]) == Plan(0, 2)


def _fails(*_: object) -> None:
    raise OSError("no space left on the device")


def test_a_payload_by_the_list_that_cannot_be_noted_is_not_counted(
    opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sm.Run(PLAIN, DIM, nodes=["a", "b"])
    server, blob = opened(run), sm.Client(run, "a").encode(vector("a", 0), 0)
    digest = server.digest()
    with monkeypatch.context() as broken:
        broken.setattr(Log, "add", _fails)
        with pytest.raises(JournalError, match="no space"):
            server.accept("a", blob)
    assert server.digest() == digest
    assert server.accept("a", blob).node == "a"


def test_that_an_error_is_a_bound_is_kept_with_the_estimate(opened: Opener, folder: Path) -> None:
    run = sm.Run(sm.named("rand-k-balanced", k=10), DIM)
    server = opened(run)
    plans = server.plans(["a", "b"])
    send(server, "ab", **plans)
    estimate = server.close_round()
    assert estimate.error_is_bound
    again = opened(run, crashed(folder, "again")).last_estimate()
    assert again is not None
    assert again.error_is_bound
    assert fingerprint(again) == fingerprint(estimate)


# --- a process that is killed ---------------------------------------------------------------------

ROUNDS = 2  # that were closed before
CHILD = """
import os, signal, sys
import sparsemean as sm
sys.path.insert(0, sys.argv[3])
from test_plans_journal import ROUNDS, SCHEMES, DIM, vector

run = sm.Run(SCHEMES[sys.argv[4]], DIM, seed=5, nodes=sys.argv[2].split() or None)
server = sm.Server(run, journal=sys.argv[1])
for round in range(ROUNDS):
    for node in "abc":
        server.accept(node, sm.Client(run, node).encode(vector(node, round), round, server.plan(node)))
    server.close_round()
plans = server.plans(["c", "b", "d"])
for node in "cb":
    server.accept(node, sm.Client(run, node).encode(vector(node, ROUNDS), ROUNDS, plans[node]))
print(server.digest(), *(plan.hex() for plan in plans.values()), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("name", "listed"), [("plain", ""), ("plain", "a b c"), ("epochs", ""), ("epochs without restarts", "a b c")]
)
def test_a_killed_process_leaves_plans_and_payloads_to_the_bit(
    name: str, listed: str, opened: Opener, folder: Path
) -> None:
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), listed, here, name], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    digest, *plans = done.stdout.split()
    run = sm.Run(SCHEMES[name], DIM, seed=5, nodes=listed.split() or None)
    server = opened(run)
    assert (server.round, server.digest()) == (ROUNDS, digest)
    assert [server.plan(node).hex() for node in "cbd"] == plans
    in_epoch = codec.unpack_plan(run, "c", ROUNDS, bytes.fromhex(plans[0])).ratios != b""
    assert in_epoch == (name == "epochs without restarts")
    blob = sm.Client(run, "c").encode(vector("c", ROUNDS), ROUNDS, bytes.fromhex(plans[0]))
    assert server.accept("c", blob).node == "c"  # as a duplicate
    assert server.digest() == digest
    server.accept("d", sm.Client(run, "d").encode(vector("d", ROUNDS), ROUNDS, bytes.fromhex(plans[2])))
    plain = sm.Server(run)
    for _ in range(ROUNDS):
        send(plain, "abc")
        plain.close_round()
    send(plain, "cbd", **plain.plans(["c", "b", "d"]))
    assert fingerprint(server.close_round()) == fingerprint(plain.close_round())
    assert server.digest() == plain.digest()


# --- who looks into it ----------------------------------------------------------------------------


def test_those_who_look_into_a_journal_find_nothing_wrong_with_its_plans(opened: Opener, folder: Path) -> None:
    run = sm.Run(PLAIN, DIM)
    server = opened(run, round=4)
    server.plans(["a", "b"])
    held = contents(folder)
    assert (held.open_round, held.waiting, held.known) == (4, (), 0)
    assert faults(folder) == []
    send(server, "ab")
    server.close_round()
    server.plans(["b", "c"])
    send(server, "c")
    held = contents(folder)
    assert (held.open_round, held.waiting, held.known, held.kept_rounds) == (5, ("c",), 2, (4,))
    assert held.waiting_bytes == run.payload_bytes
    assert "nodes" not in held.run
    assert faults(folder) == []
    server.close()
    assert faults(folder) == []


def test_plans_of_rounds_long_over_are_pruned(opened: Opener, folder: Path) -> None:
    server = opened(sm.Run(PLAIN, DIM))
    for _ in range(5):
        server.plans(["a", "b"])
        send(server, "a")
        server.close_round()
    with closing(Log(folder, reading=True)) as log:
        assert [record.round for record in log.records() if record.kind == "deal"] == [3, 4]
        assert log._database.execute("SELECT count(*) FROM payloads").fetchone() == (4,)


@pytest.fixture
def whole(opened: Opener, folder: Path) -> tuple[sm.Run, Path]:
    """A journal with an open round in which slots are dealt and one node has come."""
    run = sm.Run(PLAIN, DIM)
    server = opened(run)
    send(server, "abc")
    server.close_round()
    server.plans(["b", "c"])
    send(server, "c")
    server.close()
    return run, folder


def changed(folder: Path, *statements: tuple[Any, ...]) -> None:
    with closing(sqlite3.connect(folder / NAME, isolation_level=None)) as database:
        for statement in statements:
            assert database.execute(*statement).rowcount == 1


DEAL = "sequence = (SELECT max(sequence) FROM records WHERE kind = 'deal')"


@pytest.mark.parametrize(
    "damage",
    [
        f'UPDATE payloads SET bytes = CAST(\'["b", "x"]\' AS BLOB) WHERE {DEAL}',
        f'UPDATE payloads SET bytes = CAST(\'["c", "b"]\' AS BLOB) WHERE {DEAL}',
        f"DELETE FROM payloads WHERE {DEAL}",
        f"UPDATE records SET node = 'b' WHERE {DEAL}",
        f"UPDATE records SET round = 0 WHERE {DEAL}",
        f"UPDATE records SET kind = 'forget' WHERE {DEAL}",
        f"UPDATE records SET kind = 'accept' WHERE {DEAL}",
        f"UPDATE records SET length = 1 WHERE {DEAL}",
        f"DELETE FROM records WHERE {DEAL}",
    ],
)
def test_a_damaged_deal_is_found_and_not_gone_by(damage: str, whole: tuple[sm.Run, Path], opened: Opener) -> None:
    run, folder = whole
    assert faults(folder) == []
    changed(folder, (damage,))
    assert faults(folder) != []
    with pytest.raises(DamagedJournal):
        opened(run)


@pytest.mark.parametrize(
    "payload",
    [b"", b"[", b"{}", b'"bc"', b"7", b"[1, 2]", b'["b", null]', b'["b", "b", "c"]', b"\xff", b"[" * 100_000],
    ids=lambda payload: repr(payload[:20]),
)
def test_a_deal_that_no_server_wrote_is_found_though_its_checksum_fits(
    payload: bytes, whole: tuple[sm.Run, Path], opened: Opener
) -> None:
    run, folder = whole
    with closing(Log(folder, reading=True)) as log:
        number = max(record.sequence for record in log.records() if record.kind == "deal")
    record = Record(number, "deal", 1, payload=payload)
    changed(
        folder,
        ("DELETE FROM payloads WHERE sequence = ?", (number,)),
        ("INSERT INTO payloads VALUES (?, 0, ?)", (number, payload)),
        ("UPDATE records SET length = ?, checksum = ? WHERE sequence = ?", (len(payload), record.checksum, number)),
    )
    assert faults(folder) != []
    with pytest.raises(DamagedJournal):
        opened(run)


def test_a_ratio_where_no_epoch_is_on_is_damage(whole: tuple[sm.Run, Path], opened: Opener) -> None:
    run, folder = whole
    with closing(Log(folder, reading=True)) as log:
        number = max(record.sequence for record in log.records() if record.kind == "deal")
    record = Record(number, "deal", 1, payload=b"32")
    changed(
        folder,
        ("UPDATE payloads SET bytes = ? WHERE sequence = ?", (b"32", number)),
        ("UPDATE records SET length = ?, checksum = ? WHERE sequence = ?", (2, record.checksum, number)),
    )
    with pytest.raises(DamagedJournal, match="no epoch is on"):
        opened(run)


def test_slots_dealt_to_others_than_the_payloads_go_by_are_damage(whole: tuple[sm.Run, Path], opened: Opener) -> None:
    """A list of names, whole and with its checksum, under which the payload of c would be read at other places."""
    run, folder = whole
    with closing(Log(folder, reading=True)) as log:
        number = max(record.sequence for record in log.records() if record.kind == "deal")
    payload = json.dumps(["c", "b"]).encode()
    record = Record(number, "deal", 1, payload=payload)
    changed(
        folder,
        ("UPDATE payloads SET bytes = ? WHERE sequence = ?", (payload, number)),
        ("UPDATE records SET length = ?, checksum = ? WHERE sequence = ?", (len(payload), record.checksum, number)),
    )
    with pytest.raises(DamagedJournal, match="does not fit its state"):
        opened(run)


# --- another list, another scheme -----------------------------------------------------------------


def listed(*nodes: str) -> sm.Run:
    return sm.Run(PLAIN, DIM, seed=2, nodes=nodes or None)


def by_list(server: sm.Server, nodes: Sequence[str]) -> None:
    for node in nodes:
        server.accept(node, sm.Client(server.run, node).encode(vector(node, server.round), server.round))


@pytest.mark.parametrize("later", [("a", "b", "c"), ("b", "a"), ("b",), ()], ids=str)
@pytest.mark.parametrize("began", ["by the list", "by a plan", "not"])
def test_a_journal_goes_on_with_another_list_of_nodes(
    began: str, later: tuple[str, ...], opened: Opener, folder: Path
) -> None:
    """In the open round the slots stay as they were, with what was accepted; the next one goes by the new list."""
    first = listed("a", "b")
    server = opened(first)
    by_list(server, "ab")
    server.close_round()
    if began == "by the list":
        by_list(server, "a")
    elif began == "by a plan":
        server.plan("x")
    server.close()
    server = opened(listed(*later))
    assert server.round == 1
    waiting = ("a",) if began == "by the list" else ()
    assert contents(folder).waiting == waiting
    held = [Plan(0, 2), Plan(1, 2), Plan()]
    new = [listed(*later).listed_plan(node, 1) if later else plan for node, plan in zip("abc", held, strict=True)]
    assert told(server, "abc") == (new if began == "not" else held)
    send(server, [node for node in "abc" if node not in waiting])
    assert server.close_round().nodes == ("a", "b", "c")
    assert faults(folder) == []
    slots = [plan.slot for plan in told(server, "abc")]
    assert slots == [0, 1, 2] if not later else slots == [server.run.slots.get(node) for node in "abc"]


def test_payloads_of_the_round_before_are_known_after_the_list_has_changed(opened: Opener) -> None:
    server = opened(listed("a", "b"))
    blob = sm.Client(server.run, "a").encode(vector("a", 0), 0)
    receipt = server.accept("a", blob)
    server.close_round()
    server.close()
    assert opened(listed("c", "b", "a")).accept("a", blob) == receipt


@pytest.mark.parametrize(
    "scheme",
    [sm.named("rand-k", k=0.4), sm.named("rand-k-balanced", k=0.5), sm.named("rand-k-balanced-hybrid", k=0.4)],
    ids=["independent", "k", "memory"],
)
def test_a_journal_is_not_gone_on_with_by_another_scheme(scheme: sm.Scheme, opened: Opener, folder: Path) -> None:
    server = opened(listed("a", "b"))
    by_list(server, "a")
    server.close()
    before = contents(folder)
    with pytest.raises(ForeignJournal):
        opened(sm.Run(scheme, DIM, seed=2))
    assert contents(folder) == before
    plain = opened(sm.Run(sm.named("rand-k", k=0.4), DIM, seed=2), folder.parent / "plain")
    plain.close()
    with pytest.raises(ForeignJournal):
        opened(listed("a", "b"), folder.parent / "plain")
