"""Splits of labelled samples over nodes: evenly, by shards of few labels, or by Dirichlet shares.

Each split is a list of sorted index arrays, one per node and none empty, that hold every sample exactly once.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sparsemean._types import Ints
from sparsemean.errors import InvalidInput

DRAWS = 1_000


def iid(n_samples: int, nodes: int, rng: np.random.Generator) -> list[Ints]:
    """Samples dealt at random; where they do not divide evenly, the first nodes have one more.

    >>> [part.size for part in iid(10, 3, np.random.default_rng(0))]
    [4, 3, 3]
    """
    check_enough(n_samples, nodes, 1)
    return [np.sort(part) for part in np.array_split(rng.permutation(n_samples), nodes)]


def shards(labels: npt.ArrayLike, nodes: int, rng: np.random.Generator, shards_per_node: int = 2) -> list[Ints]:
    """Equal shards of the samples sorted by label, dealt to the nodes at random (McMahan et al. 2017, Section 3).

    So a node sees at most ``shards_per_node`` labels, and one more for every shard that spans two. Where the samples do
    not divide evenly, the first shards have one more.

    >>> labels = [0, 1, 2, 3] * 5
    >>> [len({labels[i] for i in part}) for part in shards(labels, 2, np.random.default_rng(1))]
    [2, 2]
    """
    known = label_array(labels)
    if not is_count(shards_per_node):
        raise InvalidInput(f"shards_per_node is an int from 1 on, got {shards_per_node!r}")
    check_enough(known.size, nodes, shards_per_node)
    cut = np.array_split(np.argsort(known, kind="stable"), nodes * shards_per_node)
    dealt = rng.permutation(len(cut)).reshape(nodes, shards_per_node)
    return [np.sort(np.concatenate([cut[shard] for shard in hand])) for hand in dealt]


def dirichlet(labels: npt.ArrayLike, nodes: int, alpha: float, rng: np.random.Generator) -> list[Ints]:
    """Samples of each label dealt by shares p ~ Dirichlet(α, …, α) over the nodes: small α, few labels per node.

    The samples of a label are cut at ⌊cumulative share × their number⌋, so none is left over. If a node would have no
    sample at all, the shares of all labels are drawn again, at most 1,000 times.

    >>> parts = dirichlet([0, 1] * 50, 4, 0.5, np.random.default_rng(0))
    >>> sorted(np.concatenate(parts).tolist()) == list(range(100)), min(part.size for part in parts) > 0
    (True, True)
    """
    known = label_array(labels)
    check_enough(known.size, nodes, 1)
    if not isinstance(alpha, int | float | np.number) or not 0 < alpha < math.inf:
        raise InvalidInput(f"alpha is a positive number, got {alpha!r}")
    of_label = [np.flatnonzero(known == label) for label in np.unique(known)]
    sizes = np.array([samples.size for samples in of_label])
    cuts = dirichlet_cuts(sizes, nodes, float(alpha), rng)
    dealt = [np.split(rng.permutation(samples), cut) for samples, cut in zip(of_label, cuts, strict=True)]
    return [np.sort(np.concatenate(hand)) for hand in zip(*dealt, strict=True)]


def dirichlet_cuts(sizes: Ints, nodes: int, alpha: float, rng: np.random.Generator) -> Ints:
    """(labels, nodes − 1): where each label's samples are cut so that no node comes away empty."""
    for _ in range(DRAWS):
        shares = rng.dirichlet(np.full(nodes, alpha), size=sizes.size)
        ends = np.floor(np.cumsum(shares, axis=1)[:, :-1] * sizes[:, np.newaxis]).astype(np.int64)
        ends = np.minimum(ends, sizes[:, np.newaxis])  # shares may sum to a little more than 1
        dealt = np.diff(ends, axis=1, prepend=0, append=sizes[:, np.newaxis])
        if (dealt.sum(axis=0) > 0).all():
            return ends
    raise InvalidInput(
        f"{DRAWS} draws with alpha={alpha:g} all left one of the {nodes} nodes without samples; raise alpha or take "
        f"fewer nodes"
    )


def label_array(labels: npt.ArrayLike) -> npt.NDArray[np.integer]:
    """The labels as a flat array of ints."""
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidInput(f"labels are a flat array of ints, got shape {array.shape} of {array.dtype}")
    return array


def is_count(value: object) -> bool:
    """Whether the value is an int from 1 on."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)


def check_enough(n_samples: int, nodes: int, each: int) -> None:
    """Raise ``InvalidInput`` if there are too few samples for every node to have ``each``."""
    if not is_count(nodes):
        raise InvalidInput(f"nodes is an int from 1 on, got {nodes!r}")
    if not is_count(n_samples) or n_samples < nodes * each:
        raise InvalidInput(f"{nodes} nodes need at least {nodes * each} samples, got {n_samples!r}")
