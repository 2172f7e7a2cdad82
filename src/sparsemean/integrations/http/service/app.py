"""What the service answers: one function for each path."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparsemean import errors
from sparsemean.errors import InvalidInput, MalformedPayload, PayloadError, SparseMeanError
from sparsemean.integrations.http.messages import (
    LONGEST_WAIT,
    MEAN,
    MEAN_ROUND,
    PAYLOAD,
    ROUND,
    RUN,
    WEIGHT,
    NoLongerKept,
    NotAdmitted,
    receipt_json,
    refusal_json,
)
from sparsemean.integrations.http.service.asking import Admission, Bodies, Refusal, number_in, plain_number
from sparsemean.integrations.http.service.conductor import Conductor
from sparsemean.integrations.http.service.history import KEPT, Row
from sparsemean.integrations.http.service.live import HEADERS, PAGE, Events, page
from sparsemean.integrations.http.service.openapi import description
from sparsemean.integrations.http.service.tokens import Credential
from sparsemean.server import PrometheusReports

ADMIN_BODY = 4096
STATUS: dict[type[SparseMeanError], int] = {
    NotAdmitted: 401,
    NoLongerKept: 410,
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
_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

log = logging.getLogger("sparsemean.http")


class App:
    """The service's paths, over a conductor.

    Parameters
    ----------
    conductor : Conductor
    admission : Admission
    reports : PrometheusReports
        Of the conductor's server.
    weights_by_node : bool, default False
        Whether a node may say its own weight.
    body_seconds : float, default 30
        That a payload may take to arrive.
    """

    def __init__(
        self,
        conductor: Conductor,
        admission: Admission,
        reports: PrometheusReports,
        weights_by_node: bool = False,
        body_seconds: float = 30.0,
    ) -> None:
        self.conductor, self.admission = conductor, admission
        self.reports, self.weights_by_node = reports, weights_by_node
        self.answered: Counter[int] = Counter()  # by status
        self.ended: Counter[str] = Counter()  # connections that were ended, by reason
        largest = conductor.run.payload_bytes
        self._bodies = Bodies(largest, body_seconds, lambda: conductor.refuse("BadRequest"))
        self._events = Events(conductor)

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
            **dict.fromkeys(PAGE, page),
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
                    message["headers"] = [*message["headers"], *(each for each in _HEADERS if each[0] not in named)]
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

    # --- nodes ---

    def _node(self, request: Request) -> Credential:
        try:
            return self.admission.node(request)
        except NotAdmitted:
            self.conductor.refuse("NotAdmitted")
            raise

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
        after, wait = int(number_in(request, "after", -1.0)), number_in(request, "wait", 0.0)
        await self.conductor.turn(after, min(wait, LONGEST_WAIT))
        if self.conductor.stopping:
            raise Refusal(503, "the service stops", retry_after=1)
        return JSONResponse((await self.conductor.told(node)).to_json())

    async def payload(self, request: Request) -> Response:
        """Take a payload, once its sender, its size and its time are known to be right."""
        known = self._node(request)
        if self.conductor.paused:
            raise Refusal(503, "the operator has paused the rounds", retry_after=5)
        blob = await self._bodies.of(request, self.conductor.run.payload_bytes)
        receipt = await self.conductor.accept(known.node, blob, self._weight(request, known))
        return JSONResponse({"receipt": receipt_json(receipt), "round": self.conductor.round})

    def _weight(self, request: Request, known: Credential) -> float:
        told = request.headers.get(WEIGHT)
        if told is None:
            return known.weight
        if not self.weights_by_node:
            raise InvalidInput(f"nodes do not say their weight here; leave out {WEIGHT}, or serve --weights-by-node")
        weight = plain_number(told)
        if not (math.isfinite(weight) and weight >= 0):
            raise InvalidInput(f"{WEIGHT} is a number from 0 on, got {told!r:.40}")
        return weight

    async def mean(self, request: Request) -> Response:
        """The last mean as a frame, nothing to who has it; with ``round``, the mean of that round."""
        self._node(request)
        if "round" in request.query_params:
            return await self._past_mean(int(number_in(request, "round", 0.0)))
        held = self.conductor.broadcast
        if held is None:
            raise Refusal(404, "no round has ended with a mean yet")
        headers = {"ETag": held.heard.etag, MEAN_ROUND: str(held.heard.round), "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == held.heard.etag:
            return Response(status_code=304, headers=headers)
        return Response(held.frame, media_type="application/octet-stream", headers=headers)

    async def _past_mean(self, round: int) -> Response:
        conductor, means = self.conductor, self.conductor.means
        if round >= conductor.round:
            raise Refusal(404, f"round {round} is not over; the open round is {conductor.round}")
        frame = await asyncio.to_thread(means.frame, round)
        if frame is not None:
            headers = {MEAN_ROUND: str(round), "Cache-Control": "no-cache"}
            return Response(frame, media_type="application/octet-stream", headers=headers)
        if means.first is None or round < means.first:
            raise NoLongerKept(
                f"the mean of round {round} is no longer here, those from {means.first} on are; go on from a "
                "checkpoint of a later round, and give the service room for more (--past-means)"
            )
        return Response(status_code=204)

    # --- figures ---

    async def estimate(self, request: Request) -> Response:
        """The last round's figures, and how good its mean is."""
        self.admission.watcher(request)
        return JSONResponse(self._last_row())

    def _last_row(self) -> Row:
        rows = [row for row in self.conductor.history.last(100) if not row["skipped"]]
        if not rows:
            raise Refusal(404, "no round has ended with a mean yet")
        return rows[-1]

    async def estimate_file(self, request: Request) -> Response:
        """The last mean as it is, of float64: a file for ``numpy.load``."""
        self.admission.reader(request)
        estimate = self.conductor.estimate
        if estimate is None:
            raise Refusal(404, "no round has ended with a mean yet")
        file = io.BytesIO()
        np.save(file, estimate.mean, allow_pickle=False)
        headers = {MEAN_ROUND: str(estimate.round)}
        return Response(file.getvalue(), media_type="application/octet-stream", headers=headers)

    async def history(self, request: Request) -> Response:
        """The last rounds that ended, as many as ``most`` says, the oldest first."""
        self.admission.watcher(request)
        most = int(number_in(request, "most", 100.0))
        return JSONResponse({"rounds": self.conductor.history.last(min(most, KEPT))})

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
        self.admission.watcher(request)
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

    async def events(self, request: Request) -> Response:
        """For the live page."""
        self.admission.watcher(request)
        self._events.check_room()
        return StreamingResponse(self._events.stream(), media_type="text/event-stream")

    # --- the operator ---

    async def act(self, request: Request) -> Response:
        """Pause, resume, close, skip, forget a node, or make a new token for one."""
        self.admission.operator(request)
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
        log.warning("the operator did: %s%s", action, f" {node!r}" if node else "")
        return JSONResponse({"done": action, "round": self.conductor.round, **(done or {})})

    async def _paused(self, paused: bool) -> None:
        self.conductor.pause(paused)

    async def _rotated(self, node: str) -> dict[str, str]:
        return {"token": await asyncio.to_thread(self.admission.tokens.rotate, node)}

    async def _named(self, request: Request) -> str:
        """The node in a body such as {"node": "station-12"}."""
        body = await self._bodies.of(request, ADMIN_BODY)
        try:
            return str(json.loads(body)["node"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise MalformedPayload('the body is JSON with the node\'s name: {"node": "station-12"}') from None


def _gauge(name: str, what: str, value: float) -> list[str]:
    full = f"sparsemean_{name}"
    return [f"# HELP {full} {what}", f"# TYPE {full} gauge", f"{full} {float(value):g}"]


def _counts(name: str, what: str, label: str, counts: Counter[Any], kind: str = "counter") -> list[str]:
    full = f"sparsemean_{name}"
    rows = [f'{full}{{{label}="{key}"}} {value}' for key, value in sorted(counts.items())]
    return [f"# HELP {full} {what}", f"# TYPE {full} {kind}", *rows]
