"""What nodes can run within a byte budget, by what they know besides their vector."""

from __future__ import annotations

from sparsemean._names import Knowledge, ValueName
from sparsemean.encoders import Difference, Identity, Relative
from sparsemean.errors import InvalidInput
from sparsemean.lab.byte_budget import finest_eden
from sparsemean.lab.compare.budget import Budget, scheme_within
from sparsemean.memory import Offset
from sparsemean.run import Run
from sparsemean.schemes import Scheme, named

EDEN, RELATIVE, DIFFERENCE = "identity eden", "relative eden", "difference eden"
"""Whole vectors, or their difference to the last broadcast or to a vector that the node keeps: as many bits as fit."""
AUTO: dict[Knowledge, str] = {"stateless": "auto", "broadcast": "auto-broadcast", "stateful": "auto-stateful"}

BY_KNOWLEDGE: dict[Knowledge, tuple[str, ...]] = {
    "stateless": (
        *(EDEN, "rand-k-spatial-adaptive int8", "rand-k-hybrid int8", "rand-k-epochs-hybrid int8"),
        AUTO["stateless"],
    ),
    "broadcast": (RELATIVE, AUTO["broadcast"]),
    "stateful": (DIFFERENCE, AUTO["stateful"]),
}
"""The schemes that are compared, by what a node knows."""
WORDS: dict[Knowledge, str] = {"stateless": "nothing", "broadcast": "the broadcast", "stateful": "a vector"}
"""What a node keeps or hears, for people."""


def node_scheme(name: str, dim: int, room: int) -> Scheme:
    """The scheme of that name whose payloads have at most ``room`` bytes, header included.

    Parameters
    ----------
    name
        One of ``BY_KNOWLEDGE``, or the name of a scheme, which may end in the kind of its values.
    dim
        d, how many coordinates there are.
    room
        Bytes per node and round.

    >>> node_scheme("relative eden", 784, 166) == whole_schemes("eden-1")[RELATIVE]
    True
    """
    for node, auto in AUTO.items():
        if name == auto:
            return named("auto", bytes=room, node=node)
    whole = whole_schemes(finest_eden(dim, room))
    found = whole[name] if name in whole else scheme_within(name, Budget(bytes=room), dim, 0.0)
    if found is None or Run(found, dim).payload_bytes > room:
        raise InvalidInput(f"{room} bytes are too few for {name} with {dim} coordinates; allow more")
    return found


def whole_schemes(values: ValueName) -> dict[str, Scheme]:
    """Whole vectors in these values, as nodes of each kind can send them."""
    whole = Identity()
    return {
        EDEN: Scheme(whole, values=values),
        RELATIVE: Scheme(Relative(whole), values=values),
        DIFFERENCE: Scheme(Difference(whole), memory=Offset(), values=values),
    }
