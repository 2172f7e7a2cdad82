"""GroupLink: workers of a torch.distributed process group, around the one of rank 0."""

from __future__ import annotations

import logging
import struct
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from sparsemean._types import Floats
from sparsemean.errors import InvalidInput, MalformedPayload, TooFewNodes
from sparsemean.inputs import LONGEST_NAME, node_name
from sparsemean.integrations.torch_outer.hub import LONGEST_REFUSAL, Answer, Call, Hub, Member, down_run
from sparsemean.integrations.torch_outer.link import Link, LinkBroken
from sparsemean.integrations.torch_outer.optimiser import OuterSGD, Position
from sparsemean.integrations.torch_outer.tensors import WRONG
from sparsemean.run import Run
from sparsemean.schemes import Scheme
from sparsemean.theory.arguments import whole

_WORKER = struct.Struct(f"<16s8s8s8sQQ?H{LONGEST_NAME}s")
MOST_PLAN = 1 << 16

log = logging.getLogger("sparsemean.torch_outer")


class _Worker(NamedTuple):
    """What a worker says of itself when it joins."""

    position: bytes
    settings: bytes
    run: bytes
    down: bytes
    round: int
    step: int
    last: bool  # whether it has heard the last mean
    name: str


class GroupLink(Link):
    """Movements go to rank 0 of a process group, which has the ``Server``; the mean goes back from there.

    A worker that dies is left out from then on: the others go on without it, as long as rank 0 lives and ``minimum``
    workers are left. It comes back with a new group of all of them (``bind``, then ``join`` at every worker). A worker
    that is alive but silent for longer than the group's timeout breaks the group, as with any collective.

    Parameters
    ----------
    scheme : Scheme
        How movements travel.
    down : Scheme, optional
        How the mean travels back: by default as float32. Error feedback suits it, since all workers apply what was
        sent: ``named("error-feedback-chunked-top-k", k=1 / 64, values="2-bit")``.
    group : ProcessGroup, optional
        Of workers alone, one rank each; its backend carries tensors of the CPU (gloo). By default all ranks.
    name : str, optional
        What rank 0 remembers this worker by; by default its rank. Give one where ranks may change.
    minimum : int, default 1
        With fewer workers in a round ``LinkBroken`` is raised; that of rank 0 counts, and may be changed.
    seed : int, default 0
        Of the run; the same at all workers.
    """

    def __init__(
        self,
        scheme: Scheme,
        down: Scheme | None = None,
        group: dist.ProcessGroup | None = None,
        name: str | None = None,
        minimum: int = 1,
        seed: int = 0,
    ) -> None:
        for given in (scheme, down):
            if not isinstance(given, Scheme | None) or scheme is None:
                raise InvalidInput(f'a link takes a Scheme, such as named("auto", bytes=70_000); got {given!r:.100}')
        self._scheme, self._down, self._seed = scheme, down, seed
        self.minimum = whole(minimum, "minimum", 1)
        self._name = None if name is None else node_name(name)
        self._hub: Hub | None = None
        self._workers: Sequence[_Worker] = ()
        self._live: list[int] = []
        self.bind(group)

    def bind(self, group: dist.ProcessGroup | None = None) -> None:
        """Use this group from now on; ``OuterMean.join`` has to be called after it, by every worker."""
        if not dist.is_initialized():
            raise InvalidInput("there is no process group yet; call torch.distributed.init_process_group first")
        found = dist.group.WORLD if group is None else group
        if found is None or dist.get_rank(found) < 0:
            raise InvalidInput("this rank is not in the group; make the link at the ranks that lead a worker alone")
        if "gloo" not in str(dist.get_backend_config(found)):
            raise InvalidInput('the group carries no tensors of the CPU; make one with dist.new_group(backend="gloo")')
        # Kept alive it would outlive destroy_process_group(), and with it the store in which the next group of the same
        # address would look for the workers, and find where they were.
        self._group, self.rank, self._live = weakref.ref(found), dist.get_rank(found), []

    @property
    def group(self) -> dist.ProcessGroup:
        """That of the workers."""
        found = self._group()
        if found is None:
            raise InvalidInput("the process group was destroyed; make a new one, bind() the link to it, and join()")
        return found

    @property
    def live(self) -> tuple[str, ...]:
        """The names of the workers that rank 0 reaches; at other ranks those that joined."""
        return tuple(self._workers[rank].name for rank in self._live)

    @property
    def hub(self) -> Hub:
        """The server's side, at rank 0."""
        if self._hub is None:
            raise InvalidInput("rank 0 has the server, once it has joined")
        return self._hub

    def open(self, start: Position, settings: bytes, seed: int) -> None:
        self.run = Run(self._scheme, start.at.size, self._seed)
        self.down = down_run(self.run, self._down)
        self._settings = settings
        self._member = Member(self.run, self.down, str(self.rank) if self._name is None else self._name)

    def join(self, position: Position, optimiser: OuterSGD) -> bool:
        workers = self._introduced(position)
        first = max(range(len(workers)), key=lambda rank: (workers[rank].round, -rank))
        ahead, mine = workers[first], workers[self.rank]
        self._workers, self._live = workers, list(range(len(workers)))
        changed = mine.position != ahead.position
        if any(worker.position != ahead.position for worker in workers):
            self._share(position, first, ahead, changed)
        if self.rank == 0 and (self._hub is None or self._hub.round != ahead.round):
            self._hub = Hub(self.run, self.down, self.minimum, ahead.round)
            self._hub.last = self._member.last
            fresh = True
        else:
            fresh = False
        if self._broadcast(torch.tensor([fresh]), 0).item() and self.run.in_step:
            self._member.client.reset()  # the server that knew this worker's state is gone
        return changed

    def _introduced(self, position: Position) -> list[_Worker]:
        """What all workers say of themselves, which has to fit together."""
        name, last = self._member.client.node.encode(), self._member.last is not None
        runs = self._settings, self.run.run_digest, self.down.run_digest
        told = _WORKER.pack(position.digest(), *runs, position.round, position.step, last, len(name), name)
        mine = torch.frombuffer(bytearray(told), dtype=torch.uint8)
        every = [torch.empty_like(mine) for _ in range(dist.get_world_size(self.group))]
        self._reached(lambda: dist.all_gather(every, mine, group=self.group))
        workers = []
        for each in every:
            *facts, length, text = _WORKER.unpack(each.numpy().tobytes())
            workers.append(_Worker._make([*facts, text[:length].decode()]))
        for what, remedy in (
            ("settings", "the same model and outer optimiser"),
            ("run", "the same scheme and seed"),
            ("down", "the same scheme for the way back"),
        ):
            differ = [each.name for each in workers if getattr(each, what) != getattr(workers[0], what)]
            if differ:
                raise InvalidInput(f"workers {', '.join(differ)} differ from {workers[0].name}; give all {remedy}")
        if len({each.name for each in workers}) < len(workers):
            raise InvalidInput("two workers have the same name; give each GroupLink(…, name=…) another one")
        return workers

    def _share(self, position: Position, first: int, ahead: _Worker, changed: bool) -> None:
        """Everybody's broadcast becomes that of the worker who is ahead."""
        for array in (position.at, position.velocity):
            if array.size:
                found = self._broadcast(torch.from_numpy(array.copy()), first)
                if changed:
                    array[:] = found.numpy()
        if ahead.last:
            held = self._member.last
            found = self._broadcast(torch.from_numpy(position.at.copy() if held is None else held.copy()), first)
            self._member.last = found.numpy().copy()
        elif changed:
            self._member.last = None
        if changed:
            position.round, position.step = ahead.round, ahead.step

    def exchange(self, round: int, movement: Floats | None) -> list[Floats | None]:
        _ = self.group  # refused where it was destroyed, before anything changes
        if not self._live:
            raise LinkBroken("this worker is in no round of the group; call join(), as all workers have to")
        try:
            return [self._lead(movement) if self.rank == 0 else self._follow(round, movement)]
        except LinkBroken:
            self._live = []
            raise

    def _lead(self, movement: Floats | None) -> Floats:
        """Rank 0's part of a round."""
        hub, round = self.hub, self.hub.round
        hub.minimum = self.minimum
        calls = hub.call(self.live)
        called = self._all_reached({rank: calls[self._workers[rank].name].packed() for rank in self._live[1:]})
        own = self._workers[0].name
        blob = b"" if movement is None else self._member.encode(movement, calls[own])
        answer, answers = hub.accept(own, blob), {}
        for rank in called:
            try:
                blob = self._receive(rank, self.run.payload_bytes)
            except (RuntimeError, MalformedPayload) as gone:
                self._lose(rank, gone)
            else:
                answers[rank] = hub.accept(self._workers[rank].name, blob).packed()
        try:
            frame, mean = hub.close()
        except TooFewNodes as few:
            self._all_reached(dict.fromkeys(answers, b""))
            raise LinkBroken(f"{few}; connect the workers anew, and join()") from None
        self._member.answered(round, answer)
        self._all_reached({rank: told + frame for rank, told in answers.items()})
        self.sent, self.received = self.sent + len(blob), self.received + len(frame)
        self._member.last = mean if self.run.relative else None
        return mean

    def _follow(self, round: int, movement: Floats | None) -> Floats:
        """Another rank's part of a round."""
        call = self._reached(lambda: Call.unpacked(self._receive(0, MOST_PLAN + self.run.dim)))
        if call.round != round:
            raise LinkBroken(f"rank 0 is at round {call.round}, this worker at {round}; call join() at all workers")
        blob = b"" if movement is None else self._member.encode(movement, call)
        self._reached(lambda: self._send(0, blob))
        most = 2 * LONGEST_REFUSAL + self.down.payload_bytes
        told = self._reached(lambda: self._receive(0, most))
        if not told:
            raise LinkBroken("too few workers came for a mean; connect the workers anew, and join()")
        answer, frame = Answer.unpacked(told)
        self._member.answered(round, answer)
        self.sent, self.received = self.sent + len(blob), self.received + len(frame)
        return self._member.hear(round, frame)

    def _all_reached(self, told: dict[int, bytes]) -> list[int]:
        """Send to several workers at the same time; returns whom it reached."""
        begun: list[tuple[int, list[Any]]] = []
        for rank, blob in told.items():
            try:
                begun.append((rank, [dist.isend(each, self._global(rank), self.group) for each in _message(blob)]))
            except RuntimeError as gone:
                self._lose(rank, gone)
        reached = []
        for rank, works in begun:
            try:
                for work in works:
                    work.wait()
                reached.append(rank)
            except RuntimeError as gone:
                self._lose(rank, gone)
        return reached

    def _lose(self, rank: int, why: Exception) -> None:
        if rank in self._live:
            self._live.remove(rank)
            log.warning("worker %r is gone: %s", self._workers[rank].name, str(why).splitlines()[0][:200])

    def _send(self, rank: int, blob: bytes) -> None:
        for each in _message(blob):
            dist.send(each, self._global(rank), self.group)

    def _receive(self, rank: int, most: int) -> bytes:
        length = torch.empty(1, dtype=torch.int64)
        dist.recv(length, self._global(rank), self.group)
        size = int(length.item())
        if not 0 <= size <= most:
            raise MalformedPayload(f"rank {rank} announces {size} bytes, where {most} is the most")
        blob = torch.empty(size, dtype=torch.uint8)
        if size:
            dist.recv(blob, self._global(rank), self.group)
        return blob.numpy().tobytes()

    def _broadcast(self, tensor: Tensor, source: int) -> Tensor:
        self._reached(lambda: dist.broadcast(tensor, self._global(source), group=self.group))
        return tensor

    def _global(self, rank: int) -> int:
        return dist.get_global_rank(self.group, rank)

    def _reached(self, work: Callable[[], Any]) -> Any:
        """Do this, which needs another rank to be there."""
        try:
            return work()
        except RuntimeError as gone:
            raise LinkBroken(
                f"the process group no longer works ({str(gone).splitlines()[0][:200]}); make a new one of the workers "
                "that are left, bind() the link to it, and join()"
            ) from None

    def state_dict(self) -> dict[str, Any]:
        """This worker's state and, at rank 0, the server's."""
        return {"member": self._member.state_dict(), "hub": None if self._hub is None else self._hub.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        try:
            hub, member = None, Member(self.run, self.down, self._member.client.node)
            member.load_state_dict(state["member"])
            if state["hub"] is not None and self.rank == 0:
                hub = Hub(self.run, self.down, self.minimum)
                hub.load_state_dict(state["hub"])
        except (KeyError, TypeError) as error:
            raise InvalidInput(f"{WRONG}: {error} is missing") from None
        self._member, self._hub = member, hub


def _message(blob: bytes) -> list[Tensor]:
    """What travels: a length, and so many bytes."""
    length = torch.tensor([len(blob)])
    return [length, torch.frombuffer(bytearray(blob), dtype=torch.uint8)] if blob else [length]
