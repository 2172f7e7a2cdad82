"""A service whose rounds are in a Ray cluster: payloads are opened by fronts, and kept by shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparsemean.errors import InvalidInput
from sparsemean.run import Run
from sparsemean.server import Server

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the rounds of a service are, when they are not in its own process.

    Attributes
    ----------
    address : str
        Of a Ray cluster to join, such as ``10.0.0.1:6379`` or ``auto``; ``local`` starts one for this service alone.
    shards, fronts : int
        As in ``RayServer``.
    """

    address: str
    shards: int
    fronts: int

    def server(self, run: Run, **settings: Any) -> Server:
        """Join the cluster, and make a server there with the settings of ``RayServer``."""
        try:
            import ray

            from sparsemean.integrations.ray import RayServer
        except ModuleNotFoundError as missing:
            raise InvalidInput(str(missing)) from None
        own = {"num_cpus": self.shards + self.fronts, "include_dashboard": False} if self.address == LOCAL else {}
        begin: Any = ray.init
        try:
            begin(address=self.address, log_to_driver=False, logging_level="ERROR", **own)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise InvalidInput(
                f"there is no Ray cluster at {self.address!r}: {error!s:.200}; start one with ray start, or give local"
            ) from None
        return RayServer(run, self.shards, fronts=self.fronts, **settings)

    @staticmethod
    def leave() -> None:
        """Give up the connection; one that is local ends."""
        import ray

        ray.shutdown()
