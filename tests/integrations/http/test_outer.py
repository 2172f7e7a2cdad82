"""Outer averaging through the service: workers that come, die, miss rounds and return are alike to the bit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sparsemean[torch]'")

import sparsemean as sm  # noqa: E402
from sparsemean.integrations.http import NoLongerKept  # noqa: E402
from sparsemean.integrations.torch_outer import HttpLink, OuterMean, OuterSGD, Rehearsal, run_of  # noqa: E402

from .serving import NODES, Service, serving  # noqa: E402

pytestmark = pytest.mark.xdist_group("http")  # one service at a time

EVERY = 2
SPARSE = sm.named("error-feedback-chunked-top-k", k=0.1, chunk=64, values="2-bit")


def model(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.Tanh(), torch.nn.Linear(12, 3))


def train(net: Any, worker: int, step: int) -> None:
    """A step of plain SGD, which keeps nothing."""
    draw = torch.Generator().manual_seed(100 * worker + step)
    x, y = torch.randn(16, 8, generator=draw), torch.randint(3, (16,), generator=draw)
    net.zero_grad()
    torch.autograd.backward(torch.nn.functional.cross_entropy(net(x), y))
    with torch.no_grad():
        for each in net.parameters():
            each -= 0.1 * each.grad


def at_once(*work: Callable[[], object]) -> None:
    """Do these at the same time: a round ends only when all workers of it came."""
    wrong: list[BaseException] = []

    def done(one: Callable[[], object]) -> None:
        try:
            one()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=done, args=(one,)) for one in work]
    for each in threads:
        each.start()
    for each in threads:
        each.join(240.0)
        assert not each.is_alive(), "a worker still waits for its round to end, after 240 s"
    if wrong:
        raise wrong[0]


class Worker:
    """A worker's model and its OuterMean, by the service's own means."""

    def __init__(self, service: Service, number: int, saved: dict[str, Any] | None = None) -> None:
        self.number, self.net = number, model()
        self.link = HttpLink(service.node(NODES[number]))
        self.outer = OuterMean(self.net, self.link, EVERY)
        if saved is not None:
            self.net.load_state_dict(saved["model"])
            self.outer.load_state_dict(saved["outer"])
        self.joined = self.outer.join()

    def round(self) -> None:
        while True:
            train(self.net, self.number, EVERY * self.outer.round + self.outer.position.step)
            if self.outer.step():
                return

    def saved(self) -> dict[str, Any]:
        copied = {name: each.clone() for name, each in self.net.state_dict().items()}
        return {"model": copied, "outer": self.outer.state_dict()}


def assert_alike(*workers: Worker) -> None:
    for worker in workers:
        assert worker.outer.round == workers[0].outer.round
        np.testing.assert_array_equal(worker.outer.position.at, workers[0].outer.position.at)
        np.testing.assert_array_equal(worker.outer.position.velocity, workers[0].outer.position.velocity)


def test_rounds_of_a_service_are_those_of_a_rehearsal(tmp_path):
    with serving(tmp_path, run_of(model(), SPARSE), "--broadcast-values", "eden-2") as service:
        workers = [Worker(service, i) for i in range(3)]
        modules = [model() for _ in workers]
        down = sm.named("identity", values="eden-2")
        rehearsal = Rehearsal(modules, SPARSE, down, seed=workers[0].link.node.run.seed)
        named = dict(zip(NODES, rehearsal.members, strict=True))
        for name, member in named.items():
            member.client = sm.Client(rehearsal.hub.run, name)
        for t in range(3):
            at_once(*(worker.round for worker in workers))
            for i, net in enumerate(modules):
                for step in range(EVERY):
                    train(net, i, EVERY * t + step)
            rehearsal.exchange()
            assert_alike(*workers)
            assert sum(worker.link.sent for worker in workers) == rehearsal.sent
            assert sum(worker.link.received for worker in workers) == rehearsal.received
            # The order in which payloads come moves last digits of a mean of three, and that may move a code of it.
            np.testing.assert_allclose(workers[0].outer.position.at, rehearsal.position.at, atol=1e-3)


def test_a_worker_dies_misses_rounds_and_catches_up_to_the_bit(tmp_path):
    """The others end rounds by themselves; it asks for the means it missed, from a checkpoint or from the beginning."""
    settings = ("--wanted", "2", "--grace", "0", "--journal", tmp_path / "means")
    with serving(tmp_path, run_of(model(), SPARSE), *settings) as service:
        one, two, three = (Worker(service, i) for i in range(3))
        at_once(one.round, three.round)
        two.outer.join()
        saved = three.saved()
        for _ in range(2):
            at_once(one.round, two.round)
        back, newcomer = Worker(service, 2, saved), Worker(service, 2)
        assert (back.joined, newcomer.joined) == (True, True)
        assert_alike(one, two, back, newcomer)
        assert service.stop() == 0
        service.start()
        at_once(one.round, back.round)
        two.outer.join()
        assert_alike(one, two, back)
        assert back.outer.round == 4
        assert two.link.missed == 0


def test_a_movement_that_comes_too_late_is_dropped_and_the_worker_goes_on(tmp_path):
    with serving(tmp_path, run_of(model(), sm.named("identity")), "--wanted", "2", "--grace", "0") as service:
        one, two, late = (Worker(service, i) for i in range(3))
        at_once(one.round, two.round)
        late.round()
        assert_alike(one, two, late)
        assert late.link.missed == 1
        torch.testing.assert_close(late.net.state_dict(), one.net.state_dict(), rtol=0, atol=0)
        skipped = one.outer.position.at.copy()
        assert service.operate("skip")[0] == 200
        one.outer.join()
        np.testing.assert_array_equal(one.outer.position.at, skipped)  # a round without a mean moves nothing
        assert one.outer.round == 2


def test_what_the_service_cannot_do_is_said(tmp_path):
    run = run_of(model(), sm.named("identity"))
    with serving(tmp_path, run, "--wanted", "1", "--grace", "0", "--past-means", "1") as service:
        worker = Worker(service, 0)
        with pytest.raises(sm.InvalidInput, match="begins otherwise, or for another outer optimiser"):
            OuterMean(model(1), HttpLink(service.node("b")), EVERY).join()
        with pytest.raises(sm.InvalidInput, match="another outer optimiser"):
            OuterMean(model(), HttpLink(service.node("b")), EVERY, OuterSGD(0.5)).join()
        with pytest.raises(sm.InvalidInput, match="entries, the model"):
            OuterMean(torch.nn.Linear(2, 2), HttpLink(service.node("b")), EVERY)
        for _ in range(2):
            worker.round()
        with pytest.raises(NoLongerKept, match="past-means"):
            Worker(service, 1)
        service.stop()
        service.start()  # without a journal
        with pytest.raises(sm.InvalidInput, match="began anew"):
            worker.outer.join()
