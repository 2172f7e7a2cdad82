"""Sums that come out the same on every rank."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import pad

ROW = 1024


def total(numbers: Tensor) -> Tensor:
    """Σ of all, row by row: torch sums one long row in as many parts as it has threads, which ranks may differ in.

    >>> import torch
    >>> total(torch.arange(5.0))
    tensor(10.)
    """
    flat = numbers.reshape(-1)
    return pad(flat, (0, -flat.numel() % ROW)).view(-1, ROW).sum(dim=1).sum()


def added(where: Tensor, numbers: Tensor, dim: int) -> Tensor:
    """Per coordinate the sum of what ranks have there, one rank after another; each has distinct coordinates."""
    sums = numbers.new_zeros(dim)
    for at, mine in zip(where, numbers, strict=True):
        sums.index_add_(0, at, mine)
    return sums
