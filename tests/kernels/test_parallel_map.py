"""Work for several threads: in order, with its errors, and also in a process that was forked."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time

import pytest

from sparsemean.kernels import parallel_map
from sparsemean.kernels.parallel_map import _pool


def squared(number: int) -> int:
    if number < 0:
        raise ValueError("negative")
    return number * number


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_order_and_errors_come_out(threads: int) -> None:
    assert parallel_map(squared, range(50), threads) == [number**2 for number in range(50)]
    with pytest.raises(ValueError, match="negative"):
        parallel_map(squared, [1, -1, 2], threads)
    assert parallel_map(squared, [], threads) == []


def test_after_an_error_nothing_is_under_way() -> None:
    under_way: list[int] = []

    def work(number: int) -> None:
        if number == 0:
            raise ValueError("first")
        under_way.append(number)
        time.sleep(0.05)
        under_way.remove(number)

    with pytest.raises(ValueError, match="first"):
        parallel_map(work, range(20), 3)
    assert under_way == []


def test_an_error_in_another_thread_comes_out_and_ends_the_work() -> None:
    done, other = [], threading.Event()

    def work(number: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            other.set()
            raise IndexError("not of the caller")
        other.wait(10)
        done.append(number)

    with pytest.raises(IndexError, match="not of the caller"):
        parallel_map(work, range(1000), 2)
    assert len(done) < 1000


def test_the_caller_does_its_share_and_all_of_it_while_others_are_busy() -> None:
    busy = threading.Event()
    _pool(os.getpid(), 1).submit(busy.wait, 30)
    try:
        assert set(parallel_map(lambda _: threading.current_thread(), range(20), 2)) == {threading.current_thread()}
    finally:
        busy.set()


def test_threads_are_kept() -> None:
    names = {name for _ in range(5) for name in parallel_map(lambda _: threading.current_thread().name, range(8), 2)}
    assert len(names) <= 2


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    parallel_map(squared, range(4), 2)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(parallel_map, (squared, range(4), 2)).get(timeout=30) == [0, 1, 4, 9]
