"""torchft's LocalSGD and DiLoCo as they are, with payloads in place of whole tensors.

manager = Manager(pg=SparseProcessGroup(sm.named("identity", values="eden-1")), …)
"""

try:
    import torchft  # noqa: F401
except ImportError as missing:
    raise ImportError(
        "sparsemean.integrations.torchft needs torchft: pip install 'sparsemean[torchft]'", name="torchft"
    ) from missing

from sparsemean.integrations.torchft.process_group import SparseProcessGroup

__all__ = ["SparseProcessGroup"]
