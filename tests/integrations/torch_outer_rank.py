"""One rank of the tests of outer averaging, a process of its own: torch_outer_rank.py RANK RANKS FOLDER CASE….

Its findings go to FOLDER, as found-RANK.pt.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import sparsemean as sm
from sparsemean.integrations.torch_outer import GroupLink, OuterMean, OuterSGD

EVERY, ROUNDS = 2, 3
TWO_BITS = sm.named("error-feedback-chunked-top-k", k=0.1, chunk=256, values="2-bit", decay=0.95)
SCHEMES: dict[str, tuple[sm.Scheme, sm.Scheme | None]] = {
    "dense": (sm.named("identity"), None),
    "auto": (sm.named("auto", bytes=600), None),
    "broadcast": (sm.named("auto", bytes=600, node="broadcast"), sm.named("identity", values="eden-2")),
    "stateful": (sm.named("auto", bytes=600, node="stateful"), None),
    "eden": (sm.named("identity", values="eden-1"), None),
    "sparse": (TWO_BITS, TWO_BITS),
    "hybrid": (sm.named("rand-k-balanced-hybrid", k=0.2, values="int8"), None),
}
DILOCO = OuterSGD()
PATIENCE = timedelta(seconds=300)


def model(seed: int = 0, dtype: torch.dtype = torch.float32) -> Any:
    """2,000 parameters or so, and a layer that is not trained."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(20, 40), nn.Tanh(), nn.Linear(40, 30), nn.Tanh(), nn.Linear(30, 5)).to(dtype)
    frozen = nn.Linear(5, 5).to(dtype)
    frozen.requires_grad_(False)
    return net.append(frozen)


def batch(worker: int, step: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1000 * worker + step)
    x = torch.randn(16, 20, generator=draw)
    return x, (x[:, :5].argmax(dim=1) + (torch.rand(16, generator=draw) < 0.1)) % 5


def local(net: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW([each for each in net.parameters() if each.requires_grad], lr=0.01)


def train_step(net: Any, optimiser: torch.optim.Optimizer, worker: int, step: int) -> None:
    x, y = batch(worker, step)
    optimiser.zero_grad()
    x = x.to(next(net.parameters()).dtype)
    torch.autograd.backward(nn.functional.cross_entropy(net(x).float(), y))
    optimiser.step()


def whole(net: nn.Module) -> dict[str, Tensor]:
    """A copy of the parameters that are trained, sharded ones gathered."""
    named = net.module.named_parameters() if isinstance(net, DistributedDataParallel) else net.named_parameters()
    found = {
        name: each.full_tensor() if hasattr(each, "full_tensor") else each for name, each in named if each.requires_grad
    }
    return {name: each.detach().float().clone() for name, each in found.items()}


def trained(net: nn.Module, outer: OuterMean, worker: int, steps: int = EVERY * ROUNDS) -> list[dict[str, Tensor]]:
    """The parameters after each exchange."""
    optimiser, after = local(net), []
    for step in range(steps):
        train_step(net, optimiser, worker, step)
        if outer.step():
            after.append(whole(net))
    return after


def joined(net: nn.Module, link: GroupLink | None, optimiser: OuterSGD = DILOCO) -> OuterMean:
    outer = OuterMean(net, link, EVERY, optimiser)
    outer.join()
    return outer


def every_scheme(folder: Path) -> dict[str, Any]:
    """Workers begin with other parameters each, which joining makes those of the first."""
    found = {}
    for name, (scheme, down) in SCHEMES.items():
        rank = dist.get_rank()
        net = model(seed=rank)
        link = GroupLink(scheme, down)
        outer = joined(net, link)
        begun = whole(net)
        after = trained(net, outer, rank)
        found[name] = {"begun": begun, "after": after, "bytes": [link.sent, link.received], "live": list(link.live)}
    return found


def bfloat16(folder: Path) -> dict[str, Any]:
    """Two exchanges in which nobody has moved follow on training, without outer momentum."""
    net = model(dtype=torch.bfloat16)
    outer = joined(net, GroupLink(sm.named("identity")), OuterSGD(0.7, 0.0))
    after = trained(net, outer, dist.get_rank())
    at = []
    for _ in range(2):
        outer.exchange()
        at.append(torch.from_numpy(outer.position.at.copy()))
    exact = at[0] == at[0].bfloat16().float()
    return {"at": torch.stack(at), "after": after, "exact": float(exact.float().mean())}


def resumed(folder: Path) -> dict[str, Any]:
    """Seven steps in one go, against five, in the middle of a round, a checkpoint of each rank, and two more."""
    rank, found = dist.get_rank(), {}
    for name, (scheme, down) in SCHEMES.items():
        net = model()
        outer, optimiser = joined(net, GroupLink(scheme, down)), local(net)
        for step in range(9):
            if step == 5:
                parts: dict[str, Any] = {"model": net, "local": optimiser, "outer": outer}
                torch.save({key: part.state_dict() for key, part in parts.items()}, folder / f"{name}-{rank}.pt")
            train_step(net, optimiser, rank, step)
            outer.step()
        straight = whole(net)
        saved = torch.load(folder / f"{name}-{rank}.pt", weights_only=True)
        net = model(seed=9)
        net.load_state_dict(saved["model"])
        (optimiser := local(net)).load_state_dict(saved["local"])
        outer = OuterMean(net, GroupLink(scheme, down), EVERY)
        outer.load_state_dict(saved["outer"])
        changed = outer.join()
        for step in range(5, 9):
            train_step(net, optimiser, rank, step)
            outer.step()
        found[name] = {"straight": straight, "again": whole(net), "changed": changed, "round": outer.round}
    return found


def shared_modules(folder: Path) -> dict[str, Any]:
    """Two workers of two ranks each: plain (the ranks of each do the same), in DDP, and sharded."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    rank = dist.get_rank()
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    leaders, worker = dist.new_group([0, 2]), rank // 2
    scheme, down = SCHEMES["auto"]
    found: dict[str, Any] = {}
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("worker", "shard"))["shard"]
    for kind in ("plain", "ddp", "sharded"):
        net = model()
        if kind == "ddp":
            net = DistributedDataParallel(net, process_group=pairs[worker])
        elif kind == "sharded":
            for part in (net[0], net[2], net):
                fully_shard(part, mesh=mesh)
        alone = rank % 2 == 0
        if kind == "plain" and not alone:
            continue
        outer = joined(net, GroupLink(scheme, down, leaders) if alone else None)
        found[kind] = trained(net, outer, worker)
        found[f"{kind} position"] = outer.position.at.size
    return found


def not_a_number(folder: Path) -> dict[str, Any]:
    """The last worker's parameters become NaN; the others go on, and it comes back by ``reset``."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    net = model()
    outer = joined(net, GroupLink(sm.named("identity")))
    start = outer.position.at.copy()
    with torch.no_grad():
        net[2].weight[1, 1] = float("nan") if rank == last else net[2].weight[1, 1] + rank + 1
    said = told(outer.exchange)
    kept = bool(net[2].weight.isnan().any())
    outer.reset()
    moved = torch.from_numpy(outer.position.at - start)
    outer.exchange()
    return {"said": said, "kept": kept, "moved": moved[moved != 0], "round": outer.round, "after": whole(net)}


def told(action: Callable[[], object]) -> str:
    """What it is refused with."""
    try:
        action()
    except Exception as refused:
        return f"{type(refused).__name__}: {refused}"
    return ""


def differing(folder: Path) -> dict[str, Any]:
    """The last worker has something of its own; each is told what."""
    odd = dist.get_rank() == dist.get_world_size() - 1
    plain = sm.named("identity")

    def dense(**more: Any) -> GroupLink:
        return GroupLink(plain, **more)

    made: dict[str, Callable[[], OuterMean]] = {
        "optimiser": lambda: joined(model(), dense(), OuterSGD(0.5 if odd else 0.7)),
        "model": lambda: joined(nn.Linear(3, 2) if odd else nn.Linear(2, 2), dense()),
        "scheme": lambda: joined(model(), GroupLink(sm.named("rand-k", k=5) if odd else plain)),
        "seed": lambda: joined(model(), dense(seed=int(odd))),
        "down": lambda: joined(model(), dense(down=sm.named("identity", values="int8") if odd else None)),
        "name": lambda: joined(model(), dense(name="same")),
    }
    return {name: told(make) for name, make in made.items()}


def alone_refused(folder: Path) -> dict[str, str]:
    """What a single rank is told."""
    broken = model()
    with torch.no_grad():
        broken[0].weight[0, 0] = float("inf")
    frozen = model().requires_grad_(False)
    link = GroupLink(
        sm.named("identity"), group=[dist.new_group([r]) for r in range(dist.get_world_size())][dist.get_rank()]
    )
    net = model()
    outer = OuterMean(net, link, 1)
    changing = model()
    grown = joined(changing, link)
    changing.append(nn.Linear(5, 5))
    state = outer.state_dict()
    return {
        "not joined": told(outer.step),
        "begin with infinity": told(lambda: OuterMean(broken, link, 1)),
        "frozen": told(lambda: OuterMean(frozen, link, 1)),
        "no link": told(lambda: OuterMean(model(), None, 1)),
        "every": told(lambda: OuterMean(model(), link, 0)),
        "integers": told(
            lambda: OuterMean(nn.ParameterList([nn.Parameter(torch.ones(3, dtype=torch.cfloat))]), link, 1)
        ),
        "grown": told(grown.exchange),
        "planned down": told(lambda: OuterMean(model(), GroupLink(sm.named("identity"), SCHEMES["auto"][0]), 1)),
        "half a state": told(lambda: outer.load_state_dict({"version": 1})),
        "another size": told(lambda: outer.load_state_dict({**state, "at": torch.zeros(3)})),
        "rate": told(lambda: OuterSGD(rate=0.0)),
        "another optimiser": told(lambda: OuterMean(model(), link, 1, optimiser=local(model()))),  # type: ignore[arg-type]
        "a name": told(lambda: GroupLink("auto")),  # type: ignore[arg-type]
    }


def killed(folder: Path) -> dict[str, Any]:
    """Rank 2 dies while it trains; the others play two rounds, and it returns as a new process to a new group."""
    rank, back = dist.get_rank(), (folder / "died").exists()
    scheme, down = SCHEMES["sparse"]
    net = model(seed=rank)
    optimiser = local(net)
    link = GroupLink(scheme, down, name=f"worker-{rank}", minimum=2)
    outer, found = OuterMean(net, link, EVERY), {}
    if not back:
        outer.join()
        for step in range(3 * EVERY):
            if rank == 2 and step == EVERY + 1:
                (folder / "died").touch()
                os._exit(9)
            train_step(net, optimiser, rank, step)
            outer.step()
        found = {"live": list(link.live) if rank == 0 else [], "without": whole(net), "round": outer.round}
        dist.destroy_process_group()
        found["let go"] = told(outer.exchange)
        connect(rank, dist_ranks, folder / "second")
        link.bind()
    found["changed"] = outer.join()
    for step in range(3 * EVERY, 5 * EVERY):
        train_step(net, optimiser, rank, step)
        outer.step()
    found |= {"all": whole(net), "last": outer.round, "live again": list(link.live)}
    return found


def broken(folder: Path) -> dict[str, Any]:
    """Rank 0 dies; the others say so with their state as it was, and go on by themselves in a new group.

    There they are too few for a round, until fewer will do.
    """
    rank = dist.get_rank()
    net = model(seed=rank)
    optimiser = local(net)
    link = GroupLink(SCHEMES["stateful"][0], name=f"worker-{rank}")
    outer = joined(net, link)
    for step in range(EVERY + 1):
        train_step(net, optimiser, rank, step)
        outer.step()
    if rank == 0:
        os._exit(9)
    before, at = whole(net), outer.position.at.copy()
    said = told(outer.exchange)
    same = all(torch.equal(each, whole(net)[name]) for name, each in before.items()) and bool(
        (at == outer.position.at).all()
    )
    dist.destroy_process_group()
    connect(rank - 1, dist_ranks - 1, folder / "second")
    link.bind()
    changed = outer.join()
    outer.exchange()
    train_step(net, optimiser, rank, EVERY + 1)
    link.minimum, before = 3, whole(net)
    few = told(outer.exchange)
    few_same = all(torch.equal(each, whole(net)[name]) for name, each in before.items()) and outer.round == 2
    link.minimum = 2
    link.bind()
    outer.join()
    outer.exchange()  # of a round that has these payloads already
    found = {"said": said, "same": same, "changed": changed, "few": few, "few same": few_same}
    return {**found, "round": outer.round, "after": whole(net)}


CASES = [every_scheme, bfloat16, resumed, shared_modules, not_a_number, differing, alone_refused, killed, broken]
dist_ranks = 0


def connect(rank: int, ranks: int, meeting: Path) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks, timeout=PATIENCE)


def main() -> None:
    global dist_ranks
    rank, dist_ranks, folder, *names = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:]
    torch.set_num_threads(1)
    connect(rank, dist_ranks, folder / ("second" if (folder / "died").exists() else "first"))
    found = {case.__name__: case(folder) for case in CASES if case.__name__ in names}
    torch.save(found, folder / f"found-{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
