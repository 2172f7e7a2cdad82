"""How the numba twins are compiled and cached on disk; only they import this file."""

# fastmath stays off: results must be those of the NumPy twins, and the same on every machine. error_model="numpy" makes
# a division by zero inf or nan instead of an exception, whose test would keep loops from becoming vectors.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba.extending

nb: Any = numba  # typed in some releases only
Function = TypeVar("Function", bound=Callable[..., Any])


def inner(function: Function) -> Function:
    """Compile a function as part of those that call it."""
    return cast(Function, nb.njit(nogil=True, error_model="numpy")(function))


def inlined(function: Function) -> Function:
    """The same, put in the place of each call: where a call would cost as much as its work, as for every tile."""
    return cast(Function, nb.njit(nogil=True, error_model="numpy", inline="always")(function))


def entry(function: Function) -> Function:
    """Compile at the first call, cache on disk for the next process, and run without the interpreter's lock."""
    try:
        return cast(Function, nb.njit(nogil=True, error_model="numpy", cache=True)(function))
    except RuntimeError:  # numba found no folder that it can write to, as in a read-only container
        return inner(function)
