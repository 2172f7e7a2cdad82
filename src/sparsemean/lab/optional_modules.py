"""Import of optional dependencies when they are needed, with an error that says how to install them."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sparsemean.errors import InvalidInput


def optional(module: str, purpose: str, extra: str) -> Any:
    """Import a module of an extra, or raise ``InvalidInput`` that says how to install it.

    Parameters
    ----------
    module
        Its full name.
    purpose
        What it is needed for.
    extra
        The extra of sparsemean that brings it.

    Examples
    --------
    >>> optional("no_such_module", "magic", "lab")
    Traceback (most recent call last):
    sparsemean.errors.InvalidInput: magic needs no_such_module: pip install 'sparsemean[lab]'
    """
    try:
        return import_module(module)
    except ImportError:
        raise InvalidInput(f"{purpose} needs {module.split('.')[0]}: pip install 'sparsemean[{extra}]'") from None


def require(module: str, purpose: str, extra: str) -> None:
    """Raise what ``optional`` raises if the module is not there, but import nothing: a check before what takes long.

    >>> require("no_such_module", "magic", "lab")
    Traceback (most recent call last):
    sparsemean.errors.InvalidInput: magic needs no_such_module: pip install 'sparsemean[lab]'
    """
    absent = sys.modules[module] is None if module in sys.modules else find_spec(module) is None
    if absent:
        optional(module, purpose, extra)
