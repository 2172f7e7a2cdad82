"""Least-squares coefficients in [0, 1] from sums over what was received, in torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def unit_ratio(along: Tensor, length: Tensor, otherwise: Tensor) -> Tensor:
    """Σxf/Σf² kept in [0, 1], the best coefficient of a feature f; ``otherwise`` where f was 0 throughout."""
    known = along.isfinite() & length.isfinite() & (length > 0)
    return torch.where(known, along / length, otherwise).clamp(0.0, 1.0)


def unit_pair(sums: Sequence[Tensor], otherwise: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The best coefficients of two features f and r, from (Σf², Σfr, Σr², Σxf, Σxr); each in [0, 1].

    Where the plain solution leaves the square, one coefficient is fixed at the edge and the other fitted given it.

    >>> one = torch.ones(())
    >>> unit_pair((2 * one, 0 * one, one, one, 3 * one), (one, 0 * one))
    (tensor(0.5000), tensor(1.))
    """
    ff, fr, rr, xf, xr = sums
    long_f, long_r = ff.sqrt(), rr.sqrt()
    known = torch.stack(list(sums)).isfinite().all() & (ff > 0) & (rr > 0)
    along_f, along_r, cosine = xf / long_f, xr / long_r, fr / long_f / long_r
    apart = 1.0 - cosine * cosine
    first = torch.where(known & (apart > 1e-12), (along_f - cosine * along_r) / (long_f * apart), otherwise[0]).clamp(
        0.0, 1.0
    )
    second = unit_ratio(xr - first * fr, rr, otherwise[1])
    return unit_ratio(xf - second * fr, ff, otherwise[0]), second
