"""Credentials: which node a bearer token or a client certificate stands for. Only hashes of tokens are kept.

A token is ``id.secret``. It is looked up by its id, and the hash of its secret is compared in constant time; one that
is not known costs the same comparison. Secrets are 32 random bytes, so that a plain SHA-256 of them tells nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sparsemean.errors import InvalidInput
from sparsemean.inputs import node_name, weight_of
from sparsemean.integrations.http.messages import NotAdmitted

FORMAT = 1
_NO_HASH = "0" * 64
_DURATION = re.compile(r"([1-9][0-9]{0,4})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True, slots=True)
class Credential:
    """One way in.

    Attributes
    ----------
    id : str
        The public half of a token; of a certificate "cert-" and the node's name.
    node : str
        Whom it stands for.
    hash : str
        SHA-256 of the secret half, in hexadecimal; empty for a certificate.
    weight : float
        With which the node's vectors count.
    created, expires : float
        Seconds since 1970; ``expires`` is None for never.
    revoked : bool
        Kept, so that a list of tokens tells what was.
    """

    id: str
    node: str
    hash: str
    weight: float = 1.0
    created: float = 0.0
    expires: float | None = None
    revoked: bool = False

    @property
    def certificate(self) -> bool:
        """Whether a client certificate of this name is the credential."""
        return not self.hash

    def valid(self, now: float) -> bool:
        """Whether it opens anything."""
        return not self.revoked and (self.expires is None or now < self.expires)


class Tokens:
    """The credentials of a file; nothing of it is written but by ``add``, ``revoke`` and ``rotate``.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.json"
    >>> token = Tokens.create(path).add("station-12", weight=2.0)
    >>> found = Tokens(path).of_token(token)
    >>> found.node, found.weight
    ('station-12', 2.0)
    >>> token in path.read_text()
    False
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._known: dict[str, Credential] = {}
        self.reload()

    @staticmethod
    def create(path: Path | str) -> Tokens:
        """The credentials of this file, which is made if there is none."""
        if not Path(path).exists():
            _write(Path(path), {})
        return Tokens(path)

    def reload(self) -> None:
        """Read the file again; if that fails, what was known stays."""
        self._known = _read(self.path)

    def __iter__(self) -> Iterator[Credential]:
        return iter(self._known.values())

    def nodes(self) -> list[str]:
        """Names of all who may come now, each once."""
        now = time.time()
        return list(dict.fromkeys(each.node for each in self if each.valid(now)))

    def of_token(self, token: str) -> Credential:
        """Whom this token stands for; ``NotAdmitted`` for whatever reason it opens nothing."""
        id, _, secret = token.partition(".")
        found = self._known.get(id)
        expected = _NO_HASH if found is None or found.certificate else found.hash
        same = hmac.compare_digest(_hashed(secret), expected)
        if found is None or not same or not found.valid(time.time()):
            raise NotAdmitted(
                "this token is not known, expired or revoked; the operator makes one with: sparsemean token add"
            )
        return found

    def of_certificate(self, name: str) -> Credential:
        """Whom a certificate stands for that our authority signed for this name."""
        found = self._known.get(f"cert-{name}")
        if found is None or not found.valid(time.time()):
            raise NotAdmitted(
                "this certificate's name may not come; the operator lets it: sparsemean token add --certificate"
            )
        return found

    def add(self, node: str, weight: float = 1.0, expires: float | None = None) -> str:
        """A new token for a node, which is nowhere but in what this returns. Its other tokens stay."""
        return self._new(node, weight, expires)

    def add_certificate(self, node: str, weight: float = 1.0, expires: float | None = None) -> None:
        """Let whoever has a certificate of this name come as the node of this name."""
        known = Credential(f"cert-{node_name(node)}", node, "", _weight(weight), time.time(), expires)
        with self._changing():
            self._known[known.id] = known

    def revoke(self, which: str) -> list[Credential]:
        """Close a token by its id, or all that a node has by its name; ``InvalidInput`` where there is none."""
        with self._changing():
            found = [each for each in self if which in (each.id, each.node) and not each.revoked]
            if not found:
                raise InvalidInput(f"no open token has the id or node {which!r}; see: sparsemean token list")
            for each in found:
                self._known[each.id] = replace(each, revoked=True)
        return found

    def rotate(self, node: str) -> str:
        """A new token for a node with the weight and end of its last one; all that it had are closed."""
        held = [each for each in self if each.node == node and not each.revoked and not each.certificate]
        if not held:
            raise InvalidInput(f"node {node!r} has no open token to replace; make one with: sparsemean token add")
        return self._new(node, held[-1].weight, held[-1].expires, closed=[each.id for each in held])

    def _new(self, node: str, weight: float, expires: float | None, closed: Sequence[str] = ()) -> str:
        id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        made = Credential(id, node_name(node), _hashed(secret), _weight(weight), time.time(), expires)
        with self._changing():
            for each in closed:
                self._known[each] = replace(self._known[each], revoked=True)
            self._known[id] = made
        return f"{id}.{secret}"

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Change what the file holds now, alone: a command and a service may both write."""
        with _alone(self.path):
            self.reload()
            before = dict(self._known)
            try:
                yield
                _write(self.path, self._known)
            except BaseException:
                self._known = before
                raise


class Secret:
    """One secret that opens everything, as of the operator; only its hash is in memory."""

    def __init__(self, token: str) -> None:
        if len(token) < 16:
            raise InvalidInput("an admin token has 16 characters or more; make one with: sparsemean token admin FILE")
        self._hash = _hashed(token)

    def opens(self, token: str) -> bool:
        """Whether this is the one; in constant time."""
        return hmac.compare_digest(_hashed(token), self._hash)


def new_secret() -> str:
    """A secret for the operator."""
    return secrets.token_urlsafe(32)


def duration(text: str) -> float:
    """Seconds in a text such as 12h, 30d or 8w.

    >>> duration("2h")
    7200.0
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise InvalidInput(f"a time is a number with s, m, h, d or w, such as 30d; got {text!r:.40}")
    return float(found[1]) * _SECONDS[found[2]]


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner reads, whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.with_name(f".{path.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _weight(weight: float) -> float:
    return float(weight_of(weight, 1)[0])


def _write(path: Path, known: Mapping[str, Credential]) -> None:
    content = {"format": FORMAT, "tokens": [asdict(each) for each in known.values()]}
    write_secret(path, json.dumps(content, indent=1) + "\n")


def _read(path: Path) -> dict[str, Credential]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise InvalidInput(f"{path} is of format {content['format']!r:.20}; use the sparsemean that wrote it")
        return {each.id: each for each in map(_credential, content["tokens"])}
    except FileNotFoundError:
        raise InvalidInput(f"there is no {path}; make it with: sparsemean token add {path} NODE") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path} is not a file of tokens: {error}; write it with: sparsemean token") from None


def _credential(told: Any) -> Credential:
    found = Credential(**told)
    if not (isinstance(found.id, str) and isinstance(found.hash, str) and re.fullmatch("([0-9a-f]{64})?", found.hash)):
        raise ValueError("an entry has no id, or no hash")
    if not (found.expires is None or isinstance(found.expires, int | float)) or not isinstance(found.revoked, bool):
        raise ValueError(f"the entry {found.id} has no end, or a wrong one")
    return replace(found, node=node_name(found.node), weight=_weight(found.weight))
