"""A node's connection to the service: one request at a time, again and again until there is an answer."""

from __future__ import annotations

import http.client
import ipaddress
import json
import logging
import random
import ssl
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sparsemean.errors import InvalidInput, MalformedPayload
from sparsemean.integrations.http.messages import Unreachable, refusal_of

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 20.0
HELD = 1.0
"""A request that is cut off after so many seconds was there to wait for something, and is made again soon."""
LARGEST = 1 << 33
"""Bytes of an answer that are read at most."""
AGAIN = (408, 425, 429, 500, 502, 503, 504)

log = logging.getLogger("sparsemean.http")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. ``headers`` have names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        try:
            told = json.loads(self.body)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise MalformedPayload(f"the answer is not JSON: {self.body[:80]!r}; is a service of ours at this address?")
        return told


class Link:
    """Requests to one service; see ``HttpNode`` for the parameters."""

    def __init__(
        self,
        server: str,
        token: str | None,
        authority: Path | str | None,
        certificate: Path | str | None,
        key: Path | str | None,
        patience: float,
        insecure: bool,
    ) -> None:
        try:
            parts = urlsplit(server)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if host is None or parts.scheme not in ("http", "https") or parts.path not in ("", "/") or parts.query:
            raise InvalidInput(f"a service's address is https://HOST:PORT, got {server!r:.100}")
        if parts.scheme == "http" and not (insecure or _is_here(host)):
            raise InvalidInput(
                f"others can read the token on its way to {host}; use https://, or insist with insecure (--insecure)"
            )
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._headers = {"Connection": "keep-alive"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {_checked(token)}"
        self._patience = patience
        self._connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = _context(authority, certificate, key)
            self._connection = http.client.HTTPSConnection(host, port, timeout=30, context=context)
        else:
            self._connection = http.client.HTTPConnection(host, port, timeout=30)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        also: Collection[int] = (),
        seconds: float = 120.0,
    ) -> Answer:
        """The answer; a refusal is raised as the error that it is.

        Parameters
        ----------
        also
            Statuses that are answers too, beside 200.
        seconds
            That one answer may take.
        """
        until, attempt = time.monotonic() + self._patience, 0
        while True:
            wait, why, began = None, "", time.monotonic()
            try:
                answer = self._once(method, path, body, {**self._headers, **(headers or {})}, seconds)
                if answer.status == 200 or answer.status in also:
                    return answer
                if answer.status not in AGAIN:
                    raise refusal_of(answer.body, answer.status)
                wait, why = _asked_for(answer), str(refusal_of(answer.body, answer.status))
            except ssl.SSLCertVerificationError as error:
                self.close()
                raise InvalidInput(
                    f"{self.origin} shows a certificate that is not trusted ({error.verify_message}); name who signed "
                    "it with authority= (--ca)"
                ) from None
            except (OSError, http.client.HTTPException) as error:
                self.close()
                why = _told(error)
                if time.monotonic() - began > HELD:
                    attempt = 0
            if wait is None:
                wait = random.uniform(0.1, 1.0) * min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**attempt)
            if time.monotonic() + wait > until:
                raise Unreachable(f"{self.origin} does not answer: {why}")
            log.info("%s: %s; again in %.1f s", self.origin, why, wait)
            time.sleep(wait)
            attempt += 1

    def _once(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], seconds: float) -> Answer:
        connection = self._connection
        connection.timeout = seconds
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        connection.request(method, path, body, dict(headers))
        with connection.getresponse() as response:
            content = response.read(LARGEST)
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, content)


def _asked_for(answer: Answer) -> float | None:
    """The seconds that Retry-After asks for, and a little more, so that not all come back at once."""
    told = answer.headers.get("retry-after", "")
    return float(told) + random.uniform(0.0, 1.0) if told.isascii() and told.isdigit() and len(told) < 6 else None


def _told(error: Exception) -> str:
    told = str(error) or type(error).__name__
    if isinstance(error, http.client.RemoteDisconnected):
        return f"{told} (it may want https://, or does not accept this client certificate)"
    if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
        return f"{told} (it may speak http:// alone)"
    return told


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _checked(token: str) -> str:
    stripped = token.strip()
    if not stripped or not stripped.isascii() or any(c.isspace() for c in stripped):
        raise InvalidInput("a token is the one line that sparsemean token add printed")
    return stripped


def _context(authority: Path | str | None, certificate: Path | str | None, key: Path | str | None) -> ssl.SSLContext:
    for path in (authority, certificate, key):
        if path is not None and not Path(path).is_file():
            raise InvalidInput(f"there is no file {path}; give the path of one in PEM")
    try:
        context = ssl.create_default_context(cafile=None if authority is None else str(authority))
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise InvalidInput(f"a certificate or key of this node cannot be used: {error}") from None
    return context
