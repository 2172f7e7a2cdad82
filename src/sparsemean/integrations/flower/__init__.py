"""Flower: train replies as sparsemean payloads, by a mod at the nodes and a strategy that wraps yours.

app = ClientApp(mods=[sparsemean_mod])
strategy = SparseMean(inner=FedAvg(), scheme=sm.named("auto", k=0.05))
"""

try:
    import flwr  # noqa: F401
except ModuleNotFoundError:
    raise ModuleNotFoundError("the Flower integration needs flwr: pip install 'sparsemean[flower]'") from None

from sparsemean.integrations.flower.mod import SparseMeanMod, sparsemean_mod
from sparsemean.integrations.flower.recorder import Recorder
from sparsemean.integrations.flower.strategy import SparseMean

__all__ = ["Recorder", "SparseMean", "SparseMeanMod", "sparsemean_mod"]
