"""Client: a node's side of a run."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsemean import codec
from sparsemean.checksum import crc32
from sparsemean.encoders import Encoder, State, Stateful
from sparsemean.errors import InvalidInput, OutOfStep
from sparsemean.inputs import node_name, round_number, vector_of
from sparsemean.payload import Payload
from sparsemean.results import Receipt
from sparsemean.run import Run
from sparsemean.wire.frame import frame_digest


@dataclass(frozen=True, slots=True)
class _Sent:
    """A payload that waits for its receipt, or the last one that got it."""

    round: int
    vector: str
    blob: bytes
    state: State


class Client:
    """Turns this node's vectors into payloads. Only stateful encoders keep anything here.

    ``encoder`` is for schemes with a OneOf: the one this node's link can carry; the first where it is left out.

    >>> from sparsemean.schemes import named
    >>> client = Client(Run(named("rand-k", k=2), dim=5, seed=7), "station-12")
    >>> len(client.encode([1, 2, 3, 4, 5], round=0))
    72
    """

    def __init__(self, run: Run, node: str, encoder: Encoder | None = None) -> None:
        self.run = run
        self.node = node_name(node)
        if encoder is not None and encoder not in run.encoders:
            raise InvalidInput(f"{encoder!r} is none of the run's encoders: {', '.join(map(repr, run.encoders))}")
        self.choice = 0 if encoder is None else run.encoders.index(encoder)
        self.reset()

    @property
    def encoder(self) -> Encoder:
        """What this node encodes with."""
        return self.run.encoders[self.choice]

    def reset(self) -> None:
        """Forget all state; the server starts this node afresh with the next payload."""
        encoder = self.encoder
        self._state: State = encoder.start(self.run.dim) if isinstance(encoder, Stateful) else {}
        self._basis = 0
        self._waiting: _Sent | None = None
        self._delivered: _Sent | None = None

    def encode(self, vector: npt.ArrayLike, round: int) -> bytes:
        """The payload for this round. The same vector gives the same bytes, also after it was delivered."""
        checked, round = vector_of(vector, self.run.dim), round_number(round)
        encoder = self.encoder
        if not isinstance(encoder, Stateful):
            return self._pack(encoder.encode(checked, self.run.key(self.node, round), {}), round)
        digest = hashlib.blake2b(checked.tobytes(), digest_size=16).hexdigest()
        if self._delivered is not None and round <= self._delivered.round:
            if (round, digest) == (self._delivered.round, self._delivered.vector):
                return self._delivered.blob
            raise InvalidInput(
                f"round {self._delivered.round} was delivered, and the node's state moved on; use a later round"
            )
        blob = self._pack(encoder.encode(checked, self.run.key(self.node, round), self._state), round)
        header, body = codec.open_frame(self.run, self.node, blob)
        as_decoded = codec.read_payload(self.run, self.node, header, body)
        self._waiting = _Sent(round, digest, blob, encoder.advance(checked, as_decoded, self._state))
        return blob

    def delivered(self, receipt: Receipt) -> None:
        """Move the state on: the server has the payload of this receipt. Nothing happens for stateless encoders."""
        if not isinstance(self.run.scheme.encoder, Stateful):
            return
        if self._delivered is not None and receipt.digest == frame_digest(self._delivered.blob):
            return
        if self._waiting is None or (receipt.node, receipt.digest) != (self.node, frame_digest(self._waiting.blob)):
            raise OutOfStep(
                f"the receipt is not for the payload {self.node!r} encoded last; encode that round again, or reset()"
            )
        self._state = self._waiting.state
        self._basis = next_basis(self._basis, self._waiting.blob)
        self._delivered, self._waiting = self._waiting, None

    def _pack(self, payload: Payload | None, round: int) -> bytes:
        basis = self._basis if self.run.scheme.encoder.facts.in_step else 0
        if payload is not None:
            payload = replace(payload, choice=self.choice)
        return codec.pack(self.run, self.node, round, payload, basis)

    def save(self) -> bytes:
        """All state as bytes, for ``restore``; a payload that waits for its receipt is encoded anew instead."""
        last = self._delivered
        text = "" if last is None else f"{last.round} {last.vector}"
        header = np.frombuffer(f"{self.run.digest} {self.node}".encode(), np.uint8)
        arrays: dict[str, npt.NDArray[Any]] = {
            "header": header,
            "choice": np.array(self.choice, np.uint8),
            "basis": np.array(self._basis, np.uint32),
            "last": np.frombuffer(text.encode(), np.uint8),
            "blob": np.frombuffer(b"" if last is None else last.blob, np.uint8),
            **{f"state_{name}": array for name, array in self._state.items()},
        }
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        return buffer.getvalue()

    @staticmethod
    def restore(run: Run, node: str, saved: bytes) -> Client:
        """The client that ``save`` wrote, in the same run and for the same node."""
        client = Client(run, node)
        try:
            with np.load(io.BytesIO(saved), allow_pickle=False) as arrays:
                header, last, blob = (arrays[name].tobytes() for name in ("header", "last", "blob"))
                basis, choice = int(arrays["basis"]), int(arrays["choice"])
                state = {name: arrays[f"state_{name}"] for name in client._state}
        except Exception as error:  # zipfile, zlib and numpy each fail on damage in many ways of their own
            raise InvalidInput(f"this is not a state written by Client.save: {error}") from None
        if header != f"{run.digest} {node}".encode() or choice >= len(run.encoders):
            raise InvalidInput(
                f"the saved state is of another run or node than {node!r}; restore it there, or start afresh"
            )
        client._state, client._basis, client.choice = state, basis, choice
        if last:
            round, vector = last.decode().split()
            client._delivered = _Sent(int(round), vector, blob, state)
        return client


def next_basis(basis: int, blob: bytes) -> int:
    """The tag of the state after this payload: a checksum of all payloads since the node began, never 0."""
    return crc32(blob, basis) or 1
