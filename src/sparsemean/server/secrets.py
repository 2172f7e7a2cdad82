"""Secrets: what a server shares with each of its nodes, by which compact frames are authenticated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from sparsemean.codec import check_authenticates
from sparsemean.errors import ForeignPayload, InvalidInput
from sparsemean.run import Run
from sparsemean.wire.secret import Secret

Given: TypeAlias = Mapping[str, bytes] | Callable[[str], bytes | None]


class Secrets:
    """The secret of each node.

    Parameters
    ----------
    run : Run
        With compact frames, where any are given.
    given : mapping of str and bytes, or callable, optional
        By the name of the node; a mapping is copied, a callable returns None for a node that it does not know. Without,
        frames are not authenticated.
    """

    def __init__(self, run: Run, given: Given | None = None) -> None:
        self._of: Callable[[str], Secret | bytes | None] | None = None
        if given is None:
            return
        check_authenticates(run)
        if isinstance(given, Mapping):
            self._of = {node: Secret(secret) for node, secret in given.items()}.get
        elif callable(given):
            self._of = given
        else:
            raise InvalidInput(f"secrets are a dict of node and bytes, or a function, not {type(given).__name__}")

    def of(self, node: str) -> Secret:
        """The secret of a node, empty where frames are not authenticated; a node that has none is refused."""
        if self._of is None:
            return Secret()
        found = self._of(node)
        secret = found if isinstance(found, Secret) else Secret(found)
        if not secret:
            raise ForeignPayload(f"no secret is known of node {node!r}; give the server its secrets=")
        return secret

    def __repr__(self) -> str:
        return "Secrets()" if self._of is None else "Secrets(…)"
