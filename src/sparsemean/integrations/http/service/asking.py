"""A request before it is answered: who asks, what is in its query, and its body, which has limits."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from starlette.requests import ClientDisconnect, Request

from sparsemean.errors import InvalidInput, SparseMeanError
from sparsemean.integrations.http.messages import NotAdmitted
from sparsemean.integrations.http.service.connections import CERTIFICATE
from sparsemean.integrations.http.service.tokens import Credential, Secret, Tokens

BODIES = 256 << 20
"""Bytes of bodies that are read at the same time."""


class Refusal(SparseMeanError):
    """An answer that is no payload's refusal: the size or the time of a request, or the state of the service."""

    def __init__(self, status: int, why: str, retry_after: int | None = None) -> None:
        super().__init__(why)
        self.status, self.retry_after = status, retry_after


class Admission:
    """Whom a request's credential stands for; its path and its body say nothing of that.

    Parameters
    ----------
    tokens : Tokens
    admin : Secret, optional
        What opens the operator's paths; without it they are closed to everybody.
    private : bool
        Whether figures are for holders of a token alone.
    """

    def __init__(self, tokens: Tokens, admin: Secret | None, private: bool) -> None:
        self.tokens, self._admin, self._private = tokens, admin, private

    def node(self, request: Request) -> Credential:
        """The node; ``NotAdmitted`` where it is none."""
        token = _bearer(request)
        if token is not None:
            if self.is_operator(request):
                raise NotAdmitted("this is the operator's token, and a node has one of its own")
            return self.tokens.of_token(token)
        certificate = request.scope.get("extensions", {}).get(CERTIFICATE, {}).get("name")
        if certificate is not None:
            return self.tokens.of_certificate(certificate)
        raise NotAdmitted(
            "this needs a credential: a token (--token-file; as a header, Authorization: Bearer TOKEN), or a client "
            "certificate"
        )

    def is_operator(self, request: Request) -> bool:
        """Whether it has the admin token."""
        token = _bearer(request)
        return token is not None and self._admin is not None and self._admin.opens(token)

    def operator(self, request: Request) -> None:
        """Refuse everybody else."""
        if not self.is_operator(request):
            raise NotAdmitted("this needs the admin token: serve --admin-token-file, Authorization: Bearer TOKEN")

    def reader(self, request: Request) -> None:
        """Refuse who may not see means: all but nodes and the operator."""
        if not self.is_operator(request):
            self.node(request)

    def watcher(self, request: Request) -> None:
        """Refuse who may not see figures."""
        if self._private:
            self.reader(request)


class Bodies:
    """Reads bodies within limits: refused before a byte is read where the length is not known, or too large.

    Parameters
    ----------
    largest : int
        Bytes of the largest that will be read, by which their number at a time is bounded.
    seconds : float
        That one may take to arrive.
    refused : callable
        Is called for each one that is refused.
    """

    def __init__(self, largest: int, seconds: float, refused: Callable[[], object]) -> None:
        self._at_once = asyncio.Semaphore(max(4, BODIES // largest))
        self._seconds, self._refused = seconds, refused

    async def of(self, request: Request, most: int) -> bytes:
        """The body, of up to so many bytes."""
        try:
            return await self._read(request, most)
        except Refusal:
            self._refused()
            raise

    async def _read(self, request: Request, most: int) -> bytes:
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()):
            raise Refusal(411, "say how long the body is: send it with a Content-Length")
        if len(length) > 15 or int(length) > most:
            raise Refusal(413, f"a body has up to {most} bytes here, this one is of {length:.20}")
        body = bytearray()
        try:
            async with self._at_once, asyncio.timeout(self._seconds):
                async for chunk in request.stream():
                    body += chunk
        except TimeoutError:
            raise Refusal(408, f"the body took more than {self._seconds:g} seconds") from None
        except ClientDisconnect:
            raise Refusal(400, "the body ended before its Content-Length") from None
        return bytes(body)


def _bearer(request: Request) -> str | None:
    """The token in the header, if there is one."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def number_in(request: Request, name: str, otherwise: float) -> float:
    """A number from 0 on in the query."""
    told = request.query_params.get(name)
    if told is None:
        return otherwise
    number = plain_number(told)
    if not 0 <= number < 1 << 63:
        raise InvalidInput(f"{name} is a number from 0 on, got {told!r:.40}")
    return number


def plain_number(text: str) -> float:
    """The number that a text says, NaN where it says none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
