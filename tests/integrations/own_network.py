"""A loopback of its own for engines that listen on every address there is."""

from __future__ import annotations

import subprocess
from contextlib import suppress


def network_of_its_own() -> list[str]:
    """What to put before a command so that it has a loopback of its own: ray 2.55 and torchft listen on every address.

    Nothing, where the system does not permit it.
    """
    for unshare in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        prefix = [*unshare, "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        with suppress(OSError):
            if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0:
                return prefix
    return []
