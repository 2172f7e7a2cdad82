"""Which of two twins serves: the compiled one where numba is installed, else the NumPy one."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def fastest(twin: Function, name: str) -> Function:
    """The function of this name in ``kernels.compiled``, else the twin; only here is numba imported."""
    try:
        importlib.import_module("numba")
    except ImportError:
        return twin
    return cast(Function, getattr(importlib.import_module("sparsemean.kernels.compiled"), name))
