"""The common scale of few-bit values: what the nodes of a round would have liked decides that of the next one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sparsemean.sampling.plan import LARGEST_SCALE
from sparsemean.wire.values.sixteen import BFLOAT16, bfloat16_above


def next_scale(wanted: Iterable[float | None], before: float | None) -> float | None:
    """The median of the scales that would have suited the payloads of a round, as a bfloat16; None for 0.

    A median, so that no minority of the nodes decides; of the past alone, so that estimates stay unbiased.

    Parameters
    ----------
    wanted
        The scale of each payload (``Payload.wanted_scale``), None where it has none.
    before
        The scale of the round, which stays where nothing came.

    >>> next_scale([1.0, 2.0, 100.0, None], before=1.5), next_scale([], before=1.5), next_scale([0.0], before=None)
    (2.0, 1.5, None)
    """
    known = sorted(each for each in wanted if each is not None)
    if not known:
        return before
    scale = float(BFLOAT16.widen(bfloat16_above(np.array([min(known[len(known) // 2], LARGEST_SCALE)])))[0])
    return scale or None
