"""Whatever comes over the network is refused cheaply, and honest nodes notice nothing."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator

import numpy as np
import pytest

import sparsemean as sm

from .serving import START, Service, serving

pytestmark = pytest.mark.xdist_group("http")

RUN = sm.Run(sm.named("rand-k", k=10), dim=100, seed=1)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("hostile"), RUN, "--wanted", 1) as running:
        yield running


@pytest.fixture(autouse=True)
def _still_there(service: Service) -> Iterator[None]:
    """After each attack the next round of an honest node goes as ever."""
    yield
    receipt = service.node("a").send(np.ones(100))
    assert receipt.node == "a"
    assert "Traceback" not in service.log()


def statuses(answer: bytes) -> list[int]:
    """The status of each answer in these bytes."""
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


def put(service: Service, *more: str, body: bytes = b"", token: str | None = None) -> bytes:
    """A payload's request with these headers."""
    given = service.tokens["a"] if token is None else token
    lines = ["PUT /v1/payload HTTP/1.1", "Host: x", f"Authorization: Bearer {given}", *more, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.mark.parametrize(
    "path",
    ["/v1/run/", "//v1/run", "/v1/../v1/run", "/v1/%2e%2e/tokens.json", "/../tokens.json", "/v1/run%00", "/live.js/..",
     "/page/index.html", "/v1/admin/", "/v1/admin/../run", "/%2f%2fetc/passwd", "/\\..\\tokens.json"],
)  # fmt: skip
def test_paths_that_are_none(service, path):
    status, _, body = service.ask("GET", path, service.tokens["a"])
    assert status in (400, 404, 405)
    assert b"hash" not in body


@pytest.mark.parametrize("token", ["", "x", "a.b", ".", "é", "x" * 9000, "\t", "null", "0.0"])
def test_wrong_tokens(service, token):
    assert statuses(service.raw(put(service, "Content-Length: 0", token=token))) in ([401], [400])


def test_a_known_id_with_another_secret(service):
    known = service.tokens["a"].partition(".")[0]
    status, headers, body = service.ask("GET", "/v1/run", f"{known}.{'x' * 43}")
    assert status == 401
    assert headers["www-authenticate"] == "Bearer"
    assert json.loads(body)["error"] == "NotAdmitted"


def test_a_token_of_a_node_opens_nothing_of_the_operator(service):
    for action in ("pause", "close", "skip", "forget", "rotate"):
        assert service.ask("POST", f"/v1/admin/{action}", service.tokens["a"], b'{"node": "b"}')[0] == 401
        assert service.ask("POST", f"/v1/admin/{action}", None, b'{"node": "b"}')[0] == 401
    assert service.ask("GET", "/v1/run", service.admin)[0] == 401  # nor the other way round


def test_sizes_are_refused_before_the_body_is_read(service):
    cases = {"Content-Length: 99999999999999999999": (400, 413), "Content-Length: 1000000": (413,), "X: y": (411,)}
    for header, expected in cases.items():
        began = time.monotonic()
        found = statuses(service.raw(put(service, header, "Connection: keep-alive")))
        assert len(found) == 1, header
        assert found[0] in expected
        assert time.monotonic() - began < START  # and not after waiting for what never comes


def test_a_payload_without_end(service):
    chunked = put(service, "Transfer-Encoding: chunked") + b"5\r\nhello\r\n" * 1000
    assert statuses(service.raw(chunked)) == [411]


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 5, 6",),
        ("Content-Length: +5",),
        ("Content-Length: 0x5",),
        ("Content-Length: -1",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding : chunked",),
        ("Content-Length : 5",),
        (" Content-Length: 5",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("X: a\nContent-Length: 5",),
        ("X: a\rTransfer-Encoding: chunked",),
        ("Content-Length: 5\x00",),
    ],
)
def test_requests_that_two_servers_would_read_differently(service, headers):
    smuggled = b"0\r\n\r\nGET /v1/history HTTP/1.1\r\nHost: x\r\n\r\n"
    found = statuses(service.raw(put(service, *headers, body=smuggled), seconds=2.0))
    assert len(found) <= 1
    assert all(status in (400, 411) for status in found)


def test_a_second_request_before_the_first_is_answered(service):
    slow = f"GET /v1/round?after=0&wait=50 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.tokens['b']}\r\n\r\n"
    number = service.json("/v1/round", service.tokens["b"])["number"]
    waiting = slow.replace("after=0", f"after={number}").encode()
    assert statuses(service.raw(waiting + waiting)) == [400]


def test_heads_without_end(service):
    assert statuses(service.raw(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 50_000)) in ([400], [])
    assert statuses(service.raw(b"GET /" + b"x" * 100_000)) in ([400], [])


def test_slow_heads_are_ended_and_others_go_first(service):
    lines = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(50)]
    try:
        for line in lines:
            line.sendall(b"GET / HT")
        assert service.node("b").send(np.ones(100)).node == "b"
        lines[0].settimeout(START)
        began = time.monotonic()
        with contextlib.suppress(ConnectionResetError):
            assert lines[0].recv(1) == b""
        assert time.monotonic() - began > 1.0
    finally:
        for line in lines:
            line.close()


def test_the_rest_of_a_body_that_nobody_wants(service):
    answer = service.raw(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000)
    assert statuses(answer) in ([404], [400])


def test_garbage(service):
    rng = np.random.default_rng(0)
    for i in range(60):
        sent = rng.bytes(int(rng.integers(1, 400)))
        if i % 3 == 0:
            sent = b"PUT /v1/payload HTTP/1.1\r\n" + sent + b"\r\n\r\n"
        assert set(statuses(service.raw(sent, seconds=0.05))) <= {400}


def test_bodies_that_are_no_payload(service):
    rng = np.random.default_rng(1)
    whole = sm.Client(RUN, "a").encode(np.ones(100), 10**6)
    other = sm.Client(RUN, "b").encode(np.ones(100), 0)
    for body in (b"", b"\0" * len(whole), rng.bytes(len(whole)), whole[:-1], whole, other):
        status, _, told = service.ask("PUT", "/v1/payload", service.tokens["a"], body)
        assert status in (400, 403, 409)
        assert set(json.loads(told)) == {"error", "why", "round"}


@pytest.mark.parametrize("query", ["after=x", "after=-1", "wait=nan", "wait=inf", "after=1e99"])
def test_queries_that_make_no_sense(service, query):
    status, _, told = service.ask("GET", f"/v1/round?{query}", service.tokens["a"])
    assert status == 400
    assert "number from 0 on" in json.loads(told)["why"]


@pytest.mark.parametrize("body", [b"", b"x", b"[]", b"{}", b'{"node": "nobody"}', b"[" * 4000, b"\xff" * 100])
def test_the_operators_mistakes(service, body):
    status, _, told = service.ask("POST", "/v1/admin/rotate", service.admin, body)
    assert status in (400, 411), told
    assert service.operate("dance")[0] == 404


def test_what_is_counted(service):
    text = service.ask("GET", "/metrics")[2].decode()
    assert 'sparsemean_http_ended_total{reason="NotHttp"}' in text
    assert 'sparsemean_http_answers_total{status="401"}' in text
    assert 'sparsemean_refused_total{reason="' in text


def test_every_answer_forbids_what_the_page_does_not_need(service):
    for path in ("/", "/live.js", "/nope", "/v1/run"):
        headers = service.ask("GET", path)[1]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers
