"""Train 8 workers that exchange every 50 steps: held-out loss against bytes, and the time over slow links.

python examples/outer/train.py            # a quarter of an hour of processor time; --quick: seconds, on the digits
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from methods import Method, methods
from task import Task
from torch import nn

from sparsemean.integrations.torch_outer import Member, Rehearsal

KILLED = 3  # the worker that is away in a method's ``lost`` rounds


@dataclass(frozen=True)
class Course:
    """What is done with every method."""

    workers: int = 8
    every: int = 50
    rounds: int = 20
    batch: int = 16
    rate: float = 1e-3  # of AdamW at first; it goes to 0 as half a cosine


@dataclass(frozen=True)
class Outcome:
    """What one method came to with one seed; bytes are those of one worker in one round, on average."""

    method: str
    seed: int
    up: float
    down: float
    losses: tuple[float, ...]
    accuracy: float
    step_seconds: float
    exchange_seconds: float


def trained(task: Task, method: Method, course: Course, seed: int) -> Outcome:
    """Train from the start, the workers one after the other in this process."""
    modules = [task.model(seed) for _ in range(course.workers)]
    rehearsal = Rehearsal(modules, method.up, method.down, method.optimiser, seed=seed)
    local = [torch.optim.AdamW(module.parameters(), course.rate, fused=True) for module in modules]
    data = [task.batches(worker, course.workers, seed, course.batch) for worker in range(course.workers)]
    losses, steps, training, exchanging, payloads = [], 0, 0.0, 0.0, 0
    for round in range(course.rounds):
        absent = (KILLED,) if round in method.lost else ()
        if absent:
            killed(rehearsal, local, course)
        for optimiser in local:
            optimiser.param_groups[0]["lr"] = course.rate * (1 + math.cos(math.pi * round / course.rounds)) / 2
        began = time.process_time()
        for worker in set(range(course.workers)) - set(absent):
            for _ in range(course.every):
                x, y = next(data[worker])
                local[worker].zero_grad()
                nn.functional.cross_entropy(modules[worker](x), y).backward()
                local[worker].step()
                steps += 1
        trained_at = time.process_time()
        rehearsal.exchange(absent)
        payloads += course.workers - len(absent)
        training, exchanging = training + trained_at - began, exchanging + time.process_time() - trained_at
        if round % 4 == 3 or round == course.rounds - 1:
            losses.append(task.held_out(modules[0])[0])
    up = rehearsal.sent / payloads
    down = (course.workers - 1) * up if method.gathers else rehearsal.received / (course.rounds * course.workers)
    accuracy, each = task.held_out(modules[0])[1], exchanging / course.rounds
    return Outcome(method.name, seed, up, down, tuple(losses), accuracy, training / steps, each)


def killed(rehearsal: Rehearsal, local: list[torch.optim.Optimizer], course: Course) -> None:
    """The worker comes back as a new process: with the broadcast, and nothing of its own."""
    member = rehearsal.members[KILLED]
    rehearsal.members[KILLED] = Member(member.run, member.down, member.client.node)
    parameters = local[KILLED].param_groups[0]["params"]
    local[KILLED] = torch.optim.AdamW(parameters, course.rate, fused=True)


def summary(outcomes: Sequence[Outcome], course: Course, mbit: float) -> str:
    """A line for each method: means over seeds, and the time of a round over links like this.

    A round takes H local steps, the workers' and the hub's work at the exchange, and the bytes of one worker's way up
    and way down, one after the other; the hub's link is as wide as those of all workers together.
    """
    heads = (
        "exchange",
        "up",
        "down",
        "fewer bytes",
        "held-out loss",
        "of dense",
        "accuracy",
        f"round at {mbit:g} Mbit/s",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    names = list(dict.fromkeys(each.method for each in outcomes))
    dense = [each for each in outcomes if each.method == names[0]]
    for name in names:
        found = [each for each in outcomes if each.method == name]
        up, down = mean(each.up for each in found), mean(each.down for each in found)
        fewer = mean(each.up + each.down for each in dense) / (up + down)
        loss, base = (
            mean(each.losses[-1] for each in of)
            for of in (found, [d for d in dense if d.seed in {f.seed for f in found}])
        )
        spread = (max(each.losses[-1] for each in found) - min(each.losses[-1] for each in found)) / 2
        accuracy = mean(each.accuracy for each in found)
        work = course.every * mean(each.step_seconds for each in found) + mean(each.exchange_seconds for each in found)
        seconds = work + 8 * (up + down) / (mbit * 1e6)
        lines.append(
            f"| {name} | {up:,.0f} | {down:,.0f} | {fewer:.0f} × | {loss:.4f} ± {spread:.4f} | {loss / base:.3f} "
            f"| {accuracy:.1%} | {seconds:.2f} s |"
        )
    return "\n".join(lines)


def mean(values: object) -> float:
    listed = [float(each) for each in values]  # type: ignore[attr-defined]
    return sum(listed) / len(listed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", choices=["fashion-mnist", "digits"], help="Fashion-MNIST if it is found, else the digits"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rounds", type=int, default=Course.rounds)
    parser.add_argument("--only", nargs="+", help="names of methods, or parts of names")
    parser.add_argument("--mbit", type=float, default=50.0, help="the links, each way")
    parser.add_argument("--quick", action="store_true", help="one seed and a few rounds of the digits")
    parser.add_argument("--keep", type=Path, help="a file of JSON lines that outcomes are added to, and read from")
    given = parser.parse_args()
    torch.set_num_threads(1)
    task = Task.load("digits" if given.quick else given.data)
    course = Course(rounds=4, every=10) if given.quick else Course(rounds=given.rounds)
    dim = sum(each.numel() for each in task.model(0).parameters())
    print(f"{task.name}: {dim:,} parameters, {course}\n")
    outcomes: list[Outcome] = []
    if given.keep is not None and given.keep.exists():
        outcomes = [Outcome(**json.loads(line)) for line in given.keep.read_text().splitlines()]
    for seed in given.seeds[:1] if given.quick else given.seeds:
        for method in methods(dim):
            done = any((each.method, each.seed) == (method.name, seed) for each in outcomes)
            if done or (given.only and not any(part in method.name for part in given.only)):
                continue
            outcome = trained(task, method, course, seed)
            outcomes.append(outcome)
            print(f"{method.name}, seed {seed}: {outcome.losses[-1]:.4f}, {outcome.accuracy:.1%}", flush=True)
            if given.keep is not None:
                with given.keep.open("a") as file:
                    file.write(json.dumps(asdict(outcome)) + "\n")
    print(f"\n{summary(outcomes, course, given.mbit)}")


if __name__ == "__main__":
    main()
