"""Work that many threads bring is shared, answered one by one, and fails for those it was done for."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sparsemean.server.group_commit import GroupCommit


def test_every_thread_gets_its_own_answer_and_batches_form():
    batches: list[int] = []

    def work(items):
        batches.append(len(items))
        time.sleep(0.002)
        return [item * item for item in items]

    commit = GroupCommit(work)
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(commit, range(400))) == [item * item for item in range(400)]
    assert sum(batches) == 400
    assert len(batches) < 400


def test_what_fails_fails_for_all_in_the_batch_and_for_nobody_else():
    gate = threading.Event()

    def work(items):
        gate.wait(10)
        if "bad" in items:
            raise OSError("no")
        return [f"{item} done" for item in items]

    commit: GroupCommit[str, str] = GroupCommit(work)

    def ask(item: str) -> str:
        try:
            return commit(item)
        except OSError as error:
            return f"{item} {error}"

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(ask, "first")
        while not commit._turn.locked() or commit._waiting:
            time.sleep(0.001)
        others = [pool.submit(ask, item) for item in ("bad", "with it")]
        while len(commit._waiting) < 2:
            time.sleep(0.001)
        gate.set()
        assert first.result() == "first done"
        assert [other.result() for other in others] == ["bad no", "with it no"]
    assert ask("later") == "later done"


def test_too_few_answers_are_an_error_and_not_a_hang():
    forgetful: GroupCommit[int, int] = GroupCommit(lambda items: [])
    with pytest.raises(ValueError, match="zip"):
        forgetful(1)
