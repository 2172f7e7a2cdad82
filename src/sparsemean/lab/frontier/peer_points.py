"""Points of another paper's estimator in a sweep: at the same bytes, to compare with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sparsemean.lab.compare import Budget, GivenVectors
from sparsemean.lab.frontier.frontier import Point
from sparsemean.lab.peers import PEERS, RandProjSpatial
from sparsemean.lab.peers.rand_proj_spatial import padded_dim
from sparsemean.wire.frame import HEADER_BYTES

MOST = 4_000_000
"""Values, n times d up to a power of two in all rounds and seeds, from which on a point takes too long."""


@dataclass(frozen=True)
class PeerEntry:
    """Rand-Proj-Spatial(Avg) with the k that a budget allows; it has no wire format, so its bytes are counted."""

    budget: Budget
    k: int

    @property
    def name(self) -> str:
        """As in tables; values are float32."""
        return f"{PEERS[0]} float32"

    def point(self, given: GivenVectors, seeds: int, played: Callable[[], None]) -> Point:
        """Play it; ``played`` is called after every seed."""
        estimator, errors = RandProjSpatial(self.k), []
        truths = np.average(given.rounds, axis=1, weights=given.weights)
        for seed in range(seeds):
            total = 0.0
            for round, (vectors, truth) in enumerate(zip(given.rounds, truths, strict=True)):
                estimate = estimator.estimate(vectors, np.random.default_rng((seed, round)), given.weights)
                total += float(np.sum((estimate - truth) ** 2))
            errors.append(total / given.energy if given.energy else 0.0)
            played()
        return Point(
            scheme=self.name,
            budget=self.budget.bytes,
            k=self.k,
            bytes_per_node=float(estimator.payload_bytes),
            nmse=float(np.mean(errors)),
            nmse_se=float(np.std(errors, ddof=1) / math.sqrt(seeds)) if seeds > 1 else math.nan,
            exact=None,
            unbiased=True,
            node_state=False,
            diverges=False,
        )


def peer_entries(given: GivenVectors, limits: Sequence[int], seeds: int) -> tuple[list[PeerEntry], str]:
    """One entry for each budget that allows another k; or none, and the reason."""
    padded = padded_dim(given.task.dim)
    count = given.task.nodes * padded * len(given.rounds) * seeds
    if count > MOST:
        return [], (
            f"{PEERS[0]} is left out: its server would decode {count:,} values a point, tens of transforms each, "
            f"and {MOST:,} are the most that it is played on. Take fewer rounds or seeds to see it"
        )
    budgets = {min((limit - HEADER_BYTES) // 4, padded): Budget(bytes=limit) for limit in sorted(limits, reverse=True)}
    return [PeerEntry(budget, k) for k, budget in sorted(budgets.items()) if k > 0], ""
