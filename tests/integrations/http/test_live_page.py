"""The live page in a real browser, of a real service with real nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm

from ...browser import Browser
from .serving import NODES, Service, serving

pytestmark = pytest.mark.xdist_group("http")

RUN = sm.Run(sm.named("auto", bytes=200), dim=400, seed=2)
ROUNDS = 6
OWN = ["/", "/live.css", "/live.js", "/events"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service after some rounds, with one refused payload, and one node in the open round."""
    rng = np.random.default_rng(0)
    with serving(tmp_path_factory.mktemp("page"), RUN, "--wanted", 3, "--deadline", 3000) as running:
        nodes = {name: running.node(name) for name in NODES}
        for t in range(ROUNDS):
            for node in nodes.values():
                node.send(np.linspace(1, 2, 400) + 0.1 * rng.normal(size=400), t)
        running.ask("PUT", "/v1/payload", running.tokens["a"], b"no payload")
        nodes["a"].send(np.ones(400))
        yield running


@pytest.fixture
def page(service: Service, tab: Browser) -> Browser:
    tab.look(1280, "light")
    tab.open(f"{service.url}/")
    tab.until("document.querySelectorAll('#rounds tr').length > 1")
    return tab


def text(page: Browser, selector: str) -> str:
    return str(page.run(f"document.querySelector({json.dumps(selector)}).innerText"))


def test_it_shows_what_is_going_on(service, page):
    assert text(page, "h1").split() == ["Round", str(ROUNDS), "open"]
    assert "1 of 3" in text(page, "#tiles")
    assert text(page, "#came") == "a"
    assert "MalformedPayload" in text(page, "#refused")
    assert text(page, "#why-text").startswith("RandK")
    rows = service.json("/v1/history")["rounds"]
    saved = 100 * (1 - sum(row["bytes"] for row in rows) / sum(row["dense_bytes"] for row in rows))
    assert f"{saved:.3g} %" in text(page, "#tiles")
    assert page.run("document.querySelectorAll('#rounds tr').length") == ROUNDS + 1
    drawn = page.run("document.querySelectorAll('#nodes circle').length")
    assert drawn == ROUNDS
    assert page.complaints() == []
    assert [url.removeprefix(service.url) for url in page.requests()] == OWN  # nothing from elsewhere


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits(service, tab, width, theme, tmp_path):
    tab.look(width, theme)
    tab.open(f"{service.url}/")
    tab.until("document.querySelectorAll('#rounds tr').length > 1")
    assert tab.run("document.documentElement.scrollWidth") <= width
    tab.picture(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000


def test_it_follows_the_rounds(service, page):
    before = int(page.run("document.getElementById('round').innerText"))
    for name in NODES:
        service.node(name).send(np.ones(400), before) if name != "a" or before != ROUNDS else None
    page.until(f"document.getElementById('round').innerText === '{before + 1}'")
    page.until(f"document.querySelectorAll('#nodes circle').length === {before + 1}")


def test_only_the_operators_token_makes_it_act(service, page):
    page.click("button[name=pause]")
    page.until("document.getElementById('done').innerText.startsWith('Not done: this needs the admin token')")
    assert page.run("document.getElementById('state').innerText") == "open"
    page.run(f"document.getElementById('token').value = {json.dumps(service.admin)}")
    page.click("button[name=pause]")
    page.until("document.getElementById('state').innerText === 'paused'")
    page.click("button[name=resume]")
    page.until("document.getElementById('state').innerText === 'open'")
    page.run("document.getElementById('node').value = 'b'")
    page.click("button[name=rotate]")
    page.until("document.getElementById('done').innerText.startsWith('New token, shown once: ')")
    shown = text(page, "#done").rpartition(" ")[2]
    assert service.ask("GET", "/v1/run", shown)[0] == 200
    service.tokens["b"] = shown


def test_names_from_outside_are_text(tmp_path: Path, tab: Browser) -> None:
    name = "<img src=x onerror=alert(1)>"
    with serving(tmp_path, sm.Run(sm.named("identity"), dim=2), "--wanted", 2, nodes=(name, "b")) as running:
        running.node(name).send([1.0, 2.0])
        tab.look(1280, "light")
        tab.open(f"{running.url}/")
        tab.until("document.getElementById('came').innerText.includes('onerror')")
        assert tab.run("document.querySelectorAll('img').length") == 0
        running.stop()
        tab.until("document.getElementById('state').innerText.includes('connection lost')")


def test_a_private_page_asks_for_a_token(tmp_path: Path, tab: Browser) -> None:
    with serving(tmp_path, RUN, "--wanted", 2, "--private") as running:
        for path in ("/events", "/v1/history", "/metrics", "/v1/estimate"):
            assert running.ask("GET", path)[0] == 401
        assert running.ask("GET", "/v1/history", running.tokens["a"])[0] == 200
        assert running.ask("GET", "/v1/history", running.admin)[0] == 200
        tab.look(1280, "light")
        tab.open(f"{running.url}/")
        tab.until("document.getElementById('state').innerText.includes('private: enter a token below')")
        tab.run(f"document.getElementById('token').value = {json.dumps(running.tokens['a'])}")
        tab.until("document.getElementById('state').innerText === 'open'")
