"""The live page: its files, and the events that it draws."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sparsemean.integrations.http.service.asking import Refusal
from sparsemean.integrations.http.service.conductor import Conductor

PAGE = {
    "/": ("index.html", "text/html"),
    "/live.css": ("live.css", "text/css"),
    "/live.js": ("live.js", "text/javascript"),
}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
"""Of every answer: no browser loads or runs anything for this page that is not its own."""
WATCHERS = 100
"""Pages that are open at the same time."""
ROUNDS = 200
"""Rounds that a page gets when it is opened."""
PAUSE, HEARTBEAT = 0.25, 15.0
"""Seconds between two events at least, and at most."""


async def page(request: Request) -> Response:
    """The page and its parts, which hold no figures."""
    name, kind = PAGE[request.url.path]
    content = (files("sparsemean.integrations.http.service") / "page" / name).read_bytes()
    return Response(content, media_type=kind)


class Events:
    """The open round and the rounds that ended, as server-sent events for each page."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._watching = 0

    def check_room(self) -> None:
        """Refuse one page too many."""
        if self._watching >= WATCHERS:
            raise Refusal(503, "too many pages are open; close some", retry_after=30)

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """What one page gets, until it or the service is gone."""
        conductor, shown = self._conductor, None
        self._watching += 1
        try:
            while not conductor.stopping:
                times = conductor.shown.times  # what changes while this is being sent is in the next events
                last = conductor.history.last(1)
                newest = last[0]["round"] if last else -1
                if shown != newest:
                    yield _event("history", conductor.history.last(ROUNDS if shown is None else 10))
                    shown = newest
                yield _event("open", conductor.snapshot())
                await asyncio.sleep(PAUSE)
                await conductor.shown.wait(HEARTBEAT, times)
        finally:
            self._watching -= 1


def _event(kind: str, content: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(content, allow_nan=False)}\n\n".encode()
