"""A process group for torchft's Manager, whose all-reduces are rounds: for its LocalSGD and DiLoCo as they are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import AllgatherOptions  # type: ignore[attr-defined]
from torchft.process_group import ProcessGroup, ProcessGroupGloo, ProcessGroupWrapper

from sparsemean.client import Client
from sparsemean.errors import IncompatibleScheme, MalformedPayload
from sparsemean.integrations.torch_outer.hub import down_run
from sparsemean.run import Run
from sparsemean.schemes import Scheme
from sparsemean.server import Server
from sparsemean.theory.arguments import whole

SMALL = 1024
LENGTH = 8  # bytes in front of a payload


class SparseProcessGroup(ProcessGroupWrapper):  # type: ignore[misc]  # Any, where torchft is not installed
    """``Manager(pg=SparseProcessGroup(scheme), …)``: replicas exchange payloads in place of whole tensors.

    Each all-reduce of a sum of floating numbers is a round: an all-gather of payloads, which all replicas decode alike.
    All other collectives, and tensors of fewer than ``small`` entries, are those of the group inside. Quorum, healing
    and commits stay torchft's. A scheme is asked for that keeps nothing from round to round, since the replicas of a
    quorum are others from time to time and torchft may discard a step: such as ``named("identity", values="eden-1")``.

    Parameters
    ----------
    scheme : Scheme
        The same at all replicas.
    pg : torchft.process_group.ProcessGroup, optional
        The group inside; by default gloo.
    small : int, default 1024
        Tensors of fewer entries go whole.
    seed : int, default 0
    timeout : timedelta, default 60 s
        Of the default group inside.

    Attributes
    ----------
    sent, dense : int
        Bytes of this replica's payloads so far, and what the tensors themselves have.
    """

    def __init__(
        self,
        scheme: Scheme,
        pg: ProcessGroup | None = None,
        small: int = SMALL,
        seed: int = 0,
        timeout: timedelta = timedelta(seconds=60),
    ) -> None:
        super().__init__(timeout, ProcessGroupGloo(timeout=timeout) if pg is None else pg)
        self._inside, self._scheme = self._pg, scheme
        self._small, self._seed = whole(small, "small", 1), whole(seed, "seed", 0)
        down_run(Run(scheme, self._small), scheme)  # refuses memories, plans and references
        if scheme.node_state or scheme.decoder.adapts:
            raise IncompatibleScheme(
                "replicas of a quorum come and go, so that the scheme must keep nothing from round to round; use such "
                'as named("identity", values="eden-1") or Scheme(RandK(0.5), values="eden-1")'
            )
        self._member, self._members, self._round = 0, 1, 0
        self.sent = self.dense = 0

    def configure(
        self,
        store_addr: str,
        replica_id: str,
        rank: int,
        world_size: int,
        quorum_id: int | None = None,
        *more: Any,
        **named: Any,
    ) -> None:
        """A new quorum: the rounds of each have numbers of their own, which all of its replicas count alike."""
        super().configure(store_addr, replica_id, rank, world_size, quorum_id, *more, **named)
        self._round = (quorum_id or 0) % (1 << 30) << 32
        self._member, self._members = rank, world_size

    def allreduce(self, tensors: list[Tensor], opts: Any) -> dist.Work:
        """As of any group, but for the bytes."""
        operation = getattr(opts, "reduceOp", opts)
        (tensor, *others) = tensors
        small = tensor.numel() < self._small or not tensor.is_floating_point()
        if others or small or operation != dist.ReduceOp.SUM:
            work: dist.Work = super().allreduce(tensors, opts)
            return work
        self._sum(tensor)
        return _Done(tensors)

    @torch.no_grad()
    def _sum(self, tensor: Tensor) -> None:
        round, self._round = self._round, self._round + 1
        run = Run(self._scheme, tensor.numel(), self._seed)
        vector = tensor.detach().reshape(-1).to("cpu", torch.float32).numpy()
        blob = Client(run, str(self._member)).encode(vector, round)
        server = Server(run, round=round)
        for member, each in enumerate(self._gathered(blob, run.payload_bytes)):
            server.accept(str(member), each)
        mean = server.close_round().mean * self._members
        tensor.copy_(torch.from_numpy(mean.astype(np.float32)).view(tensor.shape))
        self.sent, self.dense = self.sent + len(blob), self.dense + tensor.nbytes

    def _gathered(self, blob: bytes, most: int) -> list[bytes]:
        """The payloads of all replicas; one collective, in which each takes the room of the longest possible."""
        told = len(blob).to_bytes(LENGTH, "little") + blob
        mine = torch.frombuffer(bytearray(told.ljust(LENGTH + most, b"\0")), dtype=torch.uint8)
        every = [torch.empty_like(mine) for _ in range(self._members)]
        self._inside.allgather([every], [mine], AllgatherOptions()).wait()
        found = []
        for each in every:
            content = each.numpy().tobytes()
            length = int.from_bytes(content[:LENGTH], "little")
            if length > most:
                raise MalformedPayload(f"a replica announces {length} bytes, where {most} is the most")
            found.append(content[LENGTH : LENGTH + length])
        return found


class _Done(dist.Work):  # type: ignore[misc]
    """Work that is done."""

    def __init__(self, result: list[Tensor]) -> None:
        super().__init__()
        self._future: torch.futures.Future[list[Tensor]] = torch.futures.Future()
        self._future.set_result(result)

    def wait(self, timeout: timedelta | None = None) -> bool:
        return True

    def get_future(self) -> torch.futures.Future[list[Tensor]]:
        return self._future
