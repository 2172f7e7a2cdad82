"""Engines whose nodes or servers have no last mean, or no secrets, refuse what needs them, and say why."""

from __future__ import annotations

import pytest

import sparsemean as sm

SCHEME = sm.Scheme(sm.Relative(sm.RandK(0.1)), values="int8")


def test_shards_refuse_it():
    pytest.importorskip("ray")
    from sparsemean.integrations.ray.ranges import Sharding

    with pytest.raises(sm.InvalidInput, match="needs the whole last mean to read payloads"):
        Sharding(sm.Run(SCHEME, 10_000), 2, "drop", 0, 1 << 20, None, True, None)


def test_shards_refuse_compact_frames():
    pytest.importorskip("ray")
    from sparsemean.integrations.ray.ranges import Sharding

    with pytest.raises(sm.InvalidInput, match='keeps no secrets; use a Server, or Run\\(…, frame="full"\\)'):
        Sharding(sm.Run(sm.named("rand-k", k=0.1), 10_000, frame="compact"), 2, "drop", 0, 1 << 20, None, True, None)


def test_the_ddp_hook_refuses_it():
    pytest.importorskip("torch")
    from sparsemean.integrations.torch_ddp.compatibility import check_scheme

    with pytest.raises(sm.IncompatibleScheme, match="serves RandK and Identity"):
        check_scheme(SCHEME)
