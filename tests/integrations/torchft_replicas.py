"""torchft with a real lighthouse and two replicas: torchft_replicas.py all FOLDER, in a network namespace of its own.

Each replica is a process: torchft_replicas.py KIND NAME LIGHTHOUSE PORT FOLDER; what it found is FOLDER/KIND-NAME.pt.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torchft.coordination import LighthouseServer
from torchft.local_sgd import DiLoCo
from torchft.manager import Manager
from torchft.process_group import ProcessGroupGloo

import sparsemean as sm
from sparsemean.integrations.torchft import SparseProcessGroup

PATIENCE = timedelta(seconds=60)
GROUPS: dict[str, Callable[[], Any]] = {
    "dense": lambda: ProcessGroupGloo(timeout=PATIENCE),
    "float32": lambda: SparseProcessGroup(sm.named("identity"), small=100),
    "killed": lambda: SparseProcessGroup(sm.named("identity", values="eden-1"), small=100),
}


def replica(kind: str, name: str, lighthouse: str, port: int, folder: Path) -> None:
    """DiLoCo of torchft as it is, over one of these groups; of "killed" b dies once and is started again."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    store = dist.TCPStore(  # type: ignore[attr-defined]
        "127.0.0.1", port, is_master=True, wait_for_workers=False
    )
    net = nn.Sequential(nn.Linear(20, 40), nn.Tanh(), nn.Linear(40, 5))
    local = torch.optim.AdamW(net.parameters(), lr=0.01)

    def load(state: dict[str, Any]) -> None:
        net.load_state_dict(state["net"])
        local.load_state_dict(state["local"])

    group, died = GROUPS[kind](), folder / "died"
    manager = Manager(
        pg=group,
        load_state_dict=load,
        state_dict=lambda: {"net": net.state_dict(), "local": local.state_dict()},
        min_replica_size=1 if kind == "killed" else 2,
        use_async_quorum=False,
        rank=0,
        world_size=1,
        store_addr="127.0.0.1",
        store_port=port,
        lighthouse_addr=lighthouse,
        replica_id=name,
        hostname="127.0.0.1",
        timeout=PATIENCE,
    )
    outer = torch.optim.SGD(net.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    until = folder / "until"  # the step to end with, which b writes once it has returned
    alone, step = 0, 0
    with DiLoCo(manager, [net], local, outer, sync_every=2):
        while manager.current_step() < 4 or (kind == "killed" and manager.current_step() < last_step(until)):
            draw = torch.Generator().manual_seed(1000 * ord(name) + step)
            x, y, step = torch.randn(16, 20, generator=draw), torch.randint(5, (16,), generator=draw), step + 1
            local.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(net(x), y))
            local.step()
            if manager.num_participants() == 1 and died.exists():
                alone += 1
                (folder / "alone").touch()
            if kind == "killed" and name == "b":
                if not died.exists() and manager.current_step() >= 1:
                    died.touch()
                    os._exit(9)
                if not until.exists() and died.exists() and manager.num_participants() == 2:
                    beside = folder / "beside"
                    beside.write_text(str(manager.current_step() + 10))
                    beside.replace(until)
            if kind == "killed":
                time.sleep(0.05)
    found = {"net": net.state_dict(), "alone": alone, "step": manager.current_step()}
    found |= {"sent": getattr(group, "sent", 0), "dense": getattr(group, "dense", 0)}
    torch.save(found, folder / f"{kind}-{name}.pt")
    manager.shutdown(wait=False)
    del store
    os._exit(0)  # the manager's threads do not end by themselves


def last_step(until: Path) -> int:
    return int(until.read_text()) if until.exists() else 1 << 30


def play(kind: str, lighthouse: str, folder: Path) -> None:
    """Two replicas, until both have ended well; one that was killed is started again."""

    def started(name: str, port: int) -> subprocess.Popen[bytes]:
        words = [sys.executable, __file__, kind, name, lighthouse, str(port), str(folder)]
        return subprocess.Popen(words)

    running = {"a": started("a", 29600), "b": started("b", 29601)}
    try:
        if kind == "killed":
            assert running["b"].wait(150) == 9
            end = time.monotonic() + 150
            while not (folder / "alone").exists():  # or b would be back before anybody missed it
                assert time.monotonic() < end, "waited 150 s for a to go on without b"
                time.sleep(0.1)
            running["b"] = started("b", 29602)
        codes = {name: process.wait(150) for name, process in running.items()}
        assert set(codes.values()) == {0}, (kind, codes)
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def main() -> None:
    kind, *rest = sys.argv[1:]
    if kind != "all":
        name, lighthouse, port, folder = rest
        replica(kind, name, lighthouse, int(port), Path(folder))
    quick: dict[str, Any] = {"join_timeout_ms": 2000, "heartbeat_timeout_ms": 3000}
    for number, each in enumerate(GROUPS):
        bound = f"127.0.0.1:{29510 + number}"
        server = LighthouseServer(bind=bound, min_replicas=1 if each == "killed" else 2, **quick)
        try:
            play(each, f"http://{bound}", Path(rest[0]))
        finally:
            with suppress(Exception):
                server.shutdown()


if __name__ == "__main__":
    main()
