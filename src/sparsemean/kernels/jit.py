"""How the numba twins are compiled and kept on disk; imported by them alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba.extending

nb: Any = numba  # typed in some releases only
Function = TypeVar("Function", bound=Callable[..., Any])


def inner(function: Function) -> Function:
    """Compiled together with who calls it."""
    return cast(Function, nb.njit(nogil=True, error_model="numpy")(function))


def entry(function: Function) -> Function:
    """Compiled at the first call, kept on disk for the next process, run without the interpreter's lock."""
    try:
        return cast(Function, nb.njit(nogil=True, error_model="numpy", cache=True)(function))
    except RuntimeError:  # no folder can be written, as in a sealed container
        return inner(function)
