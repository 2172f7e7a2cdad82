"""Connections that cost little: uvicorn's protocol with the limits that it lacks.

uvicorn reads a request for as long as its sender likes. Here a head has some seconds and some bytes, a connection has
one request at a time, and where there are too many connections, those that have not sent a head yet go first.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import ssl
from asyncio.events import TimerHandle
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 16 << 10
"""The most that a request may have before its body."""
HANDSHAKE = 10.0
"""Seconds that a TLS handshake may take."""
CERTIFICATE = "sparsemean.certificate"
"""Where in a request's scope the name is that its client's certificate has."""

log = logging.getLogger("sparsemean.http")


def limited(most: int, head_seconds: float, count: Callable[[str], object]) -> type[HttpToolsProtocol]:
    """The protocol with these limits.

    Parameters
    ----------
    most : int
        Connections at the same time.
    head_seconds : float
        From the connection, or the first byte of a later request, until its head is complete.
    count : callable
        Is told why a connection was ended.
    """
    silent: dict[Limited, None] = {}  # connections whose first head is not complete, the oldest first

    class Limited(HttpToolsProtocol):
        """One connection."""

        _timer: TimerHandle | None = None
        _head = 0  # bytes of the head that is being read
        _in_head = True
        _certificate: str | None = None

        def __init__(self, config: Config, server_state: Any, app_state: dict[str, Any], _loop: Any = None) -> None:
            super().__init__(config, server_state, app_state, _loop)
            self.access_log = False

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)  # type: ignore[arg-type]
            self._certificate = _name_in(transport.get_extra_info("ssl_object"))
            silent[self] = None
            self._expect_head()
            if len(self.connections) > most:
                next(iter(silent)).end("TooManyConnections")

        def end(self, reason: str) -> None:
            """End the connection at once."""
            count(reason)
            silent.pop(self, None)
            self.transport.abort()

        def _expect_head(self) -> None:
            self._in_head, self._head = True, 0
            self._timer = self.loop.call_later(head_seconds, self.end, "SlowHead")

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return None
            if self._in_head:
                self._head += len(data)
                if self._timer is None:
                    self._timer = self.loop.call_later(head_seconds, self.end, "SlowHead")
            elif self.cycle is not None and self.cycle.response_complete and self.cycle.more_body:
                return self.end("BodyNotWanted")
            super().data_received(data)
            if self._in_head and self._head > HEAD_BYTES and not self.transport.is_closing():
                count("LongHead")
                super().send_400_response("The head of this request is too long.")
            return None

        def send_400_response(self, msg: str) -> None:
            count("NotHttp")
            super().send_400_response(msg)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["extensions"] = {CERTIFICATE: {"name": self._certificate}}

        def on_headers_complete(self) -> None:
            self._in_head = False
            silent.pop(self, None)
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD_BYTES:
                raise ValueError("the head is too long")  # which the parser answers with 400
            if self.cycle is not None and not self.cycle.response_complete:
                raise ValueError("a request before the answer to the one before it")
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self._in_head, self._head = True, 0

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.cycle.more_body and not self.transport.is_closing():
                self.transport.close()  # what follows would be the rest of a body that nobody wants

        def connection_lost(self, exc: Exception | None) -> None:
            silent.pop(self, None)
            if self._timer is not None:
                self._timer.cancel()
            self._unset_keepalive_if_required()  # which uvicorn leaves running where the other end has reset it
            super().connection_lost(exc)

    return Limited


def _name_in(tls: ssl.SSLObject | None) -> str | None:
    """The common name in the certificate that the client showed, which our authority signed."""
    shown = None if tls is None else tls.getpeercert()
    if not shown:
        return None
    names = [value for parts in shown["subject"] for name, value in parts if name == "commonName"]  # type: ignore[misc, str-unpack]
    return str(names[0]) if len(names) == 1 else None


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose TLS handshakes do not take as long as the client likes."""

    async def create_server(self, *arguments: Any, **settings: Any) -> Any:
        """As asyncio's, with a limit on handshakes."""
        if settings.get("ssl") is not None:
            settings.setdefault("ssl_handshake_timeout", HANDSHAKE)
        return await super().create_server(*arguments, **settings)


def raise_open_files(wanted: int) -> int:
    """How many connections this process may have, after asking the system for so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reserve = 100
    most = wanted + reserve if hard == resource.RLIM_INFINITY else min(wanted + reserve, hard)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    return max(1, min(wanted, soft - reserve))
