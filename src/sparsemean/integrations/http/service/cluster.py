"""A service whose rounds are in a Ray cluster: payloads are opened by fronts, and kept by shards."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Any

from sparsemean.errors import InvalidInput
from sparsemean.run import Run
from sparsemean.server import Server

LOCAL, AUTO = "local", "auto"
REACH = 10.0  # seconds; Ray itself tries for minutes


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the rounds of a service are, when they are not in its own process.

    Attributes
    ----------
    address : str
        HOST:PORT of a Ray cluster to join, or ``auto`` for that of this machine; ``local`` starts one for this service
        alone.
    shards, fronts : int
        As in ``RayServer``.
    """

    address: str
    shards: int = 2
    fronts: int = 2

    def server(self, run: Run, **settings: Any) -> Server:
        """Join the cluster, and make a server there with the settings of ``RayServer``."""
        try:
            import ray

            from sparsemean.integrations.ray import RayServer
        except ModuleNotFoundError as missing:
            raise InvalidInput(str(missing)) from None
        self._reach()
        own = {"num_cpus": self.shards + self.fronts, "include_dashboard": False} if self.address == LOCAL else {}
        begin: Any = ray.init
        try:
            begin(address=self.address, log_to_driver=False, logging_level="ERROR", **own)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise self._unreachable(error) from None
        return RayServer(run, self.shards, fronts=self.fronts, **settings)

    def _reach(self) -> None:
        """Refuse an address at which nobody listens."""
        if self.address in (LOCAL, AUTO):
            return
        host, _, port = self.address.rpartition(":")
        if not (host and port.isascii() and port.isdigit()) or "/" in host:
            raise InvalidInput(f"a Ray cluster is at HOST:PORT, or auto, or local; got {self.address!r}")
        try:
            socket.create_connection((host.strip("[]"), int(port)), REACH).close()
        except (OSError, OverflowError) as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> InvalidInput:
        why = str(error).partition("\n")[0][:200].rstrip(".")
        return InvalidInput(
            f"there is no Ray cluster at {self.address!r}: {why}; start one with ray start, or give local"
        )

    @staticmethod
    def leave() -> None:
        """Give up the connection; one that is local ends."""
        import ray

        ray.shutdown()
