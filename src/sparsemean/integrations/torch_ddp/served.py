"""Which schemes the hook serves, and why not the others."""

from __future__ import annotations

from sparsemean import (
    Hybrid,
    Identity,
    IncompatibleScheme,
    InvalidInput,
    Mean,
    PerNode,
    RandK,
    Scheme,
    SharedStable,
    Spatial,
)
from sparsemean.core import Nothing, Stateful


def check(scheme: Scheme) -> None:
    """Refuse what cannot be served.

    >>> from sparsemean import named
    >>> check(named("top-k", k=0.1))
    Traceback (most recent call last):
    ...
    sparsemean.errors.IncompatibleScheme: the DDP hook serves RandK and Identity, ... not TopK(k=0.1); use RandK
    """
    if not isinstance(scheme, Scheme):
        raise InvalidInput(f'a State takes a Scheme, such as named("rand-k-spatial-avg", k=0.05), not {scheme!r}')
    if isinstance(scheme.encoder, Stateful):
        raise IncompatibleScheme(
            f"the DDP hook keeps no state of a rank's own, which {scheme.encoder!r} needs; "
            "use RandK with memory=PerNode(), which every rank keeps alike"
        )
    if type(scheme.encoder) not in (RandK, Identity):
        raise IncompatibleScheme(
            "the DDP hook serves RandK and Identity, whose coordinates every rank can draw again, "
            f"not {scheme.encoder!r}; use RandK"
        )
    if type(scheme.decoder) not in (Mean, Spatial):
        raise IncompatibleScheme(f"the DDP hook decodes with Mean or Spatial, not {scheme.decoder!r}")
    if isinstance(scheme.decoder, Spatial) and callable(scheme.decoder.weighting):
        raise IncompatibleScheme("a checkpoint cannot tell one function from another; give Spatial(table=…)")
    if type(scheme.memory) not in (Nothing, PerNode, Hybrid, SharedStable):
        raise IncompatibleScheme(
            f"the DDP hook remembers with PerNode, Hybrid or SharedStable, not {scheme.memory!r}; use SharedStable()"
        )
    if isinstance(scheme.memory, PerNode | Hybrid) and scheme.memory.forget_after is not None:
        raise IncompatibleScheme("ranks are never absent, so the DDP hook does not forget; drop forget_after")


def sum_is_enough(scheme: Scheme) -> bool:
    """Whether the mean follows from the sum of what ranks send, so that an all-reduce will do."""
    shared = isinstance(scheme.encoder, RandK) and scheme.encoder.shared
    return shared and isinstance(scheme.memory, Nothing) and scheme.values in ("float32", "float64")


def goes_whole(scheme: Scheme, size: int, small: int) -> bool:
    """Whether a tensor of this size is sent as it is: it is small, or the scheme would send all of it anyway."""
    k = scheme.encoder.k if isinstance(scheme.encoder, RandK) else 0.0
    return size < small or (isinstance(k, int) and k >= size)
