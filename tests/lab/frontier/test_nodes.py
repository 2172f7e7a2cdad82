"""A sweep by what nodes may know: its numbers are those of the rounds, it goes on where it stopped, its fronts."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab import datasets
from sparsemean.lab.datasets import Images, splits
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.frontier.node_page import gains, times, write_node_page
from sparsemean.lab.frontier.node_sweep import NodeSweep
from sparsemean.lab.frontier.nodes import NODES, NodeFrontier
from sparsemean.lab.node_schemes import BY_KNOWLEDGE, node_scheme
from sparsemean.lab.tables import TableRow
from sparsemean.lab.tasks import PowerIteration
from sparsemean.lab.trace import play

SWEEP = NodeSweep("digits", [90], rounds=3, seeds=2)


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> tuple[NodeFrontier, Path]:
    """Stopped after five settings, then brought to its end."""
    folder = tmp_path_factory.mktemp("kept") / "nodes"
    begun = dict(itertools.islice(SWEEP.played(folder, jobs=1), 5))
    part = SWEEP.frontier(begun)
    assert not part.complete
    assert len(part.points) < 9
    told: list[tuple[int, int]] = []
    rest = dict(SWEEP.played(folder, jobs=1, progress=lambda done, total, _: told.append((done, total))))
    assert told[0] == (5, 18)
    assert told[-1] == (18, 18)
    assert len(told) == 1 + 13  # nothing is played twice
    return SWEEP.frontier(rest), folder


def test_points_are_the_means_of_what_is_played_with_each_seed(found):
    done, _ = found
    assert done.complete
    assert [point.scheme for point in done.points] == [name for names in BY_KNOWLEDGE.values() for name in names]
    images = datasets.load("digits")
    assert isinstance(images, Images)
    for scheme in ("rand-k-hybrid int8", "auto-broadcast"):
        errors = []
        for seed in range(2):
            rows = splits.iid(len(images.train_x), NODES, np.random.default_rng(seed))
            task = PowerIteration([images.train_x[part] for part in rows])
            errors.append(play(task, node_scheme(scheme, 64, 90), 3, seed).mse)
        [point] = [point for point in done.points if point.scheme == scheme]
        np.testing.assert_allclose(point.errors, np.mean(errors, axis=0), rtol=1e-6)
        assert point.bytes_per_node <= 90


def test_a_front_holds_what_its_kind_of_node_can_run(found):
    done, _ = found
    for node, front in done.fronts.items():
        able = [point for point in done.points if point.node in ("stateless", node)]
        best = min(able, key=lambda point: point.error(3))
        assert {point.node for point in front} <= {"stateless", node}
        assert best.error(3) == min(point.error(3) for point in front)
    told = done.to_json()
    assert [point["on_front"] for point in told["points"]] == [p in done.fronts[p.node] for p in done.points]
    whole = next(point for point in told["points"] if point["scheme"] == "identity eden")
    assert whole["times_below_eden"] == {"3": 1.0}


def test_a_folder_keeps_points_of_one_set_and_more_seeds_may_follow(found):
    _, folder = found
    with pytest.raises(InvalidInput, match="something else than fashion-mnist; name another folder"):
        next(NodeSweep("fashion-mnist", [200]).played(folder))
    more = NodeSweep("digits", [90], rounds=3, seeds=3)
    told: list[tuple[int, int]] = []
    next(more.played(folder, jobs=1, progress=lambda done, total, _: told.append((done, total))))
    assert told == [(18, 27)]


def test_budgets_are_whole_vectors_in_few_bits_and_too_small_ones_are_refused():
    assert NodeSweep("fashion-mnist").limits == (166, 264, 362, 460)
    with pytest.raises(InvalidInput, match="too few for identity eden"):
        NodeSweep("fashion-mnist", [100]).settings  # noqa: B018


def test_the_page_has_both_figures_and_says_how_far_below_whole_vectors(found, tmp_path):
    done, _ = found
    [sentence] = gains(done)
    assert sentence.startswith("At 90 bytes, below whole vectors in as many bits, in round 3: nodes that hear nothing ")
    text = write_node_page(done, tmp_path / "page.html", "sparsemean frontier digits").read_text(encoding="utf-8")
    assert sentence in text
    for words in ("nodes keep a vector", "sparsemean frontier digits", "Alpaydin", 'id="figure-frontier-nodes"'):
        assert words in text
    rows: dict[Setting, list[TableRow]] = {}
    with pytest.raises(InvalidInput, match="at least one"):
        write_node_page(SWEEP.frontier(rows), tmp_path / "none.html")


def test_factors_have_two_digits():
    assert [times(factor) for factor in (0.513, 9.96, 2114.0, 3e7)] == ["0.51", "10", "2,100", "3·10⁷"]
