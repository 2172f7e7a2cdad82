"""Rows that change: running sums over rows and checksums of rows follow the change, then the rows are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparsemean._types import Array, Doubles, Ints, Words
from sparsemean.kernels.sample import Sample, drawn
from sparsemean.kernels.twin import twin

CANCELLED = 1e-6  # a sum this small against what left it has lost six of its sixteen digits
ODD = 0x9E3779B97F4A7C15  # the checksum multiplies entry i by (i + 1) times this, made odd


class Columns(NamedTuple):
    """Running sums over rows, Σ_i w_i b_i per coordinate; several of them, each with its own weights.

    Attributes
    ----------
    sums
        One array of dim entries per sum, changed in place.
    weights
        ``weights[sum, node, block]``.
    starts
        First coordinate of each block.
    """

    sums: Sequence[Doubles]
    weights: Doubles
    starts: Ints


class Changes(NamedTuple):
    """New entries of rows, one row per node.

    Attributes
    ----------
    samples
        Which coordinates of each row change; all samples have the same sizes.
    values
        The k values that each row will hold there, all of one type.
    rows
        The rows as they are, of dim entries each and all of one type.
    """

    samples: Sequence[Sample]
    values: Sequence[Array]
    rows: Sequence[Array]


def carry_numpy(columns: Columns, changes: Changes, threads: int = 1, checks: Words | None = None) -> Ints:
    """sums += w · (new − old); the rows themselves are left as they are.

    Parameters
    ----------
    columns, changes
        The sums, and what will be written to the rows.
    threads
        How many the compiled twin may use.
    checks
        Checksums of the rows, one per node, changed in place to those of the rows once they are written.

    Returns
    -------
    The coordinates, ascending, where cancellation left a sum inexact: it is below CANCELLED times a value that was
    subtracted from it. The caller sums the rows there again.
    """
    lost = [np.empty(0, np.int64)]
    for i, (sample, values, row) in enumerate(zip(*changes, strict=True)):
        coordinates = drawn(sample)
        block = np.searchsorted(columns.starts, coordinates, side="right") - 1
        old = row[coordinates].astype(np.float64)
        if checks is not None:
            added = (check_of(values, coordinates) - check_of(row[coordinates], coordinates)) % 2**64
            checks[i : i + 1] += np.array([added], np.uint64)  # as an array: NumPy warns if a scalar overflows
        for sums, weights in zip(columns.sums, columns.weights, strict=True):
            weight = weights[i][block]
            sums[coordinates] += weight * (values - old)
            lost.append(coordinates[np.abs(sums[coordinates]) < CANCELLED * np.abs(weight * old)])
    return np.unique(np.concatenate(lost))


def put_numpy(changes: Changes, threads: int = 1) -> None:
    """Write the values into the rows."""
    for sample, values, row in zip(*changes, strict=True):
        row[drawn(sample)] = values


def check_of(array: Array, entries: Ints) -> int:
    """What these values add to the checksum of a row of which they are the entries of these numbers.

    The checksum of a row is the sum, modulo 2⁶⁴, of each entry's bits as an unsigned integer times an odd number of
    that entry. It is 0 for a row of zeros; a change adds (new − old) · number, so that following k changes costs O(k);
    and a single flipped bit always changes it, since 2^b · odd is never 0 modulo 2⁶⁴.

    >>> check_of(np.zeros(3), np.arange(3)), check_of(np.ones(1, np.uint8), np.arange(1)) == ODD
    (0, True)
    """
    bits = array.view(f"u{array.itemsize}").astype(np.uint64)
    return int(np.dot(bits, (entries.astype(np.uint64) + np.uint64(1)) * np.uint64(ODD) | np.uint64(1)))


carry = twin(carry_numpy, "carry")
put = twin(put_numpy, "put")
