"""What the service answers: one function for each path."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparsemean import errors
from sparsemean.errors import InvalidInput, MalformedPayload, PayloadError, SparseMeanError
from sparsemean.integrations.http.conductor import Conductor
from sparsemean.integrations.http.connections import CERTIFICATE
from sparsemean.integrations.http.history import Row
from sparsemean.integrations.http.messages import (
    LONGEST_WAIT,
    MEAN,
    MEAN_ROUND,
    PAYLOAD,
    ROUND,
    RUN,
    WEIGHT,
    NotAdmitted,
    receipt_json,
    refusal_json,
)
from sparsemean.integrations.http.openapi import description
from sparsemean.integrations.http.tokens import Credential, Secret, Tokens
from sparsemean.server import PrometheusReports

BODIES = 256 << 20
"""Bytes of payloads that are read at the same time."""
ADMIN_BODY = 4096
HEARTBEAT = 15.0
EVENT_PAUSE = 0.25
PAGE = {
    "/": ("index.html", "text/html"),
    "/live.css": ("live.css", "text/css"),
    "/live.js": ("live.js", "text/javascript"),
}
STATUS: dict[type[SparseMeanError], int] = {
    NotAdmitted: 401,
    errors.ForeignPayload: 403,
    errors.WrongRound: 409,
    errors.WrongPlan: 409,
    errors.ConflictingPayload: 409,
    errors.OutOfStep: 409,
    errors.TooFewNodes: 409,
    errors.NonFiniteValues: 422,
    errors.RoundFull: 503,
    errors.JournalError: 503,
    errors.BrokenServer: 500,
    PayloadError: 400,
    InvalidInput: 400,
    SparseMeanError: 500,
}
HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        b"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]

log = logging.getLogger("sparsemean.http")


class Refusal(SparseMeanError):
    """An answer that is no payload's refusal: the size or the time of a request, or the state of the service."""

    def __init__(self, status: int, why: str, retry_after: int | None = None) -> None:
        super().__init__(why)
        self.status, self.retry_after = status, retry_after


class App:
    """The service's paths, over a conductor.

    Parameters
    ----------
    conductor : Conductor
    tokens : Tokens
    admin : Secret, optional
        What opens the operator's paths; without it they are closed to everybody.
    reports : PrometheusReports
        Of the conductor's server.
    private : bool, default False
        Whether the live page and the figures are for holders of a token alone.
    weights_by_node : bool, default False
        Whether a node may say its own weight.
    body_seconds : float, default 30
        That a payload may take to arrive.
    """

    def __init__(
        self,
        conductor: Conductor,
        tokens: Tokens,
        admin: Secret | None,
        reports: PrometheusReports,
        private: bool = False,
        weights_by_node: bool = False,
        body_seconds: float = 30.0,
    ) -> None:
        self.conductor, self.tokens, self.admin = conductor, tokens, admin
        self.reports, self.private, self.weights_by_node = reports, private, weights_by_node
        self.body_seconds = body_seconds
        self.answered: Counter[int] = Counter()  # by status
        self.ended: Counter[str] = Counter()  # connections that were ended, by reason
        self._bodies = asyncio.Semaphore(max(4, BODIES // conductor.run.payload_bytes))
        self._watching = 0

    def asgi(self) -> ASGIApp:
        """The application, for any ASGI server."""
        read, act = ["GET"], ["POST"]
        plain: dict[str, Callable[[Request], Awaitable[Response]]] = {
            RUN: self.run,
            ROUND: self.round,
            MEAN: self.mean,
            "/v1/estimate": self.estimate,
            "/v1/estimate.npy": self.estimate_file,
            "/v1/history": self.history,
            "/health": self.health,
            "/ready": self.ready,
            "/metrics": self.metrics,
            "/events": self.events,
            "/openapi.json": self.openapi,
            **dict.fromkeys(PAGE, self.page),
        }
        routes = [
            *(Route(path, answer, methods=read) for path, answer in plain.items()),
            Route(PAYLOAD, self.payload, methods=["PUT"]),
            Route("/v1/admin/{action}", self.act, methods=act),
        ]
        app = Starlette(
            routes=routes,
            exception_handlers={SparseMeanError: self._refused, HTTPException: self._not_found},  # type: ignore[dict-item]
        )
        app.router.redirect_slashes = False
        return self._with_headers(app)

    def _with_headers(self, app: ASGIApp) -> ASGIApp:
        """Headers that every answer has, and a count of the answers."""

        async def answering(scope: Scope, receive: Receive, send: Send) -> None:
            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self.answered[message["status"]] += 1
                    named = {name for name, _ in message["headers"]}
                    message["headers"] = [*message["headers"], *(each for each in HEADERS if each[0] not in named)]
                    if scope.get("scheme") == "https":
                        message["headers"].append((b"strict-transport-security", b"max-age=31536000"))
                await send(message)

            await app(scope, receive, sending)

        return answering

    async def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, SparseMeanError)
        retry_after = None
        if isinstance(error, Refusal):
            status, retry_after = error.status, error.retry_after
        else:
            status = next(STATUS[each] for each in type(error).__mro__ if each in STATUS)
            retry_after = 2 if status == 503 else None
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if status in (401, 408, 411, 413):  # whoever sends these may go on sending
            headers["Connection"] = "close"
        told = {**refusal_json(error), "round": self.conductor.round}
        return JSONResponse(told, status, headers)

    async def _not_found(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        told = {"error": "NotFound", "why": f"{error.detail}: see /openapi.json for what there is"}
        return JSONResponse(told, error.status_code, error.headers)

    # --- who asks ---

    def _credential(self, request: Request) -> Credential:
        """Whom the credential of this request stands for; its path and its body say nothing of that."""
        token = _bearer(request)
        if token is not None:
            return self.tokens.of_token(token)
        certificate = request.scope.get("extensions", {}).get(CERTIFICATE, {}).get("name")
        if certificate is not None:
            return self.tokens.of_certificate(certificate)
        raise NotAdmitted("this needs a credential: a header Authorization: Bearer TOKEN, or a client certificate")

    def _node(self, request: Request) -> Credential:
        try:
            return self._credential(request)
        except NotAdmitted:
            self.conductor.refuse("NotAdmitted")
            raise

    def _is_admin(self, request: Request) -> bool:
        token = _bearer(request)
        return token is not None and self.admin is not None and self.admin.opens(token)

    def _watcher(self, request: Request) -> None:
        if self.private and not self._is_admin(request):
            self._credential(request)

    # --- nodes ---

    async def run(self, request: Request) -> Response:
        """What the node is called, and what it agrees on with the service."""
        told = {
            "node": self._node(request).node,
            "run": json.loads(self.conductor.run.to_json()),
            "broadcast": json.loads(self.conductor.broadcast_run.to_json()),
        }
        return JSONResponse(told)

    async def round(self, request: Request) -> Response:
        """The open round; with ``after`` and ``wait``, once it is another one and rounds go on."""
        node = self._node(request).node
        after, wait = _number(request, "after", None), _number(request, "wait", 0.0)
        await self.conductor.turn(None if after is None else int(after), min(wait or 0.0, LONGEST_WAIT))
        if self.conductor.stopping:
            raise Refusal(503, "the service stops", retry_after=1)
        return JSONResponse((await self.conductor.told(node)).to_json())

    async def payload(self, request: Request) -> Response:
        """Take a payload, once its sender, its size and its time are known to be right."""
        known = self._node(request)
        if self.conductor.paused:
            raise Refusal(503, "the operator has paused the rounds", retry_after=5)
        blob = await self._body(request, self.conductor.run.payload_bytes)
        receipt = await self.conductor.accept(known.node, blob, self._weight(request, known))
        return JSONResponse({"receipt": receipt_json(receipt), "round": self.conductor.round})

    def _weight(self, request: Request, known: Credential) -> float:
        told = request.headers.get(WEIGHT)
        if told is None:
            return known.weight
        if not self.weights_by_node:
            raise InvalidInput(f"nodes do not say their weight here; leave out {WEIGHT}, or serve --weights-by-node")
        try:
            weight = float(told)
        except ValueError:
            weight = math.nan
        if not (math.isfinite(weight) and weight >= 0):
            raise InvalidInput(f"{WEIGHT} is a number from 0 on, got {told!r:.40}")
        return weight

    async def _body(self, request: Request, most: int) -> bytes:
        """The body, which is refused before it is read if it has no known length, or one above this."""
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()):
            raise self._counted(Refusal(411, "say how long the body is: send it with a Content-Length"))
        if len(length) > 15 or int(length) > most:
            raise self._counted(Refusal(413, f"a body has up to {most} bytes here, this one is of {length:.20}"))
        body = bytearray()
        try:
            async with self._bodies, asyncio.timeout(self.body_seconds):
                async for chunk in request.stream():
                    body += chunk
        except TimeoutError:
            late = f"the body took more than {self.body_seconds:g} seconds"
            raise self._counted(Refusal(408, late)) from None
        except ClientDisconnect:
            raise self._counted(Refusal(400, "the body ended before its Content-Length")) from None
        return bytes(body)

    def _counted(self, refusal: Refusal) -> Refusal:
        self.conductor.refuse("BadRequest")
        return refusal

    async def mean(self, request: Request) -> Response:
        """The last mean as a frame; nothing to who has it."""
        self._node(request)
        held = self.conductor.broadcast
        if held is None:
            raise Refusal(404, "no round has ended with a mean yet")
        headers = {"ETag": held.heard.etag, MEAN_ROUND: str(held.heard.round), "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == held.heard.etag:
            return Response(status_code=304, headers=headers)
        return Response(held.frame, media_type="application/octet-stream", headers=headers)

    # --- figures ---

    async def estimate(self, request: Request) -> Response:
        """The last round's figures, and how good its mean is."""
        self._watcher(request)
        return JSONResponse(self._last_row())

    def _last_row(self) -> Row:
        rows = [row for row in self.conductor.history.last(100) if not row["skipped"]]
        if not rows:
            raise Refusal(404, "no round has ended with a mean yet")
        return rows[-1]

    async def estimate_file(self, request: Request) -> Response:
        """The last mean as it is, of float64: a file for ``numpy.load``."""
        if not self._is_admin(request):
            self._node(request)
        estimate = self.conductor.estimate
        if estimate is None:
            raise Refusal(404, "no round has ended with a mean yet")
        file = io.BytesIO()
        np.save(file, estimate.mean, allow_pickle=False)
        headers = {MEAN_ROUND: str(estimate.round)}
        return Response(file.getvalue(), media_type="application/octet-stream", headers=headers)

    async def history(self, request: Request) -> Response:
        """Rounds that ended, the last ones first asked for by ``most``."""
        self._watcher(request)
        most = _number(request, "most", 100.0)
        return JSONResponse({"rounds": self.conductor.history.last(min(int(most or 0), 1000))})

    async def health(self, request: Request) -> Response:
        """Whether the process is alive and plays rounds."""
        failure = self.conductor.failure
        return JSONResponse({"ok": self.conductor.sound, "why": failure}, 200 if self.conductor.sound else 503)

    async def ready(self, request: Request) -> Response:
        """Whether payloads are taken now."""
        conductor = self.conductor
        ready = conductor.sound and not (conductor.paused or conductor.stopping)
        return JSONResponse({"ready": ready, "round": conductor.round}, 200 if ready else 503)

    async def metrics(self, request: Request) -> Response:
        """For Prometheus: sums over rounds, the open round, and HTTP."""
        self._watcher(request)
        conductor = self.conductor
        lines = [
            *_counts("http_answers_total", "Answers by status.", "status", self.answered),
            *_counts("http_ended_total", "Connections that were ended, by reason.", "reason", self.ended),
            *_counts("open_refused", "Refusals in the open round.", "reason", conductor.refused, "gauge"),
            *_gauge("open_round", "The open round.", conductor.round),
            *_gauge("open_nodes", "Nodes that are in it.", len(conductor.came)),
            *_gauge("open_seconds", "Since it was opened.", conductor.age),
            *_gauge("paused", "Whether the operator has stopped the rounds.", conductor.paused),
        ]
        text = self.reports.text() + "\n".join(lines) + "\n"
        return Response(text, media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        """This list of paths, for programs."""
        return JSONResponse(description(self.conductor.run.payload_bytes))

    # --- the live page ---

    async def page(self, request: Request) -> Response:
        """The page and its parts, which hold no figures."""
        name, kind = PAGE[request.url.path]
        content = (files("sparsemean.integrations.http") / "page" / name).read_bytes()
        return Response(content, media_type=kind)

    async def events(self, request: Request) -> Response:
        """The open round and the rounds that ended, as server-sent events."""
        self._watcher(request)
        if self._watching >= 100:
            raise Refusal(503, "too many pages are open; close some", retry_after=30)
        return StreamingResponse(self._events(), media_type="text/event-stream")

    async def _events(self) -> AsyncIterator[bytes]:
        conductor, shown = self.conductor, None
        async with self._watch():
            while not conductor.stopping:
                last = conductor.history.last(1)
                newest = last[0]["round"] if last else -1
                if shown != newest:
                    yield _event("history", conductor.history.last(200 if shown is None else 1))
                    shown = newest
                yield _event("open", conductor.snapshot())
                await asyncio.sleep(EVENT_PAUSE)
                await conductor.changed.wait(HEARTBEAT)

    @asynccontextmanager
    async def _watch(self) -> AsyncIterator[None]:
        self._watching += 1
        try:
            yield
        finally:
            self._watching -= 1

    # --- the operator ---

    async def act(self, request: Request) -> Response:
        """Pause, resume, close, skip, forget a node, or make a new token for one."""
        if not self._is_admin(request):
            raise NotAdmitted("this needs the admin token: serve --admin-token-file, Authorization: Bearer TOKEN")
        action = request.path_params["action"]
        acts: dict[str, Callable[[str], Awaitable[Any]]] = {
            "pause": lambda _: self._paused(True),
            "resume": lambda _: self._paused(False),
            "close": lambda _: self.conductor.close(),
            "skip": lambda _: self.conductor.skip(),
            "forget": self.conductor.forget,
            "rotate": self._rotated,
        }
        if action not in acts:
            raise Refusal(404, f"an operator can {', '.join(acts)}; got {action!r:.40}")
        node = await self._named(request) if action in ("forget", "rotate") else ""
        done = await acts[action](node)
        log.warning("the operator did: %s", action)
        return JSONResponse({"done": action, "round": self.conductor.round, **(done or {})})

    async def _paused(self, paused: bool) -> None:
        self.conductor.pause(paused)

    async def _rotated(self, node: str) -> dict[str, str]:
        return {"token": await asyncio.to_thread(self.tokens.rotate, node)}

    async def _named(self, request: Request) -> str:
        """The node in a body such as {"node": "station-12"}."""
        body = await self._body(request, ADMIN_BODY)
        try:
            return str(json.loads(body)["node"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise MalformedPayload('the body is JSON with the node\'s name: {"node": "station-12"}') from None


def _bearer(request: Request) -> str | None:
    """The token in the header, if there is one."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _number(request: Request, name: str, otherwise: float | None) -> float | None:
    """A number from 0 on in the query."""
    told = request.query_params.get(name)
    if told is None:
        return otherwise
    try:
        number = float(told)
    except ValueError:
        number = math.nan
    if not 0 <= number < 1 << 63:
        raise InvalidInput(f"{name} is a number from 0 on, got {told!r:.40}")
    return number


def _event(kind: str, content: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(content, allow_nan=False)}\n\n".encode()


def _gauge(name: str, what: str, value: float) -> list[str]:
    full = f"sparsemean_{name}"
    return [f"# HELP {full} {what}", f"# TYPE {full} gauge", f"{full} {float(value):g}"]


def _counts(name: str, what: str, label: str, counts: Counter[Any], kind: str = "counter") -> list[str]:
    full = f"sparsemean_{name}"
    rows = [f'{full}{{{label}="{key}"}} {value}' for key, value in sorted(counts.items())]
    return [f"# HELP {full} {what}", f"# TYPE {full} {kind}", *rows]
