"""A node's connection: it waits for a service that is away or busy, as long as it is told to, and no longer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import sparsemean as sm
from sparsemean.integrations.http import HttpNode, NotAdmitted, Unreachable, link
from sparsemean.integrations.http.link import Link
from sparsemean.integrations.http.messages import OpenRound, refusal_of


class Scripted(BaseHTTPRequestHandler):
    """Answers one after the other of its server's list: a status, headers, a body; None ends the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked.append(time.monotonic())  # type: ignore[attr-defined]
        answer = self.server.answers.pop(0)  # type: ignore[attr-defined]
        if answer is None:
            self.close_connection = True
            return
        status, headers, body = answer
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def scripted(*answers: tuple[int, dict[str, str], bytes] | None) -> Iterator[tuple[Link, list[float]]]:
    """A connection to a server that answers so, and when it was asked."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    server.answers, server.asked = list(answers), []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    made = Link(f"http://127.0.0.1:{server.server_port}", "a.b", None, None, None, 30.0, False)
    try:
        yield made, server.asked  # type: ignore[attr-defined]
    finally:
        made.close()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that it makes, which take no time here."""
    made: list[float] = []
    monkeypatch.setattr(time, "sleep", made.append)
    return made


def test_it_asks_again_with_longer_pauses(waits):
    busy: tuple[int, dict[str, str], bytes] = (500, {}, b"")
    with scripted(None, busy, busy, None, busy, (200, {}, b"{}")) as (made, asked):
        assert made.ask("GET", "/").status == 200
        assert len(asked) == 6
    assert len(waits) == 5
    assert all(0.05 * 2**n <= wait <= 0.5 * 2**n for n, wait in enumerate(waits))
    assert len(set(waits)) == 5  # at random, or all nodes would come back at once


def test_a_question_that_was_held_for_a_while_is_asked_again_soon(waits, monkeypatch):
    monkeypatch.setattr(link, "HELD", -1.0)
    with scripted(*[None] * 6, (200, {}, b"{}")) as (made, _):
        made.ask("GET", "/")
    assert len(waits) == 6
    assert max(waits) <= 0.5  # the service went away while it waited for something to happen


def test_it_waits_as_long_as_the_service_asks_for(waits):
    with scripted((503, {"Retry-After": "7"}, b""), (429, {"Retry-After": "2"}, b""), (200, {}, b"{}")) as (made, _):
        made.ask("GET", "/")
    assert 7.0 <= waits[0] <= 8.0
    assert 2.0 <= waits[1] <= 3.0


@pytest.mark.parametrize("after", ["soon", "-1", "1e9", "99999999", "Thu, 01 Jan 2026 00:00:00 GMT"])
def test_a_wait_that_is_no_number_of_seconds_is_its_own(waits, after):
    with scripted((503, {"Retry-After": after}, b""), (200, {}, b"{}")) as (made, _):
        made.ask("GET", "/")
    assert waits[0] <= 0.5


def test_it_gives_up_when_its_patience_is_over(waits):
    full = (503, {"Retry-After": "31"}, b'{"error": "RoundFull", "why": "no room"}')
    with scripted(full) as (made, _), pytest.raises(Unreachable, match="does not answer: no room"):
        made.ask("GET", "/")
    assert waits == []


def test_refusals_are_the_librarys_own_errors():
    told = b'{"error": "%s", "why": "because"}'
    for name, kind in (("WrongRound", sm.WrongRound), ("NotAdmitted", NotAdmitted), ("InvalidInput", sm.InvalidInput)):
        assert type(refusal_of(told % name.encode(), 409)) is kind
    for body in (b"", b"[]", b"\xff", told % b"SystemExit", told % b"annotations", b'{"why": "because"}'):
        assert type(refusal_of(body, 418)) is sm.PayloadError
    with scripted((404, {}, b"<html>nginx</html>")) as (made, _), pytest.raises(sm.PayloadError, match="nginx"):
        made.ask("GET", "/")
    with scripted((200, {}, b"<html>hotel</html>")) as (made, _), pytest.raises(sm.MalformedPayload, match="hotel"):
        made.ask("GET", "/").json()


@pytest.mark.parametrize("told", [{}, {"number": "1"}, {"number": 1, "run": 2}, {"plan": "é"}])
def test_a_round_that_no_service_of_ours_tells(told):
    good = OpenRound(3, "digest", b"plan").to_json()
    assert OpenRound.from_json(good) == OpenRound(3, "digest", b"plan")
    wrong = {**good, **told} if told else told
    with pytest.raises(sm.MalformedPayload):
        OpenRound.from_json(wrong)


@pytest.mark.parametrize("server", ["", "means.example", "ftp://x", "https://", "https://x/path", "https://x:port"])
def test_addresses_that_are_none(server):
    with pytest.raises(sm.InvalidInput, match="https://HOST:PORT"):
        HttpNode(server, "a.b")


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX: y", "é"])
def test_tokens_that_would_change_a_request(token):
    with pytest.raises(sm.InvalidInput, match="one line"):
        HttpNode("https://means.example", token)
