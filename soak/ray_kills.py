"""Fronts, shards and the coordinator of a RayServer are killed under load: no receipt is broken, no mean differs.

    python soak/ray_kills.py [--kills 50] [--seed 0]

So many kills of each kind, in any order. The means are those of a Server that accepts in the order of each estimate's
``nodes``, to the bit. Ray runs in a network of its own, where that is permitted.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "integrations"))
from ray_load import Judge  # type: ignore[import-not-found]
from ray_session import two_nodes  # type: ignore[import-not-found]
from test_ray import alone  # type: ignore[import-not-found]

INSIDE = "SPARSEMEAN_RAY_ALONE"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    if INSIDE not in os.environ:
        inside = {**os.environ, INSIDE: "1", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
        command = [*alone(), sys.executable, *sys.argv]
        sys.exit(subprocess.run(command, env={**inside, "RAY_worker_niceness": "0"}, check=False).returncode)
    victims = [victim for victim in ("front", "shard", "coordinator") for _ in range(told.kills)]
    random.Random(told.seed).shuffle(victims)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="spmr", ignore_cleanup_errors=True) as name:
        cluster = two_nodes(name)
        judge = Judge(cluster.address, Path(name), told.seed)
        try:
            for victim in victims:
                judge.kill(victim)
                print(f"\r{judge.kills}, {len(judge.rounds)} rounds, wrong: {judge.wrong}", end="", flush=True)
            found = judge.end()
        finally:
            judge.stop()
            cluster.shutdown()
    print(f"\n{found['kills']} in {found['rounds']} rounds, {time.monotonic() - started:.0f} s")
    sys.exit("\n".join(found["wrong"]) if found["wrong"] else None)


if __name__ == "__main__":
    main()
