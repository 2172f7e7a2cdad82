"""``sparsemean serve``: rounds for nodes that come over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console

from sparsemean._names import Durability, Missing, ValueName
from sparsemean.errors import InvalidInput
from sparsemean.lab.cli.run import run_of
from sparsemean.lab.cli.sizes import bytes_of
from sparsemean.server import Clip


def serve_command(
    run: Annotated[Path, typer.Option(help="The run: a file that `sparsemean run new` writes.")],
    tokens: Annotated[Path, typer.Option(help="Who may come: a file that `sparsemean token add` writes.")],
    listen: Annotated[str, typer.Option(help="HOST:PORT; port 0 is any that is free.")] = "127.0.0.1:8443",
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate of this service, in PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key, in PEM.")] = None,
    client_ca: Annotated[
        Path | None, typer.Option(help="Who signs client certificates, in PEM: nodes may then come without a token.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Without TLS where others can hear, as in a container behind a proxy.")
    ] = False,
    journal: Annotated[
        Path | None, typer.Option(help="A folder that rounds survive in; without it a stop loses what is remembered.")
    ] = None,
    durability: Annotated[
        str, typer.Option(help="A receipt survives a power cut (accept), or the death of the process (round).")
    ] = "accept",
    minimum: Annotated[int, typer.Option(min=1, help="Fewer nodes never make a mean.")] = 1,
    wanted: Annotated[
        int | None, typer.Option(min=1, help="With so many a round is over; by default with all that have a token.")
    ] = None,
    grace: Annotated[
        float, typer.Option(help="Seconds that it stays open for the others once it has as many as wanted.")
    ] = 0.25,
    deadline: Annotated[
        float | None, typer.Option(help="Seconds after which it is over with those who came; by default never.")
    ] = None,
    missing: Annotated[
        str, typer.Option(help="Nodes that do not come count nothing (drop), or as they were (carry).")
    ] = "drop",
    clip: Annotated[float | None, typer.Option(help="Bound on the length of a node's sent values.")] = None,
    memory_bytes: Annotated[str, typer.Option(help="Cap on what is kept of nodes, such as 16GiB.")] = "16GiB",
    ray: Annotated[
        str | None, typer.Option(help="Keep rounds in a Ray cluster: its address, auto, or local to start one here.")
    ] = None,
    shards: Annotated[
        int | None, typer.Option(min=1, help="With --ray: how many processes share the coordinates; by default 2.")
    ] = None,
    fronts: Annotated[
        int | None, typer.Option(min=0, help="With --ray: how many processes open and check payloads; by default 2.")
    ] = None,
    broadcast_values: Annotated[
        str, typer.Option(help="How a value of the mean travels back: float32, int8, eden-4, …")
    ] = "float32",
    weights_by_node: Annotated[
        bool, typer.Option("--weights-by-node", help="Let nodes say their weight; by default their token does.")
    ] = False,
    estimates: Annotated[Path | None, typer.Option(help="A folder that gets every mean as a .npy file.")] = None,
    past_means: Annotated[
        str, typer.Option(help="Room for means that nodes may have missed, such as 1GiB; beside the journal.")
    ] = "256MiB",
    admin_token_file: Annotated[
        Path | None, typer.Option(help="The operator's token, which `sparsemean token admin` makes.")
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Show figures and the live page to holders of a token alone.")
    ] = False,
    log_format: Annotated[str, typer.Option(help="text, json, or auto: text for people at a terminal.")] = "auto",
) -> None:
    """Run rounds for nodes that come over HTTP, until SIGTERM or Ctrl-C; SIGHUP reads the tokens again.

    Nodes use `sparsemean node` or `HttpNode`. A page at / shows what is going on.
    """
    if log_format not in ("auto", "text", "json"):
        raise InvalidInput(f"--log-format is text, json or auto, got {log_format!r}")
    for told, choices, name in (
        (durability, get_args(Durability), "durability"),
        (missing, get_args(Missing), "missing"),
        (broadcast_values, get_args(ValueName), "broadcast-values"),
    ):
        if told not in choices:
            raise InvalidInput(f"--{name} is one of {', '.join(choices)}; got {told!r}")
    try:
        from sparsemean.integrations.http.service.process import Service, Settings, Tls, log_to_stderr
    except ModuleNotFoundError as error:
        raise InvalidInput(str(error)) from None
    from sparsemean.integrations.http.service.cluster import Cluster
    from sparsemean.integrations.http.service.conductor import Policy
    from sparsemean.integrations.http.service.tokens import Secret

    if (tls_cert is None) != (tls_key is None) or (client_ca is not None and tls_cert is None):
        raise InvalidInput("TLS takes --tls-cert and --tls-key, and with --client-ca both of these too")
    if ray is None and not (shards is None and fronts is None):
        raise InvalidInput("--shards and --fronts are of a Ray cluster; give its address by --ray, or --ray local")
    of_cluster = {name: given for name, given in (("shards", shards), ("fronts", fronts)) if given is not None}
    host, port = _address(listen)
    settings = Settings(
        run_of(run),
        tokens,
        Policy(minimum, wanted, deadline, grace),
        host,
        port,
        tls=None if tls_cert is None or tls_key is None else Tls(tls_cert, tls_key, client_ca),
        insecure=insecure,
        journal=journal,
        durability=durability,  # type: ignore[arg-type]  # checked above, as are the other names
        missing=missing,  # type: ignore[arg-type]
        clip=None if clip is None else Clip(norm=clip),
        memory_bytes=bytes_of(memory_bytes),
        cluster=None if ray is None else Cluster(ray, **of_cluster),
        broadcast_values=broadcast_values,  # type: ignore[arg-type]
        admin=None if admin_token_file is None else Secret(secret_in(admin_token_file)),
        private=private,
        weights_by_node=weights_by_node,
        estimates=estimates,
        past_means=bytes_of(past_means),
    )
    service = Service(settings)
    log_to_stderr(log_format == "json" or (log_format == "auto" and not sys.stderr.isatty()))

    def begun() -> None:
        invited = len(service.tokens.nodes())
        ends = f"all nodes that have a token, {invited} now" if wanted is None else f"{wanted} nodes"
        lines = [
            f"Serving at {service.address}, with a page for browsers there",
            f"A round ends with {ends}{'' if deadline is None else f', or after {deadline:g} s'}; at least {minimum}",
        ]
        if max(wanted or 1, minimum) > invited:
            lines.append(f"Only {invited} have a token: nodes are let in by sparsemean token add, and kill -HUP")
        if journal is None:
            lines.append("Without --journal a stop loses what is remembered of nodes")
        for line in lines:
            Console().print(line, highlight=False, soft_wrap=True)

    service.run(begun)


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise InvalidInput(f"--listen is HOST:PORT, such as 127.0.0.1:8443, got {listen!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


def secret_in(path: Path) -> str:
    """The one line of a file with a token."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the token cannot be read from {path}: {error}") from None
