"""Flower's differential privacy: what does not fit payloads, and how to notice that it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import currentframe

from flwr.clientapp.mod import LocalDpMod
from flwr.serverapp import strategy as flower

import sparsemean as sm

WRAPPERS = (
    flower.DifferentialPrivacyServerSideFixedClipping,
    flower.DifferentialPrivacyServerSideAdaptiveClipping,
    flower.DifferentialPrivacyClientSideFixedClipping,
    flower.DifferentialPrivacyClientSideAdaptiveClipping,
)
# By this key in a train config the client-side wrappers ask fixedclipping_mod and adaptiveclipping_mod to clip.
CLIPPING = "clipping_norm"
# The remedy comes first: of a node's error the log keeps 200 characters.
REMEDY = "use mods=[sparsemean_mod, LocalDpMod(…)] without it, or no SparseMean"
REASON = (
    "its noise fits a clipped update, and a payload scales the values it carries by d/k, "
    "so that one node may move the mean by more than the noise hides"
)


def check_not_wrapped() -> None:
    """Raise InvalidInput where one of Flower's central differential privacy strategies is calling."""
    if wrapper := _caller(WRAPPERS):
        raise sm.InvalidInput(f"{type(wrapper).__name__} cannot wrap SparseMean; {REMEDY}: {REASON}")


def check_order() -> None:
    """Raise InvalidInput where LocalDpMod comes before ours in ``mods``, so that it would be handed a payload."""
    if _caller((LocalDpMod,)):
        raise sm.InvalidInput(
            "LocalDpMod has to see the arrays, and the first mod is the last to touch a reply; "
            "use mods=[sparsemean_mod, LocalDpMod(…)]"
        )


def check_no_clipping(config: Mapping[str, object]) -> None:
    """Raise InvalidInput where a train config asks nodes to clip, as client-side differential privacy does.

    >>> check_no_clipping({"lr": 0.1})
    >>> check_no_clipping({"clipping_norm": 1.0})
    Traceback (most recent call last):
    ...
    sparsemean.errors.InvalidInput: the train config has 'clipping_norm', Flower's client-side differential privacy,
    which payloads do not fit; use mods=[sparsemean_mod, LocalDpMod(…)] without it, or no SparseMean: its noise ...
    """
    if CLIPPING in config:
        raise sm.InvalidInput(
            f"the train config has {CLIPPING!r}, Flower's client-side differential privacy, which payloads do not fit; "
            f"{REMEDY}: {REASON}; if the key is your own, give it another name"
        )


def _caller(kinds: tuple[type, ...]) -> object | None:
    """The object of one of these classes whose method is running; of several the innermost.

    Neither a strategy nor a mod is told what wraps it, and a wrapper with server-side clipping sends nothing by which
    it could be known. But it is among the callers, which hold it as ``self``.
    """
    frame = currentframe()
    while frame is not None:
        caller: object = frame.f_locals.get("self")
        if isinstance(caller, kinds):
            return caller
        frame = frame.f_back
    return None
