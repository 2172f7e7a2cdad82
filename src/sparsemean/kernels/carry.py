"""Running sums over rows that change: what is carried into the sums, and what is then written into the rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from sparsemean._types import Array, Doubles, Ints, Words
from sparsemean.kernels.choose import fastest
from sparsemean.kernels.row_check import check_of
from sparsemean.kernels.sample import Sample, drawn

CANCELLED = 1e-6  # a sum this small against what left it has lost six of its sixteen digits


class Columns(NamedTuple):
    """Sums Σ_i w_i b_i per coordinate, several of them, each with its own ``weights[sum, node, block]``."""

    sums: Sequence[Doubles]
    weights: Doubles
    starts: Ints


class Changes(NamedTuple):
    """Of each node a sample, the k values that its row will hold there, and the row; each of one type for all."""

    samples: Sequence[Sample]
    values: Sequence[Array]
    rows: Sequence[Array]


Carry: TypeAlias = Callable[[Columns, Changes, int, Words | None], Ints]
Put: TypeAlias = Callable[[Changes, int], None]


def carry_numpy(columns: Columns, changes: Changes, threads: int = 1, checks: Words | None = None) -> Ints:
    """sums += w · (new − old), and which of the sums are to be made anew: there a far larger value left one of them.

    ``checks`` are checksums of the rows, which follow what will be written to them.
    """
    lost = [np.empty(0, np.int64)]
    for i, (sample, values, row) in enumerate(zip(*changes, strict=True)):
        chosen = drawn(sample)
        block = np.searchsorted(columns.starts, chosen, side="right") - 1
        old = row[chosen].astype(np.float64)
        if checks is not None:
            added = (check_of(values, chosen) - check_of(row[chosen], chosen)) % 2**64
            checks[i : i + 1] += np.array([added], np.uint64)  # of an array, since a single number may not overflow
        for sums, weights in zip(columns.sums, columns.weights, strict=True):
            weight = weights[i][block]
            sums[chosen] += weight * (values - old)
            lost.append(chosen[np.abs(sums[chosen]) < CANCELLED * np.abs(weight * old)])
    return np.unique(np.concatenate(lost))


def put_numpy(changes: Changes, threads: int = 1) -> None:
    """row[chosen] = values."""
    for sample, values, row in zip(*changes, strict=True):
        row[drawn(sample)] = values


@functools.cache
def carry() -> Carry:
    """The fastest of the two here."""
    return fastest(carry_numpy, "carry")


@functools.cache
def put() -> Put:
    """The fastest of the two here."""
    return fastest(put_numpy, "put")
