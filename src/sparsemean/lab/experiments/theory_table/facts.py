"""Facts that the library declares and enforces: which schemes need node state, are unbiased, fit together."""

from __future__ import annotations

from sparsemean._names import FixedScheme
from sparsemean.decoding.decoders import Spatial
from sparsemean.encoders import TopK, Wangni
from sparsemean.errors import IncompatibleScheme
from sparsemean.lab.experiments.theory_table.agreement import same
from sparsemean.lab.tables import TableRow
from sparsemean.memory import PerNode
from sparsemean.schemes import Scheme, named

OURS: tuple[FixedScheme, ...] = (
    "rand-k-spatial-max",
    "rand-k-spatial-avg",
    "rand-k-temporal",
    "rand-k-temporal-shared",
)
STATEFUL: tuple[FixedScheme, ...] = ("error-feedback-top-k", "error-feedback-rand-k", "diana", "lag")
UNBIASED: tuple[FixedScheme, ...] = ("rand-k", *OURS, "wangni", "induced")
BIASED: tuple[FixedScheme, ...] = ("top-k", "rtop-k")


def facts(trials: int, seed: int) -> list[TableRow]:
    """Counts of schemes of which something is true."""
    return [
        same("node-state-ours", f"schemes that need state at the node, of {', '.join(OURS)}", _stateful(OURS), 0),
        same("node-state-others", f"the same of {', '.join(STATEFUL)}", _stateful(STATEFUL), len(STATEFUL)),
        same("unbiased", f"unbiased schemes of {', '.join(UNBIASED)}", _unbiased(UNBIASED), len(UNBIASED)),
        same("biased", f"unbiased schemes of {', '.join(BIASED)}", _unbiased(BIASED), 0),
        same("compatible-top-k", "of Spatial and PerNode, how many take Top-k's samples", _accepting(TopK(0.1)), 2),
        same("compatible-wangni", "of Spatial and PerNode, how many take Wangni's values", _accepting(Wangni(0.1)), 0),
    ]


def _stateful(names: tuple[FixedScheme, ...]) -> int:
    return sum(named(name, 0.1).node_state for name in names)


def _unbiased(names: tuple[FixedScheme, ...]) -> int:
    return sum(named(name, 0.1).unbiased for name in names)


def _accepting(encoder: TopK | Wangni) -> int:
    accepted = 0
    for decoder, memory in ((Spatial("avg"), None), (None, PerNode())):
        try:
            Scheme(encoder, decoder, memory)
        except IncompatibleScheme:
            continue
        accepted += 1
    return accepted
