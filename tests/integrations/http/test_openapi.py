"""The service answers as its description says, whatever it is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean.integrations.http.service.openapi import description

from .serving import Service, serving

pytestmark = pytest.mark.xdist_group("http")

RUN = sm.Run(sm.named("rand-k", k=5), dim=50)
PATHS: dict[str, Any] = description(RUN.payload_bytes)["paths"]
ASKED = [(method.upper(), path) for path, methods in PATHS.items() for method in methods]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=20)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("openapi"), RUN, "--wanted", 1, "--grace", 0) as running:
        node = running.node("a")
        assert node.mean(node.send(np.ones(50)).round) is not None  # the first round has ended
        yield running


def check(service: Service, method: str, path: str, answer: tuple[int, dict[str, str], bytes]) -> None:
    """An answer is one of those that the description names, of the kind that it says."""
    status, headers, body = answer
    known = PATHS[path][method.lower()]["responses"]
    assert str(status) in known, (method, path, status, body)
    (kind, content), *_ = known[str(status)].get("content", {"": {}}).items()
    assert headers.get("content-type", "").startswith(kind)
    if kind == "application/json":
        jsonschema.validate(json.loads(body), content["schema"])
    assert "Traceback" not in service.log()


@pytest.mark.parametrize(("method", "path"), ASKED)
def test_each_path_as_it_should_be_asked(service, method, path):
    body = {"PUT": sm.Client(RUN, "a").encode(np.ones(50), service.json("/v1/round", service.tokens["a"])["number"])}
    named = b'{"node": "b"}' if path.endswith(("forget", "rotate")) else b""
    token = service.admin if "/admin/" in path else service.tokens["a"]
    answer = service.ask(method, path, token, body.get(method, named if method == "POST" else None))
    check(service, method, path, answer)
    if path == "/v1/admin/pause":
        service.operate("resume")
    elif "/admin/" not in path or path.endswith(("forget", "rotate", "skip", "resume")):
        assert answer[0] == 200


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(
    asked=st.sampled_from(ASKED),
    who=st.sampled_from(["nobody", "a", "admin", "stranger"]),
    query=st.dictionaries(st.sampled_from(["after", "wait", "most", "x"]), TEXT | st.floats().map(str), max_size=3),
    body=st.binary(max_size=100) | st.dictionaries(TEXT, TEXT, max_size=2).map(lambda told: json.dumps(told).encode()),
)
def test_each_path_asked_in_any_way(service, asked, who, query, body):
    method, path = asked
    token = {"nobody": None, "a": service.tokens["a"], "admin": service.admin, "stranger": "x.y"}[who]
    query.pop("wait", None) if query.get("wait", "0") not in ("0", "nan", "-inf") else None  # nobody waits here
    if path == "/v1/admin/pause" and who == "admin":
        return  # which would close the other paths
    words = "&".join(f"{name}={quote(value)}" for name, value in query.items())
    check(service, method, path, service.ask(method, f"{path}?{words}", token, None if method == "GET" else body))


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(path=TEXT, method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"]))
def test_paths_of_any_kind(service, path, method):
    status, _, _ = service.ask(method, f"/{quote(path)}", service.tokens["a"], None)
    assert status in ((200, 405) if path in ("", "health", "ready", "metrics", "live.js") else (404, 400))


def test_the_description_has_every_path(service):
    told = service.json("/openapi.json")
    assert told["paths"].keys() == PATHS.keys()
    for path in PATHS:
        assert service.ask("DELETE", path, service.admin)[0] == 405
