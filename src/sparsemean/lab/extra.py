"""Modules that only some commands need, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sparsemean.errors import InvalidInput


def optional(module: str, purpose: str, extra: str) -> Any:
    """The module, or an error that says how to install it.

    >>> optional("no_such_module", "magic", "lab")
    Traceback (most recent call last):
    sparsemean.errors.InvalidInput: magic needs no_such_module: pip install 'sparsemean[lab]'
    """
    try:
        return import_module(module)
    except ImportError:
        raise InvalidInput(f"{purpose} needs {module.split('.')[0]}: pip install 'sparsemean[{extra}]'") from None
