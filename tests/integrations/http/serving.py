"""A service in a process of its own, as ``sparsemean serve`` starts it, and requests to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sparsemean as sm
from sparsemean.integrations.http import HttpNode
from sparsemean.integrations.http.service.tokens import Tokens

START = 120.0  # seconds that a process may take to listen, on a machine that does ten other things
NODES = ("a", "b", "c")


@dataclass
class Service:
    """Files of one service, and its process while it runs."""

    folder: Path
    run: sm.Run
    settings: Sequence[object] = ()
    nodes: Sequence[str] = NODES
    scheme: str = "http"
    tokens: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None
    port: int = 0
    made: list[HttpNode] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "run.json").write_text(self.run.to_json())
        known = Tokens.create(self.folder / "tokens.json")
        self.tokens = {node: known.add(node) for node in self.nodes}
        (self.folder / "admin").write_text("the-operators-own-secret")

    @property
    def admin(self) -> str:
        return "the-operators-own-secret"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def words(self) -> list[str]:
        """The command that starts it."""
        given = {
            "--run": self.folder / "run.json",
            "--tokens": self.folder / "tokens.json",
            "--listen": f"127.0.0.1:{self.port}",
            "--admin-token-file": self.folder / "admin",
        }
        words = [str(word) for pair in given.items() for word in pair]
        code = "from sparsemean.lab.cli import main; main()"
        return [sys.executable, "-c", code, "serve", *words, *map(str, self.settings)]

    def start(self, ready: Callable[[], object] | None = None) -> None:
        """Start it, at the port of before if there was one, and wait until it answers."""
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                self.words(), stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "COLUMNS": "200"}
            )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", said)
        assert found, f"{said}{self.log()}"
        self.port = int(found[1])
        until = time.monotonic() + START
        while True:
            try:
                (ready or (lambda: self.ask("GET", "/ready")))()
                return
            except OSError:
                assert self.process.poll() is None, self.log()
                assert time.monotonic() < until, f"not ready after {START} s:\n{self.log()}"
                time.sleep(0.05)

    def refused(self, *more: object) -> tuple[int, str]:
        """Exit code and message of a service that does not start, with these settings too."""
        done = subprocess.run([*self.words(), *map(str, more)], capture_output=True, text=True, timeout=START)
        return done.returncode, done.stderr

    def end(self) -> None:
        """Leave nothing behind."""
        for node in self.made:
            node.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal; its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(START)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return code

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def node(self, name: str, **settings: Any) -> HttpNode:
        """A node with its token; its connection ends with the service's block."""
        self.made.append(HttpNode(self.url, self.tokens[name], **{"patience": START, **settings}))
        return self.made[-1]

    def ask(
        self, method: str, path: str, token: str | None = None, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """One request; status, headers and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START)
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def json(self, path: str, token: str | None = None) -> Any:
        status, _, body = self.ask("GET", path, token)
        assert status == 200, body
        return json.loads(body)

    def operate(self, action: str, **body: str) -> tuple[int, Any]:
        """What the operator does."""
        status, _, told = self.ask("POST", f"/v1/admin/{action}", self.admin, json.dumps(body).encode())
        return status, json.loads(told)

    def raw(self, sent: bytes, seconds: float = 5.0) -> bytes:
        """All that comes back for these bytes, until the other end closes or is silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as line:
            line.settimeout(seconds)
            found = b""
            try:
                line.sendall(sent)
                while some := line.recv(1 << 16):
                    found += some
            except OSError:
                pass
            return found


@contextmanager
def serving(folder: Path, run: sm.Run, *settings: object, **more: Any) -> Iterator[Service]:
    """A service that runs while the block does, and is gone after it however that ends."""
    service = Service(folder, run, settings, **more)
    try:
        service.start()
        yield service
    finally:
        service.end()
