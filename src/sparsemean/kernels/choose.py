"""Which of two twins serves: the compiled one where numba is installed, else the NumPy one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

SMALL = 1 << 16  # up to here NumPy takes less time than to load numba
DRAWING, ARRAYS = "sparsemean.kernels.compiled", "sparsemean.kernels.compiled_arrays"


def fastest(twin: Function, name: str, module: str = DRAWING) -> Function:
    """The compiled function of this name, else the twin; only here is numba imported."""
    try:
        importlib.import_module("numba")
    except ImportError:
        return twin
    if module == DRAWING:  # by literal names, so that a reader of the source sees what can be loaded
        return cast(Function, getattr(importlib.import_module("sparsemean.kernels.compiled"), name))
    return cast(Function, getattr(importlib.import_module("sparsemean.kernels.compiled_arrays"), name))


def worth_loading(count: int) -> bool:
    """Whether so many values are worth the second that loading numba takes, or it is loaded already."""
    return count > SMALL or DRAWING in sys.modules or ARRAYS in sys.modules
