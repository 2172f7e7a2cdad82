"""Credentials: only hashes are kept, and only the right secret opens anything."""

from __future__ import annotations

import hmac
import json
import stat
import threading
import time
from pathlib import Path

import pytest

import sparsemean as sm
from sparsemean.integrations.http import NotAdmitted
from sparsemean.integrations.http.service.tokens import Secret, Tokens, duration


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens.create(tmp_path / "tokens.json")


def test_a_token_stands_for_its_node_until_it_is_revoked(tokens):
    first, second = tokens.add("a", weight=2.0), tokens.add("a")
    assert tokens.of_token(first).weight == 2.0
    tokens.revoke(first.partition(".")[0])
    with pytest.raises(NotAdmitted):
        tokens.of_token(first)
    assert tokens.of_token(second).node == "a"
    tokens.revoke("a")
    with pytest.raises(NotAdmitted):
        tokens.of_token(second)
    assert tokens.nodes() == []


def test_a_token_ends_when_it_was_said_to(tokens, monkeypatch):
    token = tokens.add("a", expires=time.time() + 60)
    assert tokens.of_token(token).node == "a"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    with pytest.raises(NotAdmitted):
        tokens.of_token(token)


def test_rotation_keeps_weight_and_end(tokens):
    until = time.time() + 1000
    old = tokens.add("a", 3.0, until)
    new = tokens.of_token(tokens.rotate("a"))
    assert (new.weight, new.expires) == (3.0, until)
    with pytest.raises(NotAdmitted):
        tokens.of_token(old)
    with pytest.raises(sm.InvalidInput, match="sparsemean token add"):
        tokens.rotate("b")


def test_the_file_holds_no_secret_and_only_its_owner_reads_it(tokens):
    token = tokens.add("a")
    text = tokens.path.read_text()
    assert token.partition(".")[2] not in text
    assert stat.S_IMODE(tokens.path.stat().st_mode) == 0o600


def test_every_attempt_costs_one_comparison_in_constant_time(tokens, monkeypatch):
    known = tokens.add("a")
    compared: list[tuple[str, str]] = []

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", compare)
    tokens.of_token(known)
    for wrong in ("", "nobody.x", f"{known}x", known.partition(".")[0]):
        with pytest.raises(NotAdmitted):
            tokens.of_token(wrong)
    assert len(compared) == 5
    assert all(len(one) == len(other) == 64 for one, other in compared)  # hashes, never the secrets


def test_a_certificate_is_not_a_token_without_a_secret(tokens):
    tokens.add_certificate("a", weight=2.0)
    assert tokens.of_certificate("a").weight == 2.0
    for wrong in ("cert-a", "cert-a.", "cert-a." + "0" * 64):
        with pytest.raises(NotAdmitted):
            tokens.of_token(wrong)
    with pytest.raises(NotAdmitted):
        tokens.of_certificate("b")


def test_two_who_write_lose_nothing(tokens):
    others = [Tokens(tokens.path) for _ in range(4)]

    def add(some: Tokens, name: str) -> None:
        for i in range(5):
            some.add(f"{name}{i}")

    threads = [threading.Thread(target=add, args=(some, name)) for some, name in zip(others, "abcd", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tokens.reload()
    assert len(tokens.nodes()) == 20


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", '{"format": 2, "tokens": []}', '{"format": 1, "tokens": [{}]}',
     '{"format": 1, "tokens": [{"id": "a", "node": "", "hash": ""}]}',
     '{"format": 1, "tokens": [{"id": "a", "node": "a", "hash": "x"}]}',
     '{"format": 1, "tokens": [{"id": "a", "node": "a", "hash": "", "weight": -1}]}',
     '{"format": 1, "tokens": [{"id": "a", "node": "a", "hash": "", "expires": "x"}]}'],
)  # fmt: skip
def test_a_damaged_file_changes_nothing(tokens, content):
    token = tokens.add("a")
    tokens.path.write_text(content)
    with pytest.raises(sm.InvalidInput):
        tokens.reload()
    assert tokens.of_token(token).node == "a"
    with pytest.raises(sm.InvalidInput):
        tokens.add("b")
    assert tokens.path.read_text() == content


def test_what_is_refused(tokens):
    with pytest.raises(sm.InvalidInput, match="non-empty"):
        tokens.add("")
    with pytest.raises(sm.InvalidInput, match="weights lie"):
        tokens.add("a", weight=float("nan"))
    with pytest.raises(sm.InvalidInput, match="sparsemean token list"):
        tokens.revoke("x")
    assert json.loads(tokens.path.read_text())["tokens"] == []
    with pytest.raises(sm.InvalidInput, match="sparsemean token add"):
        Tokens(tokens.path.with_name("none.json"))
    with pytest.raises(sm.InvalidInput, match="16 characters"):
        Secret("short")
    for wrong_time in ("", "1", "d", "0d", "1y", "-1d", "1.5h"):
        with pytest.raises(sm.InvalidInput, match="30d"):
            duration(wrong_time)
