"""One rank of the benchmark of the DDP hook, a process of its own: ddp_rank FOLDER SETTINGS RANK."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook, fp16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from sparsemean.integrations.torch_ddp import State, hook
from sparsemean.lab.bench.ddp import DENSE, FP16, POWER, SCHEMES

LAYERS, BATCH, WARM_UP = 4, 32, 3
PLENTY = 1 << 20  # megabytes: one bucket
Hook = Callable[[Any, Any], Any]


class Switch:
    """A hook for all methods of one model, of which DDP takes one only: the method that ``now`` names."""

    def __init__(self, model: DistributedDataParallel, hooks: dict[str, tuple[Any, Hook]]) -> None:
        self.hooks, self.now = hooks, next(iter(hooks))
        model.register_comm_hook(self, _switched)


def _switched(switch: Switch, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:  # type: ignore[name-defined]
    state, chosen = switch.hooks[switch.now]
    found: torch.futures.Future[torch.Tensor] = chosen(state, bucket)
    return found


def network(parameters: int) -> nn.Module:
    """Linear layers of equal size, with biases."""
    torch.manual_seed(0)
    width = max(2, round((parameters / LAYERS) ** 0.5))
    layers: list[nn.Module] = []
    for _ in range(LAYERS):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def main() -> None:
    folder, settings, rank = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
    ranks, names = settings["ranks"], settings["methods"]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    parameters = settings["parameters"]
    many = DistributedDataParallel(network(parameters))
    hooks: dict[str, tuple[Any, Hook]] = {}
    for name in names:
        if name in SCHEMES:
            hooks[name] = State(SCHEMES[name], many, start_iter=1), hook
    plain = {DENSE: (None, allreduce_hook), FP16: (None, fp16_compress_hook)}
    switches = {name: Switch(many, {**plain, **hooks}) for name in (DENSE,)}
    of_name = dict.fromkeys([*plain, *hooks], switches[DENSE])
    models = dict.fromkeys(of_name, many)
    if POWER in names:  # it chains collectives, which with several buckets gloo does not bear
        one = DistributedDataParallel(network(parameters), bucket_cap_mb=PLENTY)
        state = PowerSGDState(None, 4, start_powerSGD_iter=2, min_compression_rate=1)
        of_name[POWER], models[POWER] = Switch(one, {POWER: (state, powerSGD_hook)}), one
    found: dict[str, Any] = {name: {"seconds": [], "processor": [], "peak": None} for name in names}
    data = torch.randn(BATCH, next(many.parameters()).shape[1], generator=torch.Generator().manual_seed(rank))
    for number in range(WARM_UP + settings["repeats"]):
        for name in names:
            of_name[name].now = name
            seconds, processor, peak, seen = step(models[name], data)
            if number >= WARM_UP:
                found[name]["seconds"].append(seconds)
                found[name]["processor"].append(processor)
                found[name]["peak"] = None if peak is None else max(found[name]["peak"] or 0, peak)
            reduced, gathered = seen
            found[name]["bytes"] = reduced + gathered
            found[name]["moved"] = round(2 * (ranks - 1) / ranks * reduced + (ranks - 1) * gathered)
    size = sum(parameter.numel() for parameter in many.parameters())
    Path(folder, f"{rank}.json").write_text(json.dumps({"parameters": size, "methods": found}), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


def step(model: nn.Module, data: torch.Tensor) -> tuple[float, float, int | None, tuple[int, int]]:
    """Seconds of one backward pass, processor time, rise of the memory, and bytes handed to either collective."""
    model.zero_grad()
    loss = model(data).square().mean()
    with Counted() as counted:
        dist.barrier()
        before = resident(anew=True)
        start, used = time.perf_counter(), time.process_time()
        loss.backward()
        seconds, processor = time.perf_counter() - start, time.process_time() - used
    peak = None if before is None else resident()[1] - before[0]  # type: ignore[index]
    return seconds, processor, peak, (counted.reduced, counted.gathered)


class Counted:
    """The bytes handed to collectives by hooks that call them by their names in ``torch.distributed``, or ours."""

    def __enter__(self) -> "Counted":
        from sparsemean.integrations.torch_ddp import hook as _  # noqa: F401

        module: Any = sys.modules["sparsemean.integrations.torch_ddp.hook"]
        self.reduced = self.gathered = 0
        self._module, self._reduce, self._gather = module, dist.all_reduce, module._all_gather

        def reduce(given: torch.Tensor, *positional: Any, **named: Any) -> Any:
            self.reduced += given.nbytes
            return self._reduce(given, *positional, **named)

        def gather(received: torch.Tensor, given: torch.Tensor, *positional: Any, **named: Any) -> Any:
            self.gathered += given.nbytes
            return self._gather(received, given, *positional, **named)

        dist.all_reduce, module._all_gather = reduce, gather
        return self

    def __exit__(self, *_: object) -> None:
        dist.all_reduce, self._module._all_gather = self._reduce, self._gather


def resident(anew: bool = False) -> tuple[int, int] | None:
    """Bytes of memory that are in use, and the most that were since it was asked ``anew``; None where nobody tells."""
    try:
        if anew:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        now, most = (int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
        return now, most
    except (OSError, KeyError, ValueError):
        return None


if __name__ == "__main__":
    main()
