"""Checks of what users hand over: names, vectors, weights, rounds, payloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from sparsemean._types import Array, Doubles, Floats
from sparsemean.errors import InvalidInput
from sparsemean.wire.values import LARGEST, bounded

LARGEST_WEIGHT = 1e30
LONGEST_NAME = 256

Item = TypeVar("Item")


def node_name(node: str) -> str:
    """A name that is not empty, can be written as UTF-8, and is not so long that names would fill the memory."""
    if not isinstance(node, str) or not node:
        raise InvalidInput(f"a node is named by a non-empty string, got {node!r}")
    try:
        length = len(node.encode())
    except UnicodeEncodeError:
        raise InvalidInput(f"the node name {node!r} cannot be written as UTF-8") from None
    if length > LONGEST_NAME:
        raise InvalidInput(f"a node's name has up to {LONGEST_NAME} bytes, this one has {length}; send a digest of it")
    return node


def round_number(round: int) -> int:
    """A round from 0 to 2^63 − 1."""
    if isinstance(round, bool) or not isinstance(round, int | np.integer) or not 0 <= round < 1 << 63:
        raise InvalidInput(f"a round is an int from 0 on, got {round!r}")
    return int(round)


def array_of(array: Any) -> Floats:
    """Anything like an array of real numbers, as float32 or float64: a view of it where it is one of these already.

    NumPy, what has ``__array__`` or ``__dlpack__`` (torch, JAX), tables of pandas and polars, and lists of all these;
    16-bit floats become float32, integers float64.
    """
    found: Any
    if np.ma.is_masked(array):
        raise InvalidInput("some entries of this array are masked; fill them first, as with filled(0)")
    try:
        if _lists_arrays(array):
            found = np.stack([array_of(each) for each in array])
        elif hasattr(array, "columns") and hasattr(array, "dtypes"):
            found = _of_table(array)
        elif getattr(array, "requires_grad", False) is True:
            return array_of(array.detach())
        elif hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
            found = np.from_dlpack(array)
        elif str(getattr(array, "dtype", "")) == "torch.bfloat16":  # which NumPy does not know
            found = np.asarray(array.float())
        else:
            found = np.asarray(array)
        if found.dtype not in (np.float32, np.float64):
            half = found.dtype.name in ("float16", "bfloat16")
            found = found.astype(np.float32) if half else found.astype(np.float64, casting="same_kind")
    except BufferError as error:
        raise InvalidInput(f"this array cannot be read ({error}); move it to the CPU first") from None
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):  # of an entry of a list
            raise
        raise InvalidInput("vectors are arrays of real numbers, all of one shape") from None
    except RuntimeError as error:
        raise InvalidInput(f"this tensor cannot be read ({error}); detach() it and move it to the CPU first") from None
    real: Floats = found
    return real


def _lists_arrays(array: Any) -> bool:
    """Whether it is a list of arrays, or a list of such lists."""
    if not isinstance(array, list | tuple) or not array:
        return False
    return (hasattr(array[0], "__array__") and not isinstance(array[0], np.generic)) or _lists_arrays(array[0])


def _of_table(table: Any) -> Array:
    """The numbers of a table, whose own conversion makes numbers of dates (polars) and objects of numbers (pandas)."""
    if len(set(table.dtypes)) == 1 and (whole := np.asarray(table)).dtype.kind in "iufb":
        return whole
    columns = {str(name): np.asarray(table[name]) for name in table.columns}
    wrong = [repr(name) for name, column in columns.items() if column.dtype.kind not in "iufb"]
    if wrong:
        named = ", ".join(wrong[:5]) + (" …" if len(wrong) > 5 else "")
        raise InvalidInput(
            f"the table has columns that are not all numbers: {named}; leave them out, as with "
            "table.drop(columns=[…]), or convert them"
        )
    return np.column_stack(list(columns.values()))


def vector_of(vector: npt.ArrayLike, dim: int) -> Floats:
    """A finite real vector of that dimension, float32 or float64."""
    real = array_of(vector)
    if real.shape != (dim,):
        raise InvalidInput(f"the run is for vectors of shape ({dim},), got {real.shape}; flatten or make another Run")
    if not bounded(real):
        wrong = np.count_nonzero(~(np.abs(real, dtype=np.float64) <= LARGEST))
        raise InvalidInput(
            f"the vector has {wrong} entries that are NaN, infinite or beyond {LARGEST:g}; repair or rescale them first"
        )
    return real


def weight_of(weight: float | Sequence[float] | Doubles, blocks: int) -> Doubles:
    """One weight per block, finite and not negative."""
    if type(weight) is float and 0.0 <= weight <= LARGEST_WEIGHT:  # the common case, a thousand times a round
        return np.full(blocks, weight)
    try:
        array = np.asarray(weight).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise InvalidInput(f"a weight is a number, or one number per block, got {weight!r}") from None
    if array.shape not in ((), (blocks,)):
        raise InvalidInput(f"a weight is one number or {blocks} (one per block), got shape {array.shape}")
    if not np.all((array >= 0) & (array <= LARGEST_WEIGHT)):
        raise InvalidInput(f"weights lie between 0 and {LARGEST_WEIGHT:g}, got {weight!r}")
    return np.broadcast_to(array, (blocks,)).copy()


def payload_pairs(
    payloads: Iterable[tuple[str, bytes]] | Mapping[str, bytes] | Path | str,
) -> Iterator[tuple[str, bytes]]:
    """Pairs of node and bytes, from pairs, a dict, or a folder of files ``<node>.spmn``."""
    if isinstance(payloads, Mapping):
        yield from payloads.items()
    elif isinstance(payloads, Path | str):
        if not Path(payloads).is_dir():
            raise InvalidInput(f"{payloads} is no folder; payloads lie in one as <node>.spmn")
        for path in sorted(Path(payloads).glob("*.spmn")):
            if path.is_file():
                yield path.stem, path.read_bytes()
    else:
        for pair in payloads:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise InvalidInput("payloads are pairs of node and bytes, a dict of them, or a folder")
            yield pair[0], pair[1]


def lists_of(size: int, items: Iterable[Item]) -> Iterator[list[Item]]:
    """So many at a time; where the items fail, those before come first.

    >>> list(lists_of(2, "abc"))
    [['a', 'b'], ['c']]
    """
    some: list[Item] = []
    try:
        for item in items:
            some.append(item)
            if len(some) == size:
                yield some
                some = []
    except Exception:
        if some:
            yield some
        raise
    if some:
        yield some


def journal_folder(journal: Path | str) -> Path:
    """Where a journal is to be, whatever the current folder will be later."""
    if not isinstance(journal, Path | str) or not str(journal) or "\0" in str(journal):
        raise InvalidInput(f"a journal is the path of a folder, got {journal!r}")
    try:
        folder = Path(journal).expanduser().absolute()
    except RuntimeError as unknown:  # ~somebody
        raise InvalidInput(f"{journal} cannot be found: {unknown}; give the whole path of the journal") from None
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file; a journal is a folder")
    return folder
