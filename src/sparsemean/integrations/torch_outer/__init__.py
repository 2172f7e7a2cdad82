"""Outer-loop averaging (LocalSGD, DiLoCo): workers train by themselves, and exchange how far they came every H steps.

    outer = OuterMean(model, GroupLink(sm.named("auto", bytes=70_000)), every=50)
    outer.join()
    outer.step()  # after each step of the local optimiser

A worker is a node, an exchange a round: x = parameters − broadcast goes through any scheme, and the mean of the workers
that came moves the broadcast by an outer optimiser that all of them apply alike.
"""

try:
    import torch  # noqa: F401
except ImportError as missing:
    raise ImportError(
        "sparsemean.integrations.torch_outer needs PyTorch: pip install 'sparsemean[torch]'", name="torch"
    ) from missing

from sparsemean.integrations.torch_outer.group import GroupLink
from sparsemean.integrations.torch_outer.hub import Hub, Member
from sparsemean.integrations.torch_outer.link import Link, LinkBroken
from sparsemean.integrations.torch_outer.optimiser import OuterSGD, Position
from sparsemean.integrations.torch_outer.outer import OuterMean, run_of
from sparsemean.integrations.torch_outer.rehearsal import Rehearsal
from sparsemean.integrations.torch_outer.service import HttpLink

__all__ = [
    "GroupLink",
    "HttpLink",
    "Hub",
    "Link",
    "LinkBroken",
    "Member",
    "OuterMean",
    "OuterSGD",
    "Position",
    "Rehearsal",
    "run_of",
]
