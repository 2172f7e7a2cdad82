"""What a node and the service say to each other: paths, and what is in the answers."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sparsemean import errors
from sparsemean._types import Floats
from sparsemean.errors import MalformedPayload, PayloadError, SparseMeanError
from sparsemean.results import Receipt

RUN, ROUND, PAYLOAD, MEAN = "/v1/run", "/v1/round", "/v1/payload", "/v1/mean"
ADMIN = "/v1/admin"
WEIGHT = "Sparsemean-Weight"
"""The header with a node's own weight, where the operator lets nodes say it."""
MEAN_ROUND = "Sparsemean-Round"
"""The header with the round that a mean is of."""
LONGEST_WAIT = 50.0
"""Seconds that the service lets a question about the next round wait; proxies end what takes a minute."""


class NotAdmitted(SparseMeanError):
    """The service does not know this credential, or does not allow this to its holder."""


class NoLongerKept(SparseMeanError):
    """The service had the mean of this round, and has dropped it for want of room."""


class Unreachable(SparseMeanError):
    """The service did not answer within the time that was given to it."""


@dataclass(frozen=True, slots=True)
class OpenRound:
    """The open round as one node is told of it.

    Attributes
    ----------
    number : int
    run : str
        Digest of the run; another one than before means that the operator began a new run.
    plan, sketch : bytes
        What ``Client.encode`` takes; empty where the scheme has no use for it.
    reference : str
        ETag of the mean that payloads may be relative to; empty where there is none.
    came : bool
        Whether the service has this node's payload already.
    paused : bool
        Whether the operator has stopped the rounds for now.
    """

    number: int
    run: str
    plan: bytes = b""
    sketch: bytes = b""
    reference: str = ""
    came: bool = False
    paused: bool = False

    def to_json(self) -> dict[str, Any]:
        """As plain JSON; bytes are in base64."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return {n: base64.b64encode(v).decode() if isinstance(v, bytes) else v for n, v in told.items()}

    @staticmethod
    def from_json(told: Mapping[str, Any]) -> OpenRound:
        """What ``to_json`` said; ``MalformedPayload`` where it cannot have."""
        try:
            types = {"number": int, "run": str, "reference": str, "came": bool, "paused": bool}
            found: dict[str, Any] = {name: told[name] for name in types}
            if any(type(found[name]) is not kind for name, kind in types.items()):
                raise TypeError
            found |= {name: base64.b64decode(told[name], validate=True) for name in ("plan", "sketch")}
        except (KeyError, TypeError, ValueError):
            raise MalformedPayload("the service's answer about the round is not what a service of ours says") from None
        return OpenRound(**found)


@dataclass(frozen=True, slots=True)
class Heard:
    """A mean as the service broadcast it.

    Attributes
    ----------
    round : int
        The round that it is of.
    mean : (d,) float32 array
    etag : str
        What the service calls it.
    """

    round: int
    mean: Floats
    etag: str


def receipt_json(receipt: Receipt) -> dict[str, Any]:
    """A receipt as plain JSON."""
    return asdict(receipt)


def receipt_of(told: Any) -> Receipt:
    """The receipt in an answer."""
    try:
        receipt = Receipt(**told)
        if (type(receipt.node), type(receipt.round), type(receipt.digest)) == (str, int, str):
            return receipt
    except TypeError:
        pass
    raise MalformedPayload("the service's answer is not a receipt")


def refusal_json(error: SparseMeanError) -> dict[str, str]:
    """An error as plain JSON: its name in this library, and the reason."""
    return {"error": type(error).__name__, "why": str(error)}


def refusal_of(body: bytes, status: int) -> SparseMeanError:
    """The error in an answer, as the library's own class of that name."""
    try:
        told = json.loads(body)
        name, why = str(told["error"]), str(told["why"])
    except (ValueError, TypeError, KeyError):
        name, why = "", f"the service answered {status} {body[:200]!r}"
    own = {each.__name__: each for each in (NotAdmitted, NoLongerKept, Unreachable)}
    known = own.get(name, getattr(errors, name, None))
    found = known if isinstance(known, type) and issubclass(known, SparseMeanError) else PayloadError
    return found(why)


def etag_of(frame: bytes) -> str:
    """The name of a broadcast mean: a digest of its bytes, in quotes as HTTP has it."""
    return f'"{hashlib.blake2b(frame, digest_size=12).hexdigest()}"'
