"""Train on two processes with dense gradients, PowerSGD and sparsemean: bytes, loss and accuracy in one table.

python examples/ddp/train.py            # a few minutes on two cores; writes ddp.png here
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from methods import Dense, Method, Ours, PowerSGD, counted_all_reduces
from task import Pictures, network
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import sparsemean as sm

RANKS = 2


@dataclass(frozen=True)
class Course:
    """What is done with every method."""

    epochs: int = 5
    batch: int = 64  # a rank and step
    rate: float = 0.1
    momentum: float = 0.9


@dataclass(frozen=True)
class Outcome:
    """What one method came to: bytes a rank handed to collectives per compressed step, losses, accuracy."""

    name: str
    bytes: int
    losses: tuple[float, ...]
    accuracy: float


def trained(method: Method, pictures: Pictures, course: Course) -> Outcome:
    """Train from the start, this rank with every RANKS-th picture."""
    rank = dist.get_rank()
    # One bucket: PowerSGD chains collectives, which with several buckets gloo does not bear.
    model = DistributedDataParallel(network(pictures.train.shape[1]), bucket_cap_mb=25)
    state = method.register(model)
    optimiser = torch.optim.SGD(model.parameters(), course.rate, course.momentum)
    steps = course.epochs * (len(pictures.train) // (RANKS * course.batch))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, course.rate, max(steps, 10))
    order = torch.Generator().manual_seed(1)
    losses: list[float] = []
    last_bytes = 0
    for _ in range(course.epochs):
        shuffled = torch.randperm(len(pictures.train), generator=order)
        total, count = torch.zeros(()), 0
        for rows in shuffled.split(RANKS * course.batch):
            if len(rows) < RANKS * course.batch:
                break
            mine = rows[rank::RANKS]
            loss = nn.functional.cross_entropy(model(pictures.train[mine]), pictures.train_classes[mine])
            optimiser.zero_grad()
            with counted_all_reduces() as seen:
                loss.backward()
            last_bytes = sum(seen) if state is None else state.bytes
            optimiser.step()
            schedule.step()
            total, count = total + loss.detach(), count + 1
        dist.all_reduce(total)
        losses.append(float(total) / (RANKS * count))
    outcome = Outcome(method.name, last_bytes, tuple(losses), accuracy(model.module, pictures))
    if rank == 0:
        print(f"{outcome.name}: {outcome.bytes:,} bytes, {outcome.losses[-1]:.3f}, {outcome.accuracy:.1%}", flush=True)
    return outcome


@torch.no_grad()
def accuracy(model: nn.Module, pictures: Pictures) -> float:
    hits = [
        int((model(some).argmax(dim=1) == classes).sum())
        for some, classes in zip(pictures.test.split(1000), pictures.test_classes.split(1000), strict=True)
    ]
    return sum(hits) / len(pictures.test)


def share_of(budget: int, pictures: Pictures, bytes_each: float) -> float:
    """The share of coordinates that takes as many bytes as the budget; small tensors go whole in any case."""
    sizes = [parameter.numel() for parameter in network(pictures.train.shape[1]).parameters()]
    whole = sum(4 * size for size in sizes if size < 1024)
    return (budget - whole) / (bytes_each * sum(size for size in sizes if size >= 1024))


def compared(pictures: Pictures, course: Course) -> list[Outcome]:
    """Every method, those of sparsemean at the bytes that PowerSGD took."""
    outcomes = [trained(Dense(), pictures, course), trained(PowerSGD(rank=4), pictures, course)]
    budget = outcomes[-1].bytes
    exact, int8, int4 = (share_of(budget, pictures, each) for each in (4, 1 + 1 / 128, 1 / 2 + 1 / 128))
    ours: Sequence[Ours] = (
        Ours("rand-k, shared", sm.Scheme(sm.RandK(exact, shared=True))),
        Ours("rand-k, spatial", sm.named("rand-k-spatial-avg", k=exact)),
        Ours("rand-k, spatial, int8", sm.named("rand-k-spatial-avg", k=int8, values="int8")),
        Ours("rand-k, hybrid, int8", sm.named("rand-k-hybrid", k=int8, values="int8")),
        Ours("rand-k, spatial, int4", sm.named("rand-k-spatial-avg", k=int4, values="int4")),
    )
    return outcomes + [trained(method, pictures, course) for method in ours]


def rank_main(rank: int, meeting: str, pictures: Pictures, course: Course, found: str) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=RANKS)
    outcomes = compared(pictures, course)
    if rank == 0:
        torch.save([vars(outcome) for outcome in outcomes], found)
    dist.destroy_process_group()


def table(outcomes: Sequence[Outcome]) -> str:
    heads = ("gradients averaged by", "bytes a step", "of dense", "loss", "accuracy")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for outcome in outcomes:
        share = outcome.bytes / outcomes[0].bytes
        lines.append(
            f"| {outcome.name} | {outcome.bytes:,} | {share:.1%} | {outcome.losses[-1]:.3f} | {outcome.accuracy:.1%} |"
        )
    return "\n".join(lines)


def plot(outcomes: Sequence[Outcome], name: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for outcome in outcomes:
        label = f"{outcome.name} ({outcome.bytes / 1000:,.0f} kB, {outcome.accuracy:.1%})"
        axes.plot(range(1, len(outcome.losses) + 1), outcome.losses, label=label)
    axes.set(xlabel="epoch", ylabel="training loss", title=f"{name}, {RANKS} processes (kB a step, test accuracy)")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=["cifar-10", "digits"], help="CIFAR-10 if it is found, else the digits")
    parser.add_argument("--pictures", type=int, default=10_000, help="how many to train on at most")
    parser.add_argument("--epochs", type=int, default=Course.epochs)
    parser.add_argument("--rate", type=float, default=Course.rate, help="the largest learning rate")
    parser.add_argument("--quick", action="store_true", help="one epoch of the digits, to see that all works")
    parser.add_argument("--plot", type=Path, default=Path("ddp.png"))
    given = parser.parse_args()
    course = Course(epochs=1 if given.quick else given.epochs, rate=given.rate)
    pictures = Pictures.load("digits" if given.quick else given.data, given.pictures)
    with tempfile.TemporaryDirectory() as folder:
        found = f"{folder}/found.pt"
        mp.spawn(rank_main, (f"{folder}/meeting", pictures, course, found), nprocs=RANKS)
        outcomes = [Outcome(**fields) for fields in torch.load(found, weights_only=True)]
    print(f"\n{pictures.name}: {len(pictures.train):,} pictures, {course.epochs} epochs, {RANKS} processes\n")
    print(table(outcomes))
    plot(outcomes, pictures.name, given.plot)
    print(f"\nplot: {given.plot}")


if __name__ == "__main__":
    main()
