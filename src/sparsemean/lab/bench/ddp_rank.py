"""One rank of the benchmark of the DDP hook, a process of its own: ddp_rank FOLDER SETTINGS RANK."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook, fp16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from sparsemean.integrations.torch_ddp import State, hook
from sparsemean.lab.bench.ddp import DENSE, FP16, POWER, SCHEMES

LAYERS, BATCH, WARM_UP = 4, 32, 1
"""Layers, rows a step and rank, and dense steps before compression; as many compressed ones are not timed."""
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
    model = DistributedDataParallel(network(settings["parameters"]))
    states = {name: State(SCHEMES[name], model, start_iter=WARM_UP) for name in names if name in SCHEMES}
    hooks = {DENSE: (None, allreduce_hook), FP16: (None, fp16_compress_hook)}
    switch = Switch(model, {**hooks, **{name: (state, hook) for name, state in states.items()}})
    played = dict.fromkeys(names, (model, switch))
    if POWER in names:  # it chains collectives, which with several buckets gloo does not bear
        one_bucket = DistributedDataParallel(network(settings["parameters"]), bucket_cap_mb=PLENTY)
        state = PowerSGDState(None, 4, start_powerSGD_iter=2, min_compression_rate=1)
        played[POWER] = one_bucket, Switch(one_bucket, {POWER: (state, powerSGD_hook)})
    found: dict[str, Any] = {name: {"seconds": [], "processor": [], "peak": None} for name in names}
    width = next(model.parameters()).shape[1]
    data = torch.randn(BATCH, width, generator=torch.Generator().manual_seed(rank))
    for number in range(2 * WARM_UP + settings["repeats"]):
        for name in names:
            trained, its_switch = played[name]
            its_switch.now = name
            took = stepped(trained, data)
            if number >= 2 * WARM_UP:
                note(found[name], took, states.get(name), ranks)
    size = sum(parameter.numel() for parameter in model.parameters())
    Path(folder, f"{rank}.json").write_text(json.dumps({"parameters": size, "methods": found}), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


class Took(NamedTuple):
    """What a backward pass took: seconds, processor time, rise of the memory, and bytes handed to all-reduces."""

    seconds: float
    processor: float
    peak: int | None
    reduced: int


def note(found: dict[str, Any], took: Took, state: State | None, ranks: int) -> None:
    """Add a step to what was found of a method."""
    found["seconds"].append(took.seconds)
    found["processor"].append(took.processor)
    found["peak"] = None if took.peak is None else max(found["peak"] or 0, took.peak)
    gathered = 0 if state is None or state.reduces else state.bytes
    found["bytes"] = took.reduced + gathered
    found["moved"] = round(2 * (ranks - 1) / ranks * took.reduced + (ranks - 1) * gathered)


def stepped(model: nn.Module, data: torch.Tensor) -> Took:
    """Take one step, and measure its backward pass."""
    model.zero_grad()
    loss = model(data).square().mean()
    dist.barrier()
    with counted_all_reduces() as seen:
        before = resident(anew=True)
        start, used = time.perf_counter(), time.process_time()
        torch.autograd.backward(loss)
        seconds, processor = time.perf_counter() - start, time.process_time() - used
        after = resident()
    peak = None if before is None or after is None else max(0, after.most - before.now)
    return Took(seconds, processor, peak, sum(seen))


@contextmanager
def counted_all_reduces() -> Iterator[list[int]]:
    """The bytes of every tensor handed to an all-reduce, which PyTorch's own hooks do not count."""
    seen: list[int] = []
    reduce = dist.all_reduce

    def counting(given: torch.Tensor, *positional: Any, **named: Any) -> Any:
        seen.append(given.nbytes)
        return reduce(given, *positional, **named)

    dist.all_reduce = counting  # type: ignore[assignment]
    try:
        yield seen
    finally:
        dist.all_reduce = reduce


class Resident(NamedTuple):
    """Bytes of memory in use, and the most that were since somebody asked anew."""

    now: int
    most: int


def resident(anew: bool = False) -> Resident | None:
    """Of this process, the most from now on if ``anew``; None where the system does not tell."""
    try:
        if anew:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        return Resident(*(int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM")))
    except (OSError, KeyError, ValueError):
        return None


if __name__ == "__main__":
    main()
