"""The service's paths for programs: an OpenAPI description."""

from __future__ import annotations

from typing import Any

from sparsemean._version import __version__
from sparsemean.integrations.http.messages import MEAN, PAYLOAD, ROUND, RUN

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_NODE: list[dict[str, Any]] = [{"token": []}]
_ADMIN: list[dict[str, Any]] = [{"admin": []}]
_OPEN: list[dict[str, Any]] = [{}, {"token": []}, {"admin": []}]
_ANYTHING = {"type": "object"}


def description(payload_bytes: int) -> dict[str, Any]:
    """What can be asked, and what comes back.

    Parameters
    ----------
    payload_bytes : int
        The most that a payload has in this run.
    """
    receipt = _object(node=_TEXT, round=_COUNT, digest=_TEXT)
    about_round = _object(
        number=_COUNT,
        run=_TEXT,
        plan=_TEXT,
        sketch=_TEXT,
        reference=_TEXT,
        came={"type": "boolean"},
        paused={"type": "boolean"},
    )
    number = {"type": "number", "minimum": 0}
    payload = {
        "required": True,
        "content": {"application/octet-stream": {"schema": {**_TEXT, "maxLength": payload_bytes, "format": "binary"}}},
    }
    named = {"required": True, "content": {"application/json": {"schema": _object(node=_TEXT)}}}
    done = _answers(_object(done=_TEXT, round=_COUNT), 400, 401, 404, 409, 411, 413, 503)
    paths: dict[str, Any] = {
        RUN: {"get": _asked("The run, and what the node is called in it.", _NODE, _answers(_ANYTHING, 401))},
        ROUND: {
            "get": {
                **_asked("The open round, its plan and its reference.", _NODE, _answers(about_round, 400, 401, 503)),
                "parameters": [_query("after", number), _query("wait", number)],
            }
        },
        PAYLOAD: {
            "put": {
                **_asked(
                    "Take a payload of the open round; the same one again gives the same receipt.",
                    _NODE,
                    _answers(_object(receipt=receipt, round=_COUNT), 400, 401, 403, 408, 409, 411, 413, 422, 503),
                ),
                "requestBody": payload,
            }
        },
        MEAN: {
            "get": {
                **_asked(
                    "The last mean, or that of a round that is over, as a frame.",
                    _NODE,
                    {
                        **_bytes(400, 401, 404, 410),
                        "204": _said("The round ended without a mean."),
                        "304": _said("As you have it."),
                    },
                ),
                "parameters": [_query("round", number)],
            }
        },
        "/v1/estimate.npy": {"get": _asked("The last mean, for numpy.load.", [*_NODE, *_ADMIN], _bytes(401, 404))},
        "/v1/estimate": {"get": _asked("The last round's figures.", _OPEN, _answers(_ANYTHING, 401, 404))},
        "/v1/history": {
            "get": {
                **_asked("Rounds that ended.", _OPEN, _answers(_object(rounds={"type": "array"}), 400, 401)),
                "parameters": [_query("most", number)],
            }
        },
        "/health": {"get": _asked("Whether rounds are played.", [{}], _answers(_ANYTHING, 503))},
        "/ready": {"get": _asked("Whether payloads are taken.", [{}], _answers(_ANYTHING, 503))},
        "/metrics": {"get": _asked("For Prometheus.", _OPEN, _text("text/plain", 401))},
    }
    for action in ("pause", "resume", "close", "skip", "forget", "rotate"):
        body = {"requestBody": named} if action in ("forget", "rotate") else {}
        paths[f"/v1/admin/{action}"] = {"post": {**_asked(f"Operator: {action}.", _ADMIN, done), **body}}
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "sparsemean", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"token": bearer, "admin": bearer}},
    }


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(members)}


def _asked(what: str, who: list[dict[str, Any]], answers: dict[str, Any]) -> dict[str, Any]:
    return {"summary": what, "security": who, "responses": answers}


def _query(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _said(what: str) -> dict[str, Any]:
    return {"description": what}


def _answers(schema: dict[str, Any], *refusals: int) -> dict[str, Any]:
    return {"200": {**_said("Done."), "content": {"application/json": {"schema": schema}}}, **_refusals(refusals)}


def _text(kind: str, *refusals: int) -> dict[str, Any]:
    return {"200": {**_said("Text."), "content": {kind: {"schema": _TEXT}}}, **_refusals(refusals)}


def _bytes(*refusals: int) -> dict[str, Any]:
    return _text("application/octet-stream", *refusals)


def _refusals(statuses: tuple[int, ...]) -> dict[str, Any]:
    refusal = _object(error=_TEXT, why=_TEXT)
    content = {"application/json": {"schema": refusal}}
    return {str(status): {**_said("Refused, with the reason."), "content": content} for status in statuses}
