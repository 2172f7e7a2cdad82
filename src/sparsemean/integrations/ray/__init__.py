"""Ray: a server whose coordinates are shared out among actors, for states larger than one machine.

ray.init()
server = RayServer(run, shards=4, journal="/shared/journal")  # then as sparsemean.Server
"""

try:
    import ray  # noqa: F401
except ModuleNotFoundError:
    raise ModuleNotFoundError("the Ray integration needs ray: pip install 'sparsemean[ray]'") from None

from sparsemean.integrations.ray.ranges import ShardLost
from sparsemean.integrations.ray.server import RayServer
from sparsemean.integrations.ray.usage import Usage

__all__ = ["RayServer", "ShardLost", "Usage"]
