"""The rounds of workers around a hub: what each side does and says, whatever carries the bytes."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsemean._types import Floats
from sparsemean.client import Client
from sparsemean.encoders import Identity
from sparsemean.errors import IncompatibleScheme, MalformedPayload, OutOfStep, SparseMeanError
from sparsemean.integrations.torch_outer.tensors import array_in, bytes_in, optional_tensor, tensor_of
from sparsemean.memory import Nothing
from sparsemean.results import Estimate, Receipt
from sparsemean.run import Run
from sparsemean.schemes import Scheme
from sparsemean.server import Server

SENDER = "broadcast"
_CALL = struct.Struct("<QH")  # round, length of the plan
_ANSWER = struct.Struct("<BB")  # lengths of the digest and of the refusal
LONGEST_REFUSAL = 255

log = logging.getLogger("sparsemean.torch_outer")


@dataclass(frozen=True, slots=True)
class Call:
    """What a worker is told of the open round."""

    round: int
    plan: bytes = b""
    sketch: bytes = b""

    def packed(self) -> bytes:
        return _CALL.pack(self.round, len(self.plan)) + self.plan + self.sketch

    @staticmethod
    def unpacked(blob: bytes) -> Call:
        try:
            round, length = _CALL.unpack_from(blob)
        except struct.error:
            raise MalformedPayload("what rank 0 says of the round is cut short") from None
        rest = blob[_CALL.size :]
        return Call(round, rest[:length], rest[length:])


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a worker's payload: the digest of its receipt, or why it was refused; neither if it sent none."""

    digest: str = ""
    refusal: str = ""

    def packed(self) -> bytes:
        digest, refusal = self.digest.encode(), self.refusal.encode()[:LONGEST_REFUSAL]
        return _ANSWER.pack(len(digest), len(refusal)) + digest + refusal

    @staticmethod
    def unpacked(blob: bytes) -> tuple[Answer, bytes]:
        """The answer, and what stands behind it."""
        try:
            digest, refusal = _ANSWER.unpack_from(blob)
            ends = _ANSWER.size + digest, _ANSWER.size + digest + refusal
            told = blob[_ANSWER.size : ends[0]].decode(), blob[ends[0] : ends[1]].decode(errors="replace")
        except (struct.error, UnicodeDecodeError):
            raise MalformedPayload("rank 0's answer is cut short") from None
        return Answer(*told), blob[ends[1] :]


def down_run(run: Run, down: Scheme | None) -> Run:
    """The run by which the mean goes back to the workers: one sender, float32 where nothing else is asked for."""
    scheme = Scheme(Identity()) if down is None else down
    facts = scheme.encoder.facts
    if not isinstance(scheme.memory, Nothing) or facts.planned or facts.relative or facts.in_step:
        raise IncompatibleScheme(
            "the mean goes back by a scheme that a worker can read without having heard the rounds before: without "
            'memory or plan, such as named("identity", values="eden-1") or named("error-feedback-chunked-top-k", k=…)'
        )
    return Run(scheme, run.dim, run.seed)


def heard(down: Run, round: int, frame: bytes) -> tuple[Floats, Receipt]:
    """The mean in a frame, and a receipt for it: the same bits wherever it is read."""
    server = Server(down, round=round)
    receipt = server.accept(SENDER, frame)
    return server.close_round().mean.astype(np.float32), receipt


class Member:
    """A worker's side: movements become payloads, frames become means.

    Parameters
    ----------
    run, down : Run
        That of the payloads, and that of the means.
    name : str
        Who this is.
    """

    def __init__(self, run: Run, down: Run, name: str) -> None:
        self.run, self.down = run, down
        self.client = Client(run, name)
        self.last: Floats | None = None  # the mean heard last, where payloads may be relative to it

    def encode(self, movement: Floats, call: Call) -> bytes:
        """The payload of the round."""
        plan = call.plan if self.run.planned else None
        return self.client.encode(movement, call.round, plan, self.last if self.run.relative else None, call.sketch)

    def answered(self, round: int, answer: Answer) -> None:
        """Move this worker's state on, if the hub has its payload."""
        if answer.digest:
            self.client.delivered(Receipt(self.client.node, round, answer.digest))
        elif answer.refusal:
            log.warning("round %d goes without %r: %s", round, self.client.node, answer.refusal)
            if answer.refusal.startswith(OutOfStep.__name__):
                self.client.reset()

    def hear(self, round: int, frame: bytes) -> Floats:
        """The mean of the round."""
        mean, _ = heard(self.down, round, frame)
        self.last = mean if self.run.relative else None
        return mean

    def state_dict(self) -> dict[str, Any]:
        return {"client": tensor_of(self.client.save()), "last": optional_tensor(self.last)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.client = Client.restore(self.run, self.client.node, bytes_in(state["client"]))
        self.last = array_in(state["last"], self.run.dim)


class Hub:
    """The server's side: calls the workers of a round, takes what they send, and says the mean.

    Parameters
    ----------
    run, down : Run
        As in ``Member``.
    minimum : int, default 1
        Fewer workers never make a mean.
    round : int, default 0
        The first round.
    """

    def __init__(self, run: Run, down: Run, minimum: int = 1, round: int = 0) -> None:
        self.run, self.down, self.minimum = run, down, minimum
        self.server = Server(run, round=round)
        self.last: Floats | None = None
        self.estimate: Estimate | None = None
        self._speaker = Client(down, SENDER)

    @property
    def round(self) -> int:
        """The open round."""
        return self.server.round

    def call(self, names: Iterable[str]) -> dict[str, Call]:
        """What each of these workers is told of the open round; the draw is balanced over them."""
        if self.run.relative and self.last is not None:
            self.server.refer_to(self.last)  # what workers heard, which may be coarser than what was estimated
        round, plans = self.round, self.server.plans(names)
        return {name: Call(round, plan, self.server.sketch(name)) for name, plan in plans.items()}

    def accept(self, name: str, blob: bytes) -> Answer:
        """Take a payload; an empty one says that the worker is not in this round."""
        try:
            return Answer(self.server.accept(name, blob).digest) if blob else Answer()
        except SparseMeanError as refused:
            return Answer(refusal=f"{type(refused).__name__}: {refused}")

    def close(self) -> tuple[bytes, Floats]:
        """End the round: the frame for the workers, and the mean that it says; ``TooFewNodes`` leaves it open."""
        round = self.round
        self.estimate = self.server.close_round(self.minimum)
        frame = self._speaker.encode(self.estimate.mean, round)
        mean, receipt = heard(self.down, round, frame)
        self._speaker.delivered(receipt)
        self.last = mean if self.run.relative else None
        return frame, mean

    def state_dict(self) -> dict[str, Any]:
        return {
            "server": tensor_of(self.server.save()),
            "speaker": tensor_of(self._speaker.save()),
            "last": optional_tensor(self.last),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.server = Server(self.run)
        self.server.restore(bytes_in(state["server"]))
        self._speaker = Client.restore(self.down, SENDER, bytes_in(state["speaker"]))
        self.last = array_in(state["last"], self.run.dim)
