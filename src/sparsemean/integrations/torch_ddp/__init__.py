"""A communication hook for PyTorch's DistributedDataParallel: ranks average a few coordinates of their gradients.

    model = DistributedDataParallel(net)
    state = State(sm.named("rand-k-spatial-avg", k=0.05), model)
    model.register_comm_hook(state, hook)

A rank is a node, named "0", "1", …; a step is a round. Every parameter tensor has a Run of its own (``State.run``),
with a seed made from its name, so results do not depend on how DDP groups tensors into buckets: it may rebuild them,
and training may resume with others. Each bucket takes one collective of one tensor per rank. All ranks decode what was
sent in the same order, so all get the same mean, bit for bit: the one that ``sparsemean.Server`` would give.
"""

try:
    import torch  # noqa: F401
except ImportError as missing:
    raise ImportError(
        "sparsemean.integrations.torch_ddp needs PyTorch: pip install 'sparsemean[torch]'", name="torch"
    ) from missing

from sparsemean.integrations.torch_ddp.hook import hook
from sparsemean.integrations.torch_ddp.state import State

__all__ = ["State", "hook"]
