"""Outer averaging on real process groups: gloo on loopback, 3 and 4 processes; what they found is judged here."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sparsemean[torch]'")
filelock = pytest.importorskip("filelock", reason="filelock, which comes with PyTorch, is not installed")

import sparsemean as sm  # noqa: E402
from sparsemean.integrations.torch_outer import OuterSGD, Rehearsal  # noqa: E402

from . import torch_outer_rank as ranks  # noqa: E402

RANK = Path(ranks.__file__)
FOUR = ["every_scheme", "bfloat16", "resumed", "shared_modules", "not_a_number", "differing", "alone_refused"]
LONGEST = 400.0  # seconds that all ranks together may take, on a machine that does ten other things
Found = list[dict[str, Any]]


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What four ranks found; played once, however many workers share the tests."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # that of the whole session
    folder = folder / "outer-ranks"
    with filelock.FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            folder.mkdir()
            run_ranks(folder, range(4), 4, FOUR)
    return [torch.load(folder / f"found-{rank}.pt", weights_only=True) for rank in range(4)]


def run_ranks(folder: Path, which: range, ranks: int, cases: list[str], dies: int | None = None) -> None:
    """Let the ranks run, and none outlive this; the one that ``dies`` is started again."""

    def started(rank: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(RANK), str(rank), str(ranks), str(folder), *cases]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    running = {rank: started(rank) for rank in which}
    until, said = time.monotonic() + LONGEST, {}
    try:
        if dies is not None:
            assert running[dies].communicate(timeout=LONGEST)[0] is not None
            assert running[dies].returncode == 9, "it was to be killed by itself"
            if (folder / "died").exists():
                running[dies] = started(dies)
            else:
                del running[dies]
        for rank, process in running.items():
            said[rank] = process.communicate(timeout=max(1.0, until - time.monotonic()))[0].decode()
    except subprocess.TimeoutExpired:
        pytest.fail(f"not all ranks of {cases} ended within {LONGEST} s; those that did said {said}")
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    assert all(process.returncode == 0 for process in running.values()), "\n".join(said.values())


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Bit for bit."""
    assert len(one) == len(other)
    for mine, theirs in zip(one.values(), other.values(), strict=True):
        assert torch.equal(mine, theirs)


def rehearsed(scheme: sm.Scheme, down: sm.Scheme | None) -> tuple[list[dict[str, Any]], Rehearsal]:
    """The parameters after each exchange of four workers in this process."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        modules = [ranks.model(seed=rank) for rank in range(4)]
        rehearsal = Rehearsal(modules, scheme, down)
        local, after = [ranks.local(net) for net in modules], []
        for step in range(ranks.EVERY * ranks.ROUNDS):
            for rank, (net, optimiser) in enumerate(zip(modules, local, strict=True)):
                ranks.train_step(net, optimiser, rank, step)
            if step % ranks.EVERY == ranks.EVERY - 1:
                rehearsal.exchange()
                after.append(ranks.whole(modules[2]))
    finally:
        torch.set_num_threads(threads)
    return after, rehearsal


@pytest.mark.parametrize("name", ranks.SCHEMES)
def test_workers_of_one_process_are_those_of_four_bit_for_bit(four, name):
    after, rehearsal = rehearsed(*ranks.SCHEMES[name])
    found = [rank["every_scheme"][name] for rank in four]
    for rank in found:
        for mine, theirs in zip(rank["after"], after, strict=True):
            assert_same(mine, theirs)
        assert_same(rank["begun"], ranks.whole(ranks.model()))
        assert rank["live"] == ["0", "1", "2", "3"]
    assert sum(rank["bytes"][0] for rank in found) == rehearsal.sent
    assert sum(rank["bytes"][1] for rank in found) == rehearsal.received


def test_one_round_of_dense_exchange_is_what_torch_does_to_the_mean(four):
    """x ← x + η(m + μv), against ``torch.optim.SGD`` with −m as the gradient, over three rounds."""
    modules = [ranks.model() for _ in range(3)]
    rehearsal = Rehearsal(modules, sm.named("identity"), optimiser=OuterSGD(0.6, 0.8))
    reference = torch.from_numpy(rehearsal.position.at.copy()).double().requires_grad_()
    sgd = torch.optim.SGD([reference], lr=0.6, momentum=0.8, nesterov=True)
    for step in range(3):
        for rank, net in enumerate(modules):
            ranks.train_step(net, ranks.local(net), rank, step)
        moved = [torch.from_numpy(each.read() - rehearsal.position.at).double() for each in rehearsal.parameters]
        reference.grad = -sum(moved) / len(moved)
        sgd.step()
        rehearsal.exchange()
        np.testing.assert_allclose(rehearsal.position.at, reference.detach().numpy(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ranks.SCHEMES)
def test_a_checkpoint_in_the_middle_of_a_round_resumes_bit_for_bit(four, name):
    for rank in four:
        found = rank["resumed"][name]
        assert_same(found["straight"], found["again"])
        assert (found["changed"], found["round"]) == (False, 4)


@pytest.mark.parametrize("kind", ["ddp", "sharded"])
def test_ranks_that_hold_a_module_together_are_one_worker(four, kind):
    """Ranks of a worker have the same data here, so what DDP and FSDP2 train is what one rank alone does."""
    plain = four[0]["shared_modules"]["plain"]
    for rank, found in enumerate(four):
        for mine, theirs in zip(found["shared_modules"][kind], plain, strict=True):
            assert_same(mine, theirs)
        assert (found["shared_modules"][f"{kind} position"] > 0) == (rank % 2 == 0), "leaders alone have the vector"


def test_parameters_of_bfloat16_have_a_broadcast_of_float32(four):
    for rank in four:
        found = rank["bfloat16"]
        assert found["exact"] < 0.5, "the broadcast is finer than the parameters"
        assert torch.equal(found["at"][0], found["at"][1]), "nobody moved, so that rounding is not a movement"
        for mine, theirs in zip(found["after"], four[0]["bfloat16"]["after"], strict=True):
            assert_same(mine, theirs)


def test_a_worker_with_nan_is_left_out_and_told_where(four):
    *others, last = [rank["not_a_number"] for rank in four]
    assert "NonFiniteValues: parameter '2.weight' holds NaN" in last["said"]
    assert last["kept"]
    for found in (*others, last):
        np.testing.assert_allclose(found["moved"].numpy(), [(1 + 2 + 3) / 3 * 0.7 * 1.9], rtol=1e-5)
        assert found["round"] == 2
        assert_same(found["after"], last["after"])
    assert not any(found["said"] for found in others)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("optimiser", "the same model and outer optimiser"),
        ("model", "the same model and outer optimiser"),
        ("scheme", "the same scheme and seed"),
        ("seed", "the same scheme and seed"),
        ("down", "the same scheme for the way back"),
        ("name", "the same name"),
    ],
)
def test_workers_that_differ_are_all_told(four, name, remedy):
    for rank in four:
        assert remedy in rank["differing"][name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("not joined", "call join"),
        ("begin with infinity", "parameter '0.weight' holds NaN or infinity"),
        ("frozen", "no parameter that is trained"),
        ("no link", "needs a link"),
        ("every", "every must be"),
        ("integers", "real floating"),
        ("grown", "other trainable parameters"),
        ("planned down", "without memory or plan"),
        ("half a state", "'round' is missing"),
        ("another size", "a vector of 2225 float32"),
        ("rate", "rate is above 0"),
        ("another optimiser", "OuterSGD(rate, momentum), got AdamW"),
        ("a name", "a link takes a Scheme"),
    ],
)
def test_what_cannot_be_right_is_refused_with_the_remedy(four, name, message):
    for rank in four:
        assert message in rank["alone_refused"][name]


def test_a_worker_is_killed_and_comes_back(tmp_path):
    """Two go on without it, bit-identical; in a new group it takes their broadcast, and all three are alike."""
    run_ranks(tmp_path, range(3), 3, ["killed"], dies=2)
    zero, one, two = (torch.load(tmp_path / f"found-{rank}.pt", weights_only=True)["killed"] for rank in range(3))
    assert zero["live"] == ["worker-0", "worker-1"]
    assert zero["round"] == one["round"] == 3
    assert_same(zero["without"], one["without"])
    # Nothing keeps the group, or the next one at the same address would find where workers were.
    assert "the process group was destroyed" in zero["let go"]
    assert "the process group was destroyed" in one["let go"]
    assert (zero["changed"], one["changed"], two["changed"]) == (False, False, True)
    for found in (zero, one, two):
        assert (found["last"], found["live again"]) == (5, ["worker-0", "worker-1", "worker-2"])
        assert_same(found["all"], zero["all"])
    assert any(not torch.equal(zero["all"][name], zero["without"][name]) for name in zero["all"])


def test_the_others_go_on_when_rank_0_dies(tmp_path):
    """They say so with nothing changed; a group of their own has a new server, which begins nodes afresh.

    Too few for a round, they are told, and go on with the same movements once fewer will do.
    """
    run_ranks(tmp_path, range(3), 3, ["broken"], dies=0)
    one, two = (torch.load(tmp_path / f"found-{rank}.pt", weights_only=True)["broken"] for rank in (1, 2))
    for found in (one, two):
        assert "LinkBroken" in found["said"]
        assert "bind()" in found["said"]
        assert (found["same"], found["changed"], found["round"]) == (True, False, 3)
        assert "LinkBroken" in found["few"]
        assert found["few same"]
        assert_same(found["after"], one["after"])
