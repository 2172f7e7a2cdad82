"""Train on two processes with dense gradients, PowerSGD and sparsemean: bytes, loss and accuracy in one table.

python examples/ddp/train.py            # ten minutes on two cores; writes ddp.png here
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
from methods import Dense, Fp16, Method, Ours, PowerSGD, counted_all_reduces
from task import MODELS, Pictures, network
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import sparsemean as sm

RANKS = 2
INT8, INT4 = 1 + 1 / 128, 1 / 2 + 1 / 128  # bytes a value


@dataclass(frozen=True)
class Course:
    """What is done with every method, once for each seed: of the weights, the order of the pictures, and the method."""

    model: str = "convolutions"
    seeds: int = 3
    epochs: int = 5
    batch: int = 64  # a rank and step
    rate: float = 0.1
    momentum: float = 0.9


@dataclass(frozen=True)
class Outcome:
    """What one method came to: bytes a rank handed to collectives per compressed step; by seed losses, accuracy."""

    name: str
    bytes: int
    losses: tuple[tuple[float, ...], ...]
    accuracies: tuple[float, ...]


def repeated(method: Method, pictures: Pictures, course: Course) -> Outcome:
    """Train with every seed."""
    sent, losses, accuracies = zip(
        *(trained(method, pictures, course, seed) for seed in range(course.seeds)), strict=True
    )
    outcome = Outcome(method.name, sent[0], losses, accuracies)
    if dist.get_rank() == 0:
        print(f"{outcome.name}: {outcome.bytes:,} bytes, {sum(accuracies) / len(accuracies):.1%}", flush=True)
    return outcome


def trained(method: Method, pictures: Pictures, course: Course, seed: int) -> tuple[int, tuple[float, ...], float]:
    """Train from the start, this rank with every RANKS-th picture: bytes of a step, losses, accuracy."""
    rank = dist.get_rank()
    # One bucket: PowerSGD chains collectives, which with several buckets gloo does not bear.
    model = DistributedDataParallel(network(course.model, pictures.train.shape[1], seed), bucket_cap_mb=25)
    state = method.register(model, seed)
    optimiser = torch.optim.SGD(model.parameters(), course.rate, course.momentum)
    steps = course.epochs * (len(pictures.train) // (RANKS * course.batch))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, course.rate, max(steps, 10))
    order = torch.Generator().manual_seed(seed + 1)
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
    return last_bytes, tuple(losses), accuracy(model.module, pictures)


@torch.no_grad()
def accuracy(model: nn.Module, pictures: Pictures) -> float:
    model.eval()
    hits = [
        int((model(some).argmax(dim=1) == classes).sum())
        for some, classes in zip(pictures.test.split(1000), pictures.test_classes.split(1000), strict=True)
    ]
    return sum(hits) / len(pictures.test)


def share_of(budget: int, pictures: Pictures, course: Course, bytes_each: float) -> float:
    """The share of coordinates that takes as many bytes as the budget; small tensors go whole in any case."""
    sizes = [parameter.numel() for parameter in network(course.model, pictures.train.shape[1]).parameters()]
    whole = sum(4 * size for size in sizes if size < 1024)
    return (budget - whole) / (bytes_each * sum(size for size in sizes if size >= 1024))


def compared(pictures: Pictures, course: Course, others: Sequence[int]) -> list[Outcome]:
    """Every method, those of sparsemean at the bytes of PowerSGD, rank 4; int4 at those of other ranks, too."""
    outcomes = [repeated(Dense(), pictures, course)]
    if others:
        outcomes.append(repeated(Fp16(), pictures, course))
    for rank in others:
        outcomes.append(repeated(PowerSGD(rank), pictures, course))
        budget = outcomes[-1].bytes
        int4 = named_at("rand-k-spatial-avg", share_of(budget, pictures, course, INT4), "int4")
        outcomes.append(repeated(Ours(f"rand-k, spatial, int4, as rank {rank}", int4), pictures, course))
    outcomes.append(repeated(PowerSGD(4), pictures, course))
    exact, int8, int4_ = (share_of(outcomes[-1].bytes, pictures, course, each) for each in (4, INT8, INT4))
    ours = (
        Ours("rand-k, shared", sm.Scheme(sm.RandK(exact, shared=True))),
        Ours("rand-k, spatial", sm.named("rand-k-spatial-avg", k=exact)),
        Ours("rand-k, spatial, int8", named_at("rand-k-spatial-avg", int8, "int8")),
        Ours("rand-k, hybrid, int8", named_at("rand-k-hybrid", int8, "int8")),
        Ours("rand-k, spatial, int4", named_at("rand-k-spatial-avg", int4_, "int4")),
    )
    if others:
        ours += (Ours("rand-k, balanced, int4", named_at("rand-k-balanced", int4_, "int4")),)
    return outcomes + [repeated(method, pictures, course) for method in ours]


def named_at(name: sm.SchemeName, k: float, values: sm.ValueName) -> sm.Scheme:
    return sm.named(name, k=k, values=values)


def rank_main(rank: int, meeting: str, pictures: Pictures, course: Course, others: Sequence[int], found: str) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=RANKS)
    outcomes = compared(pictures, course, others)
    if rank == 0:
        torch.save([vars(outcome) for outcome in outcomes], found)
    dist.destroy_process_group()


def table(outcomes: Sequence[Outcome]) -> str:
    heads = ("gradients averaged by", "bytes a step", "of dense", "loss", "accuracy", "from - to")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return "\n".join(lines + [row(outcome, outcomes[0]) for outcome in outcomes])


def row(outcome: Outcome, dense: Outcome) -> str:
    """Means over the seeds, and the least and largest accuracy."""
    last, found = [losses[-1] for losses in outcome.losses], outcome.accuracies
    loss, mean = sum(last) / len(last), sum(found) / len(found)
    share, band = outcome.bytes / dense.bytes, f"{100 * min(found):.1f} - {max(found):.1%}"
    return f"| {outcome.name} | {outcome.bytes:,} | {share:.1%} | {loss:.3f} | {mean:.1%} | {band} |"


def plot(outcomes: Sequence[Outcome], name: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for outcome in outcomes:
        losses = torch.tensor(outcome.losses)
        epochs = range(1, losses.shape[1] + 1)
        (line,) = axes.plot(epochs, losses.mean(dim=0), label=f"{outcome.name} ({outcome.bytes / 1000:,.0f} kB)")
        axes.fill_between(epochs, losses.amin(dim=0), losses.amax(dim=0), color=line.get_color(), alpha=0.15)
    axes.set(xlabel="epoch", ylabel="training loss", title=f"{name}, {RANKS} processes (kB a step, bands of all seeds)")
    axes.legend(fontsize="x-small")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=["cifar-10", "digits"], help="CIFAR-10 if it is found, else the digits")
    parser.add_argument("--pictures", type=int, default=10_000, help="how many to train on at most")
    parser.add_argument("--epochs", type=int, default=Course.epochs)
    parser.add_argument("--rate", type=float, default=Course.rate, help="the largest learning rate")
    parser.add_argument("--model", choices=list(MODELS), default=Course.model)
    parser.add_argument("--seeds", type=int, default=Course.seeds)
    parser.add_argument("--quick", action="store_true", help="one epoch of the digits, to see that all works")
    parser.add_argument("--plot", type=Path, default=Path("ddp.png"))
    given = parser.parse_args()
    course = Course(given.model, 1 if given.quick else given.seeds, 1 if given.quick else given.epochs, rate=given.rate)
    others = () if given.quick else (1, 2)
    pictures = Pictures.load("digits" if given.quick else given.data, given.pictures)
    with tempfile.TemporaryDirectory() as folder:
        found = f"{folder}/found.pt"
        mp.spawn(rank_main, (f"{folder}/meeting", pictures, course, others, found), nprocs=RANKS)
        outcomes = [Outcome(**fields) for fields in torch.load(found, weights_only=True)]
    print(
        f"\n{pictures.name}, {course.model}: {len(pictures.train):,} pictures, {course.epochs} epochs, "
        f"{course.seeds} seeds, {RANKS} processes\n"
    )
    print(table(outcomes))
    plot(outcomes, pictures.name, given.plot)
    print(f"\nplot: {given.plot}")


if __name__ == "__main__":
    main()
