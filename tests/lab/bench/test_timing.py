"""Medians of repeats, taken in turn."""

from __future__ import annotations

import pytest

from sparsemean.lab.bench.timing import FEWEST, MOST, Timing, clock_of, in_turn


def told(name: str, seconds: float, calls: list[str]):
    def clock():
        calls.append(name)
        return {name: seconds}

    return clock


def test_each_is_warmed_up_once_and_then_all_take_turns():
    calls: list[str] = []
    found = in_turn([told("a", 1.0, calls), told("b", 2.0, calls)], repeats=3, longest=0.0)
    assert calls == ["a", "b"] * (1 + FEWEST)
    assert found == {"a": Timing(1.0, 1.0, 1.0, 3), "b": Timing(2.0, 2.0, 2.0, 3)}


def test_what_is_quick_is_repeated_more_often_up_to_a_limit():
    calls: list[str] = []
    assert in_turn([told("a", 1.0, calls)], repeats=7)["a"].repeats == MOST
    assert len(calls) == 1 + MOST


def test_fewer_repeats_than_three_are_taken_at_their_word():
    assert in_turn([told("a", 1.0, [])], repeats=1, longest=0.0)["a"].repeats == 1


def test_the_median_does_not_follow_one_slow_repeat():
    assert Timing.of([1.0, 1.0, 1.0, 1.0, 100.0]) == Timing(1.0, 1.0, 1.0, 5)


def test_a_clock_measures_the_work_it_is_given():
    done: list[int] = []
    took = clock_of("work", lambda: done.append(1))()
    assert done == [1]
    assert 0 <= took["work"] < 1
    clock_of("work", lambda: done.append(2), twice=True)()
    assert done == [1, 2, 2]


def test_times_add_up():
    assert Timing(1.0, 2.0, 3.0, 5).times(4) == Timing(4.0, 8.0, 12.0, 5)
    assert Timing(1.0, 2.0, 3.0, 5) + Timing(1.0, 1.0, 1.0, 3) == pytest.approx(Timing(2.0, 3.0, 4.0, 3))
