"""The service as a process: sockets, TLS, signals, and an end at which nothing is lost."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType

import numpy as np

try:
    import httptools  # noqa: F401
    import starlette  # noqa: F401
    import uvicorn
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(f"the HTTP service needs {missing.name}: pip install 'sparsemean[serve]'") from None

from sparsemean._names import Durability, Missing, ValueName
from sparsemean.errors import InvalidInput
from sparsemean.integrations.http.broadcast import broadcast_run
from sparsemean.integrations.http.service.app import App
from sparsemean.integrations.http.service.asking import Admission
from sparsemean.integrations.http.service.cluster import Cluster
from sparsemean.integrations.http.service.conductor import Conductor, Policy
from sparsemean.integrations.http.service.connections import Loop, limited, raise_open_files
from sparsemean.integrations.http.service.history import History
from sparsemean.integrations.http.service.means import MOST_BYTES, Means
from sparsemean.integrations.http.service.tokens import Secret, Tokens
from sparsemean.results import Estimate
from sparsemean.run import Run
from sparsemean.server import Clip, PrometheusReports, Server

log = logging.getLogger("sparsemean.http")


@dataclass(frozen=True)
class Tls:
    """Files in PEM of the service's certificate and key and, for client certificates, of who signs those."""

    certificate: Path
    key: Path
    client_authority: Path | None = None

    def context(self) -> ssl.SSLContext:
        """TLS 1.2 or later; client certificates are asked for but not required, since tokens do as well."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        for path in filter(None, (self.certificate, self.key, self.client_authority)):
            if not path.is_file():
                raise InvalidInput(f"there is no file {path} for TLS; give the path of one in PEM")
        try:
            context.load_cert_chain(self.certificate, self.key)
            if self.client_authority is not None:
                context.load_verify_locations(self.client_authority)
                context.verify_mode = ssl.CERT_OPTIONAL
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput(f"the certificate, its key or the authority cannot be used: {error}") from None
        return context


@dataclass(frozen=True)
class Settings:
    """All that a service is told.

    Attributes
    ----------
    run : Run
    tokens : Path
        The file that ``sparsemean token`` writes.
    policy : Policy
    host, port : str and int
        Where it listens; port 0 is any that is free.
    tls : Tls, optional
        Without it only loopback will do, unless ``insecure``.
    insecure : bool
        Listen without TLS where others can hear, as behind a proxy of your own.
    journal : Path, optional
        As in ``Server``. History is kept beside it, in ``NAME.history.jsonl``.
    durability, missing, clip, memory_bytes
        As in ``Server``.
    cluster : Cluster, optional
        Where rounds are kept that are not in this process.
    broadcast_values : str
        How a value of the mean travels back: float32, or fewer bits.
    admin : Secret, optional
    private, weights_by_node, body_seconds
        As in ``Admission`` and ``App``.
    estimates : Path, optional
        A folder that gets each mean as ``round-NNNNNNNNN.npy``.
    past_means : int
        Bytes of past means that are kept for nodes that missed them; in ``NAME.means`` beside the journal.
    connections : int
        At the same time; of those over it, the oldest that have not asked for anything yet are ended.
    head_seconds : float
        That the head of a request may take.
    stop_seconds : float
        That requests may take to end when the service stops.
    """

    run: Run
    tokens: Path
    policy: Policy
    host: str = "127.0.0.1"
    port: int = 8443
    tls: Tls | None = None
    insecure: bool = False
    journal: Path | None = None
    durability: Durability = "accept"
    missing: Missing = "drop"
    clip: Clip | None = None
    memory_bytes: int = 1 << 34
    cluster: Cluster | None = None
    broadcast_values: ValueName = "float32"
    admin: Secret | None = None
    private: bool = False
    weights_by_node: bool = False
    body_seconds: float = 30.0
    estimates: Path | None = None
    past_means: int = MOST_BYTES
    connections: int = 4096
    head_seconds: float = 10.0
    stop_seconds: float = 20.0


class Service:
    """One service; ``run`` returns when it was told to stop, by SIGTERM or SIGINT. SIGHUP reads the tokens again."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        _check_heard(settings)
        if settings.tls is not None:
            settings.tls.context()
        if settings.estimates is not None:
            _make_folder(settings.estimates)
        self.tokens = Tokens(settings.tokens)
        self.socket = _listening(settings.host, settings.port)

    @property
    def address(self) -> str:
        """Where it listens, as a URL."""
        host, port = self.socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        return f"{'http' if self.settings.tls is None else 'https'}://{shown}:{port}"

    def run(self, begun: Callable[[], object] = lambda: None) -> None:
        """Serve until a signal; raises what made rounds impossible. ``begun`` is called once there is an open round."""
        try:
            with asyncio.Runner(loop_factory=Loop) as runner:
                runner.run(self._serve(begun))
        finally:
            self.socket.close()

    async def _serve(self, begun: Callable[[], object]) -> None:
        settings, reports = self.settings, PrometheusReports()
        conductor: Conductor | None = None

        def told(report: object) -> None:  # the server tells of rounds that it finds in its journal only later
            if conductor is not None:
                conductor.report(report)  # type: ignore[arg-type]

        make = Server if settings.cluster is None else settings.cluster.server
        server = make(
            settings.run,
            missing=settings.missing,
            journal=settings.journal,
            durability=settings.durability,
            memory_bytes=settings.memory_bytes,
            clip=settings.clip,
            on_round=[reports, told],
        )
        beside = settings.journal
        history = History(None if beside is None else beside.with_name(f"{beside.name}.history.jsonl"))
        keep = None if settings.estimates is None else partial(_keep, settings.estimates)
        mean_run = broadcast_run(settings.run, settings.broadcast_values)
        means = Means(None if beside is None else beside.with_name(f"{beside.name}.means"), settings.past_means)
        conductor = Conductor(server, settings.policy, self.tokens.nodes, mean_run, history, keep, means)
        admission = Admission(self.tokens, settings.admin, settings.private)
        app = App(conductor, admission, reports, settings.weights_by_node, settings.body_seconds)
        most = raise_open_files(settings.connections)
        tls = settings.tls
        config = uvicorn.Config(
            app.asgi(),
            http=limited(most, settings.head_seconds, lambda reason: app.ended.update([reason])),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=int(settings.stop_seconds),
            ssl_context_factory=None if tls is None else (lambda *_: tls.context()),
        )
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # a line for each garbled request would fill a disk
        try:
            await conductor.start()
            begun()
            listener = _Listener(config, conductor)
            with _reloading(self.tokens):
                await listener.serve([self.socket])
            conductor.raise_failure()
        finally:
            await conductor.stop()
            if settings.cluster is not None:
                settings.cluster.leave()
        log.info("stopped")


class _Listener(uvicorn.Server):
    """uvicorn, which when it stops first ends the answers that wait for something to happen."""

    def __init__(self, config: uvicorn.Config, conductor: Conductor) -> None:
        super().__init__(config)
        self._conductor = conductor

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As asyncio does it; nothing is sent to this process again once it has ended."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        self._conductor.on_death(partial(self.handle_exit, signal.SIGTERM, None))
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; a second Ctrl-C does not wait for requests."""
        self._conductor.end()
        super().handle_exit(sig, frame)


@contextmanager
def _reloading(tokens: Tokens) -> Iterator[None]:
    """SIGHUP reads the file of tokens again; one that cannot be read changes nothing."""

    def reload() -> None:
        try:
            tokens.reload()
            log.info("tokens were read again: %d nodes may come", len(tokens.nodes()))
        except InvalidInput as wrong:
            log.error("tokens stay as they were: %s", wrong)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


def _check_heard(settings: Settings) -> None:
    """Tokens and vectors do not go over a network that others hear, unless whoever runs the service insists."""
    try:
        private = ipaddress.ip_address(settings.host).is_loopback
    except ValueError:
        private = settings.host == "localhost"
    if settings.tls is None and not (private or settings.insecure):
        raise InvalidInput(
            f"others can hear tokens and vectors at {settings.host}; give --tls-cert and --tls-key, listen on "
            "127.0.0.1 behind a proxy, or insist with --insecure"
        )


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        raise InvalidInput(f"nothing can listen at {host}:{port}: {error}; choose another with --listen") from None


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"the means cannot be kept in {path}: {error}; give a folder with --estimates") from None


def _keep(folder: Path, estimate: Estimate) -> None:
    """Write a mean, whole or not at all."""
    path = folder / f"round-{estimate.round:09d}.npy"
    beside = folder / f".{path.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            np.save(file, estimate.mean, allow_pickle=False)
        beside.replace(path)
    except OSError as error:
        log.error("the mean of round %d is not in %s: %s", estimate.round, folder, error)
        with suppress(OSError):
            beside.unlink()


class JsonLines(logging.Formatter):
    """Log records as one line of JSON each; nothing of payloads or tokens is ever in a record of ours."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told)


def log_to_stderr(lines_of_json: bool) -> None:
    """Where a service's records go."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if lines_of_json else logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger("sparsemean")
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
