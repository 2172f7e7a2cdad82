"""What may stand inside another encoder."""

from __future__ import annotations

from sparsemean.encoders.base import Encoder, Stateful
from sparsemean.encoders.one_of import OneOf
from sparsemean.errors import IncompatibleScheme


def require_stateless(encoder: Encoder, wrapper: str, epochs: bool = False) -> None:
    """Wrappers keep one state each; nesting them would leave two to keep in step. ``epochs`` says that these may be."""
    if isinstance(encoder, Stateful | OneOf):
        raise IncompatibleScheme(f"{wrapper} wraps a stateless encoder such as RandK or TopK, not {encoder!r}")
    if encoder.facts.relative:
        raise IncompatibleScheme(f"Relative stands outermost: {wrapper} wraps an encoder without it, not {encoder!r}")
    if encoder.facts.epochs and not epochs:
        raise IncompatibleScheme(
            f"{wrapper} changes what is sent from round to round, and Epochs what is drawn; use Balanced() inside it"
        )
