"""The largest k, or the most bits a value, with which a scheme keeps a byte budget."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsemean._names import ValueName
from sparsemean._types import Floats
from sparsemean.client import Client
from sparsemean.codec import open_frame, pack_plan, read_payload
from sparsemean.encoders.size import largest_within
from sparsemean.run import Run
from sparsemean.sampling import Plan
from sparsemean.schemes import Scheme, named
from sparsemean.server.common_scale import next_scale
from sparsemean.wire.values import EDEN


def largest_k(with_k: Callable[[int], Scheme], limit: float, vectors: Floats, least: int, probes: int) -> int:
    """The largest k whose payloads have at most ``limit`` bytes on average, header included.

    Parameters
    ----------
    with_k
        Makes the scheme for a k. Its payloads must not get shorter as k grows.
    limit
        Bytes per node and round.
    vectors
        Shape (n, d). Where the length of a payload depends on the vector, it is measured on some of these.
    least
        The smallest k that may be returned; it is not tried, so it is the answer also where it does not fit.
    probes
        About how many of the vectors are encoded to measure a length.

    Examples
    --------
    >>> from sparsemean.schemes import named
    >>> largest_k(lambda k: named("rand-k", k), 64 + 4 * 7, np.ones((3, 20)), least=0, probes=8)
    7
    """
    dim = vectors.shape[1]
    return largest_within(lambda k: _mean_payload_bytes(Run(with_k(k), dim), vectors, probes) <= limit, least, dim)


def finest_eden(dim: int, limit: float) -> ValueName:
    """The values "eden-b" with the most bits of which ``identity`` can send all within ``limit`` bytes, with header.

    "eden-1" where even that takes more. Fewer than 512 values are dithered with a whole number of bits.

    >>> finest_eden(65536, 26214), finest_eden(65536, 100), finest_eden(89, 100)
    ('eden-3.125', 'eden-1', 'eden-3')
    """
    sizes = {name: Run(named("identity", values=name), dim).payload_bytes for name in EDEN}
    most = max((size for size in sizes.values() if size <= limit), default=min(sizes.values()))
    return next(name for name, size in sizes.items() if size == most)


def finest_whole(dim: int, limit: float) -> str | None:
    """The name of whole vectors with as many bits a value as ``limit`` bytes allow, from 1 to 7: int8 is played anyway.

    >>> finest_whole(65536, 26214), finest_whole(65536, 100), finest_whole(89, 400)
    ('identity eden-3.125', None, None)
    """
    values = finest_eden(dim, limit)
    fits = Run(named("identity", values=values), dim).payload_bytes <= limit
    return f"identity {values}" if fits and values != "eden-8" else None


def _mean_payload_bytes(run: Run, vectors: Floats, probes: int) -> float:
    if run.payload_fixed:
        return float(run.payload_bytes)
    chosen = vectors[:: max(1, len(vectors) // probes)]
    if not run.common_scale:
        alone = pack_plan(run, "0", 0, Plan())
        return float(np.mean([len(Client(run, "0").encode(vector, 0, alone)) for vector in chosen]))
    scale = next_scale((_encoded(run, vector, Plan(0, 1))[1] for vector in chosen), None)
    return float(np.mean([_encoded(run, vector, Plan(0, 1, scale=scale))[0] for vector in chosen]))


def _encoded(run: Run, vector: Floats, plan: Plan) -> tuple[int, float | None]:
    """Bytes of a payload, and the scale that would suit it."""
    blob = Client(run, "0").encode(vector, 0, pack_plan(run, "0", 0, plan))
    payload = read_payload(run, "0", *open_frame(run, "0", blob), plan)
    return len(blob), None if payload is None else payload.wanted_scale
