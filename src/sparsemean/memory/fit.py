"""Least-squares coefficients in [0, 1], one per block, from sums over what was received.

Every function takes NumPy arrays or torch tensors, and ``xp``, the module that made them. Nothing is read back from a
tensor's device.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

A = TypeVar("A", bound=Any)
"""A NumPy array or a torch tensor."""

INDEPENDENT = 1e-12  # of 1 − cos²: below it, two features are taken as proportional


def unit_ratio(along: A, length: A, otherwise: A, xp: ModuleType = np) -> A:
    """Σxf/Σf², clipped to [0, 1]: the least-squares coefficient of a feature f.

    Parameters
    ----------
    along, length : array or tensor
        Σxf and Σf² of each block.
    otherwise : array or tensor
        The coefficient of a block where f was 0 throughout or a sum is not finite.
    xp : module, default numpy
        ``numpy`` or ``torch``.

    >>> unit_ratio(np.array([1.0, 3.0, 0.0]), np.array([2.0, 2.0, 0.0]), np.array([1.0, 1.0, 0.7]))
    array([0.5, 1. , 0.7])
    """
    known = xp.isfinite(along) & xp.isfinite(length) & (length > 0)
    ratio: A = xp.clip(_quotient(along, length, known, otherwise, xp), 0.0, 1.0)
    return ratio


def unit_pair(sums: Sequence[A], otherwise: tuple[A, A], xp: ModuleType = np) -> tuple[A, A]:
    """The least-squares coefficients of two features f and r, each in [0, 1].

    Where the plain solution leaves the square, one coefficient is fixed at the edge and the other fitted given it.

    Parameters
    ----------
    sums : sequence of arrays or tensors
        Σf², Σfr, Σr², Σxf and Σxr of each block.
    otherwise : pair of arrays or tensors
        The coefficients of a block where they cannot be told.
    xp : module, default numpy
        ``numpy`` or ``torch``.

    >>> one = np.ones(1)
    >>> unit_pair((2 * one, 0 * one, one, one, 3 * one), (one, 0 * one))
    (array([0.5]), array([1.]))
    """
    ff, fr, rr, xf, xr = sums
    long_f, long_r = xp.sqrt(ff), xp.sqrt(rr)  # products of the sums themselves could overflow
    known = (ff > 0) & (rr > 0)
    for each in sums:
        known = known & xp.isfinite(each)
    along_f, along_r = _quotient(xf, long_f, known, 0.0, xp), _quotient(xr, long_r, known, 0.0, xp)
    cosine = _quotient(_quotient(fr, long_f, known, 0.0, xp), long_r, known, 0.0, xp)
    apart = 1.0 - cosine * cosine
    first = _quotient(along_f - cosine * along_r, long_f * apart, known & (apart > INDEPENDENT), otherwise[0], xp)
    first = xp.clip(first, 0.0, 1.0)
    second = unit_ratio(xr - first * fr, rr, otherwise[1], xp)
    return unit_ratio(xf - second * fr, ff, otherwise[0], xp), second


def hybrid_coefficients(sums: Sequence[A], before: tuple[A, A, A], xp: ModuleType = np) -> tuple[A, A, A]:
    """(a, g, u) of ``Hybrid`` by least squares on what came.

    Parameters
    ----------
    sums : sequence of arrays or tensors
        The seven sums of ``kernels.fit_sums``, of each block: Σc², Σcr, Σr², Σxc, Σxr where nodes were heard before
        (r = B − c), and Σc², Σxc where not.
    before : triple of arrays or tensors
        (a, g, u) as they were; they stay where the sums do not tell.
    xp : module, default numpy
        ``numpy`` or ``torch``.
    """
    *heard, length, along = sums
    on_common, own = unit_pair(heard, before[:2], xp)
    return on_common, own, unit_ratio(along, length, before[2], xp)


def hybrid_mean(common: A, last: A, heard: A, coefficients: Sequence[Any]) -> A:
    """The mean of ``hybrid_expectation`` over nodes: c·(u + (a − g − u)·h̄) + g·B̄, since B is 0 where h is.

    Parameters
    ----------
    common : array or tensor
        c.
    last, heard : array or tensor
        B̄ and h̄, the means over nodes. Both are overwritten; ``heard`` becomes the result.
    coefficients : triple
        (a, g, u).

    >>> hybrid_mean(np.array([4.0]), np.array([1.0]), np.array([0.5]), (1.0, 0.5, 0.0))
    array([1.5])
    """
    on_common, own, unheard = coefficients
    heard *= on_common - own - unheard
    heard += unheard
    heard *= common
    last *= own
    heard += last
    return heard


def _quotient(part: A, whole: A, known: Any, otherwise: A | float, xp: ModuleType) -> A:
    """part/whole where known, else ``otherwise``; elsewhere it divides by 1, so that NumPy has nothing to warn of."""
    quotient: A = xp.where(known, part / xp.where(known, whole, 1.0), otherwise)
    return quotient
