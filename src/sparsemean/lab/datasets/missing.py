"""Missing numbers: refused, left out with their round or node, or filled in, as the user says."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.content import Content, counted
from sparsemean.lab.datasets.reading import Missing

Gaps: TypeAlias = npt.NDArray[np.bool_]

CHOICE = (
    "say what to do: --missing drop-rounds, drop-nodes, mean or last (in Python missing=…); or fill them in yourself"
)


def completed(content: Content, policy: Missing) -> Content:
    """The content without missing numbers, and a note of what was done about them.

    Raises ``InvalidInput`` where a number is infinite, where the policy is to refuse, and where it cannot help.
    """
    path, vectors = content.path, content.vectors
    if infinite := np.count_nonzero(np.isinf(vectors)):
        first = _first(np.isinf(vectors))
        raise InvalidInput(
            f"{path}: {infinite} of {vectors.size} numbers are infinite, the first ({vectors[first]}) at "
            f"{content.place(*first)}; correct them, or leave them empty and say --missing mean"
        )
    gaps = np.isnan(vectors)
    number = int(np.count_nonzero(gaps))
    if not number:
        return content
    hint = f"; {content.hint}" if content.hint else ""
    if policy == "refuse":
        raise InvalidInput(
            f"{path}: {number} of {vectors.size} numbers are missing (empty, NA or NaN), the first at "
            f"{content.place(*_first(gaps))}{hint}; {CHOICE}"
        )
    told = f"{number} of {vectors.size} numbers were missing"
    if policy in ("drop-rounds", "drop-nodes"):
        axis, thing = (0, "round") if policy == "drop-rounds" else (1, "node")
        kept: Gaps = ~np.any(gaps, axis=(1, 2) if axis == 0 else (0, 2))
        if not kept.any():
            raise InvalidInput(
                f"{path}: every {thing} misses some of its numbers, so --missing {policy} leaves none{hint}"
            )
        rows = np.flatnonzero(kept)
        left_out = counted(len(kept) - len(rows), thing)
        return replace(
            content,
            vectors=vectors.compress(kept, axis),
            nodes=content.nodes if axis == 0 else tuple(content.nodes[i] for i in rows),
            notes=(*content.notes, f"{told}; {left_out} of {len(kept)} left out for it"),
        )
    filled = _mean(content, gaps) if policy == "mean" else _last(content, gaps)
    by = "the mean of their coordinate" if policy == "mean" else "what the node had in the round before"
    return replace(content, vectors=filled, notes=(*content.notes, f"{told}, and filled with {by}"))


def _mean(content: Content, gaps: Gaps) -> Doubles:
    """Each gap filled with the mean of its coordinate over all rounds and nodes."""
    present = (~gaps).sum(axis=(0, 1))
    if not present.all():
        first = _first(gaps & (present == 0))
        raise InvalidInput(
            f"{content.path}: a coordinate has no number at all, the first at {content.place(*first)}; leave it out of "
            "the file, or name the others with --columns"
        )
    means = np.where(gaps, 0.0, content.vectors).sum(axis=(0, 1)) / present
    return np.where(gaps, means, content.vectors)


def _last(content: Content, gaps: Gaps) -> Doubles:
    """Each gap filled with the latest number before it of the same node and coordinate."""
    rounds = np.arange(len(gaps))[:, None, None]
    latest = np.maximum.accumulate(np.where(gaps, -1, rounds), axis=0)
    if (latest < 0).any():
        raise InvalidInput(
            f"{content.path}: {np.count_nonzero(latest < 0)} missing numbers have none before them, the first at "
            f"{content.place(*_first(latest < 0))}; say --missing mean, drop-nodes or drop-rounds"
        )
    filled: Doubles = np.take_along_axis(content.vectors, latest, axis=0)
    return filled


def _first(wanted: Gaps) -> tuple[int, int, int]:
    t, i, j = (int(index) for index in np.unravel_index(int(np.argmax(wanted)), wanted.shape))
    return t, i, j
