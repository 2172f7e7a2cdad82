"""Pairs of kernels: a NumPy function, and its numba twin that is called in its place where numba is installed."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

SMALL = 1 << 16  # up to this many values NumPy takes less time than loading numba
DRAWING, ARRAYS = "sparsemean.kernels.compiled", "sparsemean.kernels.compiled_arrays"
ROTATION, LISTED = "sparsemean.kernels.compiled_eden", "sparsemean.kernels.compiled_listed"
EPOCHS, PASS = "sparsemean.kernels.compiled_epochs", "sparsemean.kernels.compiled_pass"


def twin(
    numpy: Callable[P, R], name: str, module: str = DRAWING, values: Callable[P, int] | None = None
) -> Callable[P, R]:
    """The two functions of a pair as one, which imports numba at its first call and not before.

    Parameters
    ----------
    numpy
        The readable reference, which also serves where numba is not installed.
    name
        Name of the compiled function of the same signature.
    module
        Where that is: DRAWING if it draws samples or dither, EPOCHS if it draws later rounds of an epoch, LISTED if it
        takes coordinates listed by tile, ROTATION if it rotates values, PASS if it does a whole round in one pass over
        the tiles, ARRAYS if it passes over arrays as they are.
    values
        How many values a call with these arguments handles, if small calls shall not load numba: up to SMALL values are
        handled by ``numpy`` until something else has loaded it. By default the first call loads it.
    """

    def first_call(*args: P.args, **kwargs: P.kwargs) -> R:
        if values is not None and not worth_loading(values(*args, **kwargs)):
            return numpy(*args, **kwargs)
        function = chosen(numpy, name, module)
        pair.__setstate__((function, (), {}, pair.__dict__))  # later calls go straight to it
        return function(*args, **kwargs)

    # A partial of no arguments forwards a call in C, in a third of the time that a class with __call__ takes.
    pair: Any = functools.update_wrapper(functools.partial(first_call), numpy)
    return cast(Callable[P, R], pair)


def chosen(numpy: Callable[P, R], name: str, module: str = DRAWING) -> Callable[P, R]:
    """The compiled function of this name, or ``numpy`` where numba is not installed. Only here is numba imported."""
    try:
        importlib.import_module("numba")
    except ImportError:
        return numpy
    if module == DRAWING:  # literal names, so that tests/test_no_pickle.py sees what can be loaded
        return cast(Callable[P, R], getattr(importlib.import_module("sparsemean.kernels.compiled"), name))
    if module == EPOCHS:
        return cast(Callable[P, R], getattr(importlib.import_module("sparsemean.kernels.compiled_epochs"), name))
    if module == LISTED:
        return cast(Callable[P, R], getattr(importlib.import_module("sparsemean.kernels.compiled_listed"), name))
    if module == PASS:
        return cast(Callable[P, R], getattr(importlib.import_module("sparsemean.kernels.compiled_pass"), name))
    if module == ROTATION:
        return cast(Callable[P, R], getattr(importlib.import_module("sparsemean.kernels.compiled_eden"), name))
    return cast(Callable[P, R], getattr(importlib.import_module("sparsemean.kernels.compiled_arrays"), name))


def numba_installed() -> bool:
    """Whether pairs call their compiled functions; nothing is imported for that."""
    try:
        return importlib.util.find_spec("numba") is not None
    except ValueError:  # as tests make it appear
        return False


def worth_loading(count: int) -> bool:
    """Whether this many values repay the second that loading numba takes, or it is loaded already."""
    return count > SMALL or any(module in sys.modules for module in (DRAWING, ARRAYS, ROTATION, LISTED, EPOCHS, PASS))
