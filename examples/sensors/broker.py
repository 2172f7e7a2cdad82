"""A private mosquitto on a free port of this machine, which knows its users and what each may say."""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ACCESS = """\
user fusion
topic readwrite sparsemean/{network}/#

user watch
topic read sparsemean/{network}/#

pattern read sparsemean/{network}/run
pattern read sparsemean/{network}/round
pattern write sparsemean/{network}/node/%u/payload
pattern write sparsemean/{network}/node/%u/presence
pattern read sparsemean/{network}/node/%u/receipt
"""

CONFIG = """\
listener {port} 127.0.0.1
user {user}
allow_anonymous false
password_file {folder}/passwords
acl_file {folder}/access
persistence false
set_tcp_nodelay true
log_dest stderr
log_type error
"""


@dataclass(frozen=True)
class Broker:
    """Where it listens, and the password of each user."""

    address: str
    passwords: dict[str, str]


def program(name: str) -> str:
    """Its path; Debian puts mosquitto where only root's PATH looks."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]))
    if found is None:
        sys.exit(f"{name} is not installed: apt install mosquitto (Debian, Ubuntu), brew install mosquitto (macOS)")
    return found


@contextmanager
def private_broker(folder: Path, network: str, stations: Sequence[str]) -> Iterator[Broker]:
    """Runs while the block runs. Files are in ``folder``; nothing else is kept."""
    mosquitto, make_hashes = program("mosquitto"), program("mosquitto_passwd")
    passwords = {user: secrets.token_urlsafe(16) for user in ("fusion", "watch", *stations)}
    secret, access = folder / "passwords", folder / "access"
    for path in (secret, access):
        path.touch(mode=0o600)
    secret.write_text("".join(f"{user}:{password}\n" for user, password in passwords.items()))
    subprocess.run([make_hashes, "-U", secret], check=True)
    access.write_text(ACCESS.format(network=network))
    for _ in range(5):  # somebody else may take the port before mosquitto does
        port = free_port()
        config = folder / "mosquitto.conf"
        config.write_text(CONFIG.format(port=port, folder=folder, user=getpass.getuser()))
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([mosquitto, "-c", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            if answers(port, process):
                yield Broker(f"127.0.0.1:{port}", passwords)
                return
        finally:
            process.kill()
            process.wait()
    sys.exit(f"mosquitto does not start:\n{(folder / 'log').read_text()}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int, process: subprocess.Popen[bytes], seconds: float = 10.0) -> bool:
    """Whether the port accepts connections before the time is over and while the process lives."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0 and process.poll() is None:
                return True
        time.sleep(0.05)
    return False
