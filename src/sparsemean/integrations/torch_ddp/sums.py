"""Sums that come out the same, bit for bit, on every rank."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import pad

ROW = 1024


def total(numbers: Tensor) -> Tensor:
    """The sum of all entries, added up row by row.

    Torch splits the sum of one long row among its threads, whose number may differ from rank to rank.

    >>> import torch
    >>> total(torch.arange(5.0))
    tensor(10.)
    """
    flat = numbers.reshape(-1)
    return pad(flat, (0, -flat.numel() % ROW)).view(-1, ROW).sum(dim=1).sum()


def sums_at(where: Tensor, numbers: Tensor, dim: int) -> Tensor:
    """(dim,): the sum over ranks at each coordinate, one rank after another.

    Parameters
    ----------
    where, numbers : Tensor
        (n, k): coordinates, distinct within a rank, and the numbers there.
    dim : int
        How many coordinates there are.
    """
    sums = numbers.new_zeros(dim)
    for at, mine in zip(where, numbers, strict=True):
        sums.index_add_(0, at, mine)
    return sums
