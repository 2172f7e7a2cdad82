"""Our own claims about error against bytes: what each kind of node reaches, EDEN's figures, and auto's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from sparsemean.lab.experiments.catalogue.designed import similar
from sparsemean.lab.experiments.catalogue.frontier import (
    ALIKE,
    FEW,
    GAUSSIAN_NODES,
    INT4,
    MANY,
    MORE_ALIKE,
    SLOW,
    SWIFT,
    UNLIKE,
    WHOLE_BITS,
    whole_bytes,
)
from sparsemean.lab.experiments.catalogue.schemes import EPOCHS_HYBRID, HYBRID
from sparsemean.lab.experiments.claims.beyond import at
from sparsemean.lab.experiments.claims.check import Check, of_factors, of_number, of_values
from sparsemean.lab.experiments.claims.claim import IMAGES, OWN, Claim
from sparsemean.lab.experiments.claims.evidence import Tables, Where, compared, factors, first
from sparsemean.lab.node_schemes import AUTO, DIFFERENCE, EDEN, RELATIVE

PLACE = "Error against bytes"
DIM = 65536
"""Of the Gaussian vectors that the claims are about."""
EDENS = dict(zip(WHOLE_BITS, (0.571, 0.133, 0.036, 0.0096), strict=True))
"""Error over ‖x‖² of one vector, as EDEN's paper has it."""
BEST = AUTO["stateless"]


def _nodes(tables: Tables, schemes: Iterable[str], round: int, gain: float) -> list[Check]:
    """Error over that of whole vectors in one bit a value, at the same bytes, IID."""
    panels: list[Where] = [{"data": IMAGES, "split": "iid", "bytes": whole_bytes(784, "eden-1")}]
    return compared(tables, "frontier-nodes", "mse", schemes, [EDEN], panels, 1 / gain, summary=at(round))


def _gaussian(tables: Tables, correlation: float, bits: float, limit: float) -> list[Check]:
    """Error of auto over that of whole vectors with as many bits as fit."""
    panel: Where = {"dim": DIM, "split": similar(correlation), "bytes": int(bits * DIM / 8)}
    return compared(tables, "frontier-gaussian", "nmse", [BEST], [EDEN], [panel], limit, summary=first)


def _eden(tables: Tables) -> list[Check]:
    """NMSE·n within 3 % of what EDEN's paper has, and the bytes."""
    checks = []
    for bits, (values, stated) in enumerate(EDENS.items(), start=1):
        where: Where = {"dim": DIM, "split": similar(UNLIKE), "bytes": whole_bytes(DIM, values), "scheme": EDEN}
        found = tables.per_seed("frontier-gaussian", "nmse", first, **where)
        sent = tables.per_seed("frontier-gaussian", "bits", first, **where)
        if found:
            errors = [GAUSSIAN_NODES * value for value in found.values()]
            off = abs(float(np.mean(errors)) / stated - 1)
            checks.append(of_number(f"{values}: NMSE·n off {stated:g} by a part of", off, "<", 0.03))
            checks.append(of_values(f"{values}: bits a value, scales counted", list(sent.values()), "<", bits + 0.01))
    return checks


def _network(tables: Tables, schemes: Sequence[str], rate: float) -> list[Check]:
    """Error of auto over that of the best of these schemes, on average over all rounds but the first."""
    errors = {
        scheme: tables.per_seed("frontier-network", "nmse", after_first, scheme=scheme, rate=rate)
        for scheme in (*schemes, BEST)
    }
    own, others = errors.pop(BEST), {scheme: found for scheme, found in errors.items() if found}
    if not own or not others:
        return []
    best = min(others, key=lambda scheme: float(np.mean(list(others[scheme].values()))))
    found = factors(own, others[best])
    return [of_factors(f"learning rate {rate:g}: relative error of auto over {best}", found, "<", 1 / 3)]


def after_first(values: Sequence[float]) -> float:
    """The mean of all rounds but the first.

    >>> after_first([9.0, 1.0, 3.0])
    2.0
    """
    return sum(values[1:]) / max(1, len(values) - 1)


CLAIMS = (
    Claim(
        "nodes-stateless",
        PLACE,
        "Power iteration, 100 nodes, IID, the bytes of whole vectors in one bit, header included: nodes that keep and "
        "hear nothing have at most 1/300 of EDEN's error in round 40, by a memory at the server or by auto.",
        lambda tables: _nodes(tables, (f"{HYBRID} int8", f"{EPOCHS_HYBRID} int8", BEST), 40, 300),
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "nodes-broadcast",
        PLACE,
        "Power iteration, 100 nodes, IID, the bytes of whole vectors in one bit, header included: nodes that hear the "
        "last mean have at most 1/100 of EDEN's error in round 3, by sending the difference to it or by auto.",
        lambda tables: _nodes(tables, (RELATIVE, AUTO["broadcast"]), 3, 100),
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "nodes-stateful",
        PLACE,
        "Power iteration, 100 nodes, IID, the bytes of whole vectors in one bit, header included: nodes that keep a "
        "vector have at most 1/1,000 of EDEN's error in round 10, by sending the difference to it or by auto.",
        lambda tables: _nodes(tables, (DIFFERENCE, AUTO["stateful"]), 10, 1000),
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "eden-figures",
        PLACE,
        "n = 10 Gaussian vectors, d = 65,536: whole vectors in EDEN's 1, 2, 3 and 4 bits have an NMSE·n within 3 % of "
        "0.571, 0.133, 0.036 and 0.0096, in less than a hundredth of a bit more.",
        _eden,
        full_size=True,
        source=OWN,
    ),
    Claim(
        "auto-unlike",
        PLACE,
        "n = 10, d = 65,536, vectors that have nothing in common, 3.2 bits a coordinate: the error of auto is at most "
        "1.1 times that of EDEN.",
        lambda tables: _gaussian(tables, UNLIKE, MANY, 1.1),
        "Mean over all rounds but the first, vectors new in each.",
        full_size=True,
        source=OWN,
    ),
    Claim(
        "auto-alike",
        PLACE,
        "n = 10, d = 65,536: with R2/R1 = 8.9 of 9 at 3.2 bits a coordinate the error of auto is at most that of EDEN, "
        "with 8.91 at 1.8 bits at most a quarter of it.",
        lambda tables: [*_gaussian(tables, ALIKE, MANY, 1.0), *_gaussian(tables, MORE_ALIKE, FEW, 0.25)],
        "Mean over all rounds but the first, vectors new in each.",
        full_size=True,
        source=OWN,
    ),
    Claim(
        "auto-network",
        PLACE,
        "Updates of a federated network, digits, 8 nodes, Dirichlet 0.5, 4.6 kB a node: the error of auto is at most a "
        "third of that of the best scheme with int4 whose server remembers nothing.",
        lambda tables: [
            check
            for rate in (SWIFT, SLOW)
            for check in _network(tables, [name for name in INT4 if "hybrid" not in name], rate)
        ],
        "Mean of all rounds but the first; nodes count by their rows.",
        source=OWN,
    ),
    Claim(
        "auto-network-memory",
        PLACE,
        "Updates of a federated network, digits, 8 nodes, Dirichlet 0.5, 4.6 kB a node: the error of auto is at most a "
        "third of that of the best scheme with int4, those included whose server remembers nodes.",
        lambda tables: [check for rate in (SWIFT, SLOW) for check in _network(tables, INT4, rate)],
        "Mean of all rounds but the first; nodes count by their rows.",
        why="A hybrid memory takes off a third to two thirds of int4's error here.",
        source=OWN,
    ),
)
