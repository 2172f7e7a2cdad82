"""Engines take turns: the tests that start one are one group, which runs on one worker, and this test is of it."""

from __future__ import annotations

import os

import pytest


def test_the_group_is_known_to_the_scheduler(request: pytest.FixtureRequest) -> None:
    group = request.node.get_closest_marker("xdist_group")
    assert group is not None
    assert group.args == ("engines",)
    if getattr(request.config.option, "loadgroup", False):  # set where workers run tests by group
        assert request.node.nodeid.endswith("@engines")


@pytest.mark.skipif(not hasattr(os, "nice"), reason="there are no priorities here")
def test_engines_do_not_yield_the_cores_to_other_tests(request: pytest.FixtureRequest) -> None:
    if hasattr(request.config, "workerinput"):  # the worker's parent has the priority that all began with
        assert os.nice(0) == os.getpriority(os.PRIO_PROCESS, os.getppid())
