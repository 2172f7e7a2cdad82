"""Modules that only the report needs, imported when it is drawn."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sparsemean.errors import InvalidInput


def optional(module: str, purpose: str) -> Any:
    """The module, or an error that says how to install it.

    >>> optional("no_such_module", "magic")
    Traceback (most recent call last):
    sparsemean.errors.InvalidInput: magic needs no_such_module: pip install 'sparsemean[report]'
    """
    try:
        return import_module(module)
    except ImportError:
        raise InvalidInput(f"{purpose} needs {module.split('.')[0]}: pip install 'sparsemean[report]'") from None
