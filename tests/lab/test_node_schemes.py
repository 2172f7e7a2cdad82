"""What nodes run within a byte budget: no payload exceeds it, and whole vectors have as many bits as fit."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.lab.node_schemes import BY_KNOWLEDGE, DIFFERENCE, EDEN, RELATIVE, node_scheme
from sparsemean.lab.tasks import StreamTask
from sparsemean.lab.trace import play


@pytest.mark.parametrize("room", [166, 300])
def test_every_scheme_keeps_the_budget_and_uses_it(room: int):
    task = StreamTask(np.random.default_rng(0).normal(size=(3, 4, 784)))
    for names in BY_KNOWLEDGE.values():
        for name in names:
            sent = play(task, node_scheme(name, 784, room), rounds=3).bytes_per_node
            assert sent.max() <= room
            assert sent.min() >= room - 8


def test_what_a_node_knows_is_all_that_tells_whole_vectors_apart():
    schemes = [node_scheme(name, 784, 264) for name in (EDEN, RELATIVE, DIFFERENCE)]
    assert {scheme.values for scheme in schemes} == {"eden-2"}
    assert [scheme.node_state for scheme in schemes] == [False, False, True]
    assert all(sm.Run(scheme, 784).payload_bytes == 264 for scheme in schemes)


def test_too_few_bytes_are_refused_with_the_remedy():
    with pytest.raises(sm.InvalidInput, match="165 bytes are too few for identity eden with 784 coordinates; allow"):
        node_scheme(EDEN, 784, 165)
    with pytest.raises(sm.InvalidInput, match="too few for rand-k-hybrid int8"):
        node_scheme("rand-k-hybrid int8", 784, 65)
