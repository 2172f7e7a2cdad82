"""Least-squares coefficients in [0, 1], one per block, from sums over what was received."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsemean._types import Doubles


def unit_ratio(along: Doubles, length: Doubles, otherwise: Doubles) -> Doubles:
    """Σxf/Σf² kept in [0, 1], the best coefficient of a feature f; ``otherwise`` where f was 0 throughout.

    >>> unit_ratio(np.array([1.0, 3.0, 0.0]), np.array([2.0, 2.0, 0.0]), np.array([1.0, 1.0, 0.7]))
    array([0.5, 1. , 0.7])
    """
    known = np.isfinite(along) & np.isfinite(length) & (length > 0)
    ratio: Doubles = np.clip(np.divide(along, length, out=np.array(otherwise), where=known), 0.0, 1.0)
    return ratio


def unit_pair(sums: Sequence[Doubles], otherwise: tuple[Doubles, Doubles]) -> tuple[Doubles, Doubles]:
    """The best coefficients of two features f and r, from (Σf², Σfr, Σr², Σxf, Σxr); each in [0, 1].

    Where the plain solution leaves the square, one coefficient is fixed at the edge and the other fitted given it.

    >>> one = np.ones(1)
    >>> unit_pair((2 * one, 0 * one, one, one, 3 * one), (one, 0 * one))
    (array([0.5]), array([1.]))
    """
    ff, fr, rr, xf, xr = sums
    lengths = np.sqrt(ff), np.sqrt(rr)  # products of the sums themselves could overflow
    known = np.isfinite(sums).all(axis=0) & (ff > 0) & (rr > 0)
    along_f, along_r, cosine = (
        np.divide(along, length, out=np.zeros_like(along), where=known)
        for along, length in ((xf, lengths[0]), (xr, lengths[1]), (fr, lengths[0]))
    )
    cosine = np.divide(cosine, lengths[1], out=np.zeros_like(fr), where=known)
    apart = 1.0 - cosine * cosine
    solvable = known & (apart > 1e-12)
    first = np.divide(along_f - cosine * along_r, lengths[0] * apart, out=np.array(otherwise[0]), where=solvable)
    first = np.clip(first, 0.0, 1.0)
    second = unit_ratio(xr - first * fr, rr, otherwise[1])
    return unit_ratio(xf - second * fr, ff, otherwise[0]), second
