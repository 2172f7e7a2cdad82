"""Client: a node's side of a run."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsemean import codec
from sparsemean._types import Floats
from sparsemean.client.saved_state import packed, unpacked
from sparsemean.codec import Known, next_basis
from sparsemean.encoders import Encoder, State, Stateful
from sparsemean.encoders.relative import REFERENCE
from sparsemean.errors import InvalidInput, OutOfStep, PayloadError
from sparsemean.inputs import LONGEST_NAME, node_name, round_number, vector_of
from sparsemean.payload import Payload
from sparsemean.results import Receipt
from sparsemean.run import Run
from sparsemean.sampling import Plan
from sparsemean.schemes import outline, shortened
from sparsemean.wire.plan import MOST_BYTES
from sparsemean.wire.secret import Secret

HEADER_MOST = 16 + 1 + LONGEST_NAME  # digest of the run, name of the node
LAST_MOST = 19 + 1 + 32  # round, digest of the vector


@dataclass(frozen=True, slots=True)
class _Sent:
    """A payload that waits for its receipt, or the last one that got it."""

    round: int
    vector: str
    blob: bytes
    state: State
    plan: Plan | None
    basis: int


class Client:
    """Turns this node's vectors into payloads. Only stateful encoders keep anything here.

    Parameters
    ----------
    run : Run
        What nodes and server agree on.
    node : str
        The name that the server knows this node by, up to 256 bytes in UTF-8.
    encoder : Encoder, optional
        Which of the run's encoders this node uses, where the scheme has a ``OneOf``; by default the first. The draw,
        which all have in common, may be left out.
    secret : bytes, optional
        16 to 32 bytes that the server knows of this node too (``Server(…, secrets=…)``): compact frames then prove
        who made them. It is not in what ``save`` returns.

    >>> from sparsemean.schemes import named
    >>> client = Client(Run(named("rand-k", k=2), dim=5, seed=7), "station-12")
    >>> len(client.encode([1, 2, 3, 4, 5], round=0))
    72
    """

    def __init__(self, run: Run, node: str, encoder: Encoder | None = None, secret: bytes | None = None) -> None:
        self.run = run
        self.node = node_name(node)
        self._secret = Secret(secret)
        if secret is not None:
            codec.check_authenticates(run)
        self.choice = 0 if encoder is None else run.choice(encoder)
        self.reset()

    def __repr__(self) -> str:
        """The node, its scheme, and what waits for a receipt; not the seed."""
        waiting = "" if self._waiting is None else f"; round {self._waiting.round} waits for its receipt"
        return f"<Client {shortened(repr(self.node))}: {outline(self.run.scheme)}, dim {self.run.dim}{waiting}>"

    @property
    def encoder(self) -> Encoder:
        """What this node encodes with."""
        return self.run.encoders[self.choice]

    def reset(self) -> None:
        """Forget all state; the server starts this node afresh with the next payload."""
        encoder = self.run.options[0].encoders[self.choice]  # all options of Auto have the same state
        self._state: State = encoder.start(self.run.dim) if isinstance(encoder, Stateful) else {}
        self._basis = 0
        self._waiting: _Sent | None = None
        self._delivered: _Sent | None = None

    def encode(
        self,
        vector: npt.ArrayLike,
        round: int,
        plan: bytes | None = None,
        reference: npt.ArrayLike | None = None,
        sketch: bytes = b"",
    ) -> bytes:
        """The payload for this round. The same vector gives the same bytes, also after it was delivered.

        Parameters
        ----------
        vector : (d,) array
        round : int
            The server's open round.
        plan : bytes, optional
            What ``server.plan(node)`` returned in this round. Only designed draws, such as ``Balanced()``, need one,
            unless the run lists all ``nodes``.
        reference : (d,) array, optional
            With a ``Relative`` encoder, the last mean that the server broadcast: ``server.reference``, or
            ``estimate.mean``, of which float32 is taken. None where the node has not heard it.
        sketch : bytes, optional
            With modulo values, what ``server.sketch(node)`` returned in this round. Without it, or where it is of
            another round, values are as coarse as those of other kinds.
        """
        checked, round = vector_of(vector, self.run.dim), round_number(round)
        terms = self._terms(round, plan)
        run, told = self.run.followed(terms), codec.unpack_sketch(self.run, sketch)
        encoder, key = run.encoders[self.choice], run.key(self.node, round, terms)
        if not isinstance(encoder, Stateful):
            common = None if reference is None else self._reference(reference)
            common = common if run.relative else None  # where this round's option has no use for it
            payload = encoder.encode(checked, key, {} if common is None else {REFERENCE: common})
            return self._pack(payload, round, terms, 0 if common is None else codec.reference_tag(common), told)
        if reference is not None:
            self._reference(reference)  # which is refused
        digest = hashlib.blake2b(checked.tobytes(), digest_size=16).hexdigest()
        if self._delivered is not None and round <= self._delivered.round:
            if (round, digest) == (self._delivered.round, self._delivered.vector):
                return self._delivered.blob
            raise InvalidInput(
                f"round {self._delivered.round} was delivered, and the node's state moved on; use a later round"
            )
        basis = self._basis if self.run.in_step else 0
        blob = self._pack(encoder.encode(checked, key, self._state), round, terms, basis)
        known = Known(round, () if terms is None else (terms,), basis, self._secret)
        header, body = codec.open_frame(self.run, self.node, blob, known)
        as_decoded = codec.read_payload(self.run, self.node, header, body, terms)
        self._waiting = _Sent(round, digest, blob, encoder.advance(checked, as_decoded, self._state), terms, basis)
        return blob

    def _reference(self, reference: npt.ArrayLike) -> Floats:
        if not self.run.relative:
            raise InvalidInput(
                f"{self.encoder!r} sends no differences to a reference; encode without reference=, or use "
                + ('node="broadcast"' if self.run.auto else "Relative")
            )
        try:
            with np.errstate(over="ignore"):
                single = vector_of(reference, self.run.dim).astype(np.float32)
        except InvalidInput as wrong:
            raise InvalidInput(f"reference=: {wrong}") from None
        if not np.isfinite(single).all():
            raise InvalidInput("reference=: a number is beyond float32, so no server has it; encode without")
        return single

    def _terms(self, round: int, plan: bytes | None) -> Plan | None:
        """The plan to follow: that of the server or, where the run lists all nodes, that of its list."""
        if not self.run.planned:
            if plan:
                raise InvalidInput(f"{self.encoder!r} follows no plan; encode without one")
            return None
        if plan is not None:
            if not isinstance(plan, bytes | bytearray | memoryview):
                raise InvalidInput(f"a plan is the bytes that server.plan(node) returned, not {plan!r:.100}")
            return codec.unpack_plan(self.run, self.node, round, bytes(plan))
        if not self.run.nodes or self.run.auto:
            raise InvalidInput(
                f"{self.encoder!r} needs a plan: encode(vector, round, plan=server.plan({self.node!r}))"
                + (", or Run(…, nodes=[…]) with the names of all nodes" if not self.run.auto else "")
            )
        return self.run.listed_plan(self.node, round)

    def delivered(self, receipt: Receipt) -> None:
        """Move the state on: the server has the payload of this receipt. Nothing happens for stateless encoders."""
        if not isinstance(receipt, Receipt):
            raise InvalidInput(f"delivered() takes the Receipt that server.accept returned, not {receipt!r:.100}")
        if not self.run.scheme.node_state:
            return
        if self._delivered is not None and receipt.digest == codec.frame_digest(self.run, self._delivered.blob):
            return
        waiting = None if self._waiting is None else codec.frame_digest(self.run, self._waiting.blob)
        if self._waiting is None or (receipt.node, receipt.digest) != (self.node, waiting):
            raise OutOfStep(
                f"the receipt is not for the payload {self.node!r} encoded last; encode that round again, or reset()"
            )
        self._state = self._waiting.state
        self._basis = next_basis(self._basis, self._waiting.blob)
        self._delivered, self._waiting = self._waiting, None

    def _pack(
        self, payload: Payload | None, round: int, plan: Plan | None, basis: int, sketch: Floats | None = None
    ) -> bytes:
        if payload is not None:
            payload = replace(payload, choice=self.choice)
        return codec.pack(self.run, self.node, round, payload, basis, plan, sketch, self._secret)

    def save(self) -> bytes:
        """All state as bytes, for ``restore``; a payload that waits for its receipt is encoded anew instead."""
        last = self._delivered
        text = "" if last is None else f"{last.round} {last.vector}"
        plan = b""
        if last is not None and last.plan is not None:
            plan = codec.pack_plan(self.run, self.node, last.round, last.plan)
        return packed(
            {
                "header": np.frombuffer(self._header(), np.uint8),
                "choice": np.array(self.choice, np.uint8),
                "basis": np.array(self._basis, np.uint32),
                "last": np.frombuffer(text.encode(), np.uint8),
                "blob": np.frombuffer(b"" if last is None else last.blob, np.uint8),
                **({"plan": np.frombuffer(plan, np.uint8)} if self.run.planned else {}),
                **self._before(0 if last is None else last.basis),
                **{f"state_{name}": array for name, array in self._state.items()},
            }
        )

    def _header(self) -> bytes:
        return f"{self.run.digest} {self.node}".encode()

    def _before(self, basis: int) -> dict[str, npt.NDArray[Any]]:
        """The basis of the payload delivered last, which a compact frame does not say."""
        return {} if self.run.compact is None else {"before": np.array(basis, np.uint32)}

    @staticmethod
    def restore(run: Run, node: str, saved: bytes, secret: bytes | None = None) -> Client:
        """The client that ``save`` wrote, in the same run and for the same node.

        The bytes may come from anywhere: what ``save`` cannot have written is refused with ``InvalidInput``, and sizes
        are checked against those of this run before anything is allocated.
        """
        client = Client(run, node, secret=secret)
        header = client._header()
        like: dict[str, npt.NDArray[Any]] = {
            "choice": np.array(0, np.uint8),
            "basis": np.array(0, np.uint32),
            **client._before(0),
            **{f"state_{name}": array for name, array in client._state.items()},
        }
        try:
            texts = {"header": HEADER_MOST, "last": LAST_MOST, "blob": run.payload_bytes}
            found = unpacked(saved, like, {**texts, **({"plan": MOST_BYTES} if run.planned else {})})
        except Exception as error:  # zipfile and numpy each fail on damage in many ways of their own
            raise InvalidInput(f"this is not a state written by Client.save: {error}") from None
        choice = int(found["choice"])
        if found["header"].tobytes() != header or choice >= len(run.encoders):
            raise InvalidInput(
                f"the saved state is of another run or node than {node!r}; restore it there, or start afresh"
            )
        state = {name: found[f"state_{name}"] for name in client._state}
        if not all(np.isfinite(array).all() for array in state.values()):
            raise InvalidInput("this is not a state written by Client.save: it holds NaN or infinity; start afresh")
        client._state, client._basis, client.choice = state, int(found["basis"]), choice
        plan = found["plan"].tobytes() if run.planned else b""
        before = int(found["before"]) if "before" in found else 0
        client._delivered = client._last(found["last"].tobytes(), found["blob"].tobytes(), plan, before)
        return client

    def _last(self, text: bytes, blob: bytes, plan: bytes, before: int) -> _Sent | None:
        """The payload delivered last from what ``save`` wrote: round and digest of the vector; bytes; plan; basis."""
        damaged = "this is not a state written by Client.save: what it says of the payload delivered last is wrong"
        if not (text or blob or self._basis):
            return None
        if not self.run.scheme.node_state:
            raise InvalidInput(f"{damaged}, since {self.encoder!r} keeps no state")
        told = re.fullmatch(rb"(0|[1-9][0-9]{0,18}) ([0-9a-f]{32})", text)
        if told is None or not self._basis:
            raise InvalidInput(f"{damaged}; start afresh")
        round = int(told[1])
        try:
            terms = codec.unpack_plan(self.run, self.node, round, plan) if self.run.planned else None
            known = Known(round, () if terms is None else (terms,), before, self._secret)
            header, body = codec.open_frame(self.run, self.node, blob, known)
            if terms is not None:
                codec.followed_plan(self.run, self.node, header, [terms])
            codec.read_payload(self.run, self.node, header, body, terms)
        except (PayloadError, InvalidInput) as error:
            raise InvalidInput(f"{damaged}: {error}") from None
        if header.round != round:
            raise InvalidInput(f"{damaged}: round {round}, but its payload is of round {header.round}")
        return _Sent(round, told[2].decode(), blob, self._state, terms, header.basis)
