"""Whole rounds in one process, through the real bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sparsemean.client import Client
from sparsemean.encoders import Encoder
from sparsemean.errors import InvalidInput
from sparsemean.inputs import array_of
from sparsemean.results import Estimate
from sparsemean.run import Run
from sparsemean.schemes import Scheme
from sparsemean.server import Server


def simulate(
    run: Run,
    vectors: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    encoders: Sequence[Encoder | None] | None = None,
) -> list[Estimate]:
    """Play whole rounds, and return one estimate a round.

    Parameters
    ----------
    run : Run
    vectors : (rounds, n, d) array
        The vector of each node in each round.
    weights : (n,) or (n, blocks) array, optional
        Weight of each node, or of each of its blocks; by default 1.
    encoders : sequence of Encoder or None, optional
        What each node encodes with, where the scheme leaves a choice (``OneOf``); by default the first.

    >>> from sparsemean.schemes import named
    >>> [e.mean.tolist() for e in simulate(Run(named("identity"), dim=1), [[[1], [3]], [[5], [5]]])]
    [[2.0], [5.0]]
    """
    rounds = array_of(vectors)
    if rounds.ndim != 3 or rounds.shape[1] == 0:
        raise InvalidInput(f"vectors have shape (rounds, n, d) with n ≥ 1, got {rounds.shape}")
    chosen = [None] * rounds.shape[1] if encoders is None else encoders
    if len(chosen) != rounds.shape[1]:
        raise InvalidInput(f"encoders have one entry for each of the {rounds.shape[1]} nodes, got {len(chosen)}")
    clients = [Client(run, str(i), encoder) for i, encoder in enumerate(chosen)]
    given = np.ones(len(clients)) if weights is None else np.asarray(weights)
    if given.shape[:1] != (len(clients),):
        raise InvalidInput(f"weights have one entry for each of the {len(clients)} nodes, got shape {given.shape}")
    server = Server(run)
    return [play_round(server, clients, batch, given) for batch in rounds]


def play_round(server: Server, clients: Sequence[Client], vectors: npt.ArrayLike, weights: npt.ArrayLike) -> Estimate:
    """Plan, encode, accept and deliver for each client, then close the round."""
    plans, reference = server.plans({client.node: client.encoder for client in clients}), server.reference
    for client, vector, weight in zip(clients, np.asarray(vectors), np.asarray(weights), strict=True):
        blob = client.encode(vector, server.round, plans[client.node], reference, server.sketch(client.node))
        client.delivered(server.accept(client.node, blob, weight))
    return server.close_round()


def estimate_mean(
    vectors: npt.ArrayLike, scheme: Scheme, seed: int = 0, weights: npt.ArrayLike | None = None
) -> Estimate:
    """The mean of the rows of an array, as one round of the scheme estimates it.

    Parameters
    ----------
    vectors : (n, d) array
        One row per node.
    scheme : Scheme
    seed : int, default 0
        The seed of the run.
    weights : (n,) array, optional
        Weight of each node; by default 1.

    >>> from sparsemean.schemes import named
    >>> estimate_mean([[1.0, 2.0], [3.0, 4.0]], named("identity")).mean
    array([2., 3.])
    """
    rows = array_of(vectors)
    if rows.ndim != 2 or 0 in rows.shape:
        raise InvalidInput(f"vectors have shape (n, d) with n, d ≥ 1, got {rows.shape}")
    return simulate(Run(scheme, rows.shape[1], seed), rows[None], weights)[0]
