"""Every figure, at both sizes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab import datasets
from sparsemean.lab.experiments import FIGURES, catalogue
from sparsemean.lab.experiments.cost import longest_first, seconds
from sparsemean.lab.node_schemes import BY_KNOWLEDGE
from sparsemean.schemes import names

PAPER = {"exact", "rand-k", "rand-k-spatial-avg", "rand-k-temporal", "rand-k-temporal-shared", "wangni", "induced"}


@pytest.fixture(scope="module", params=[True, False], ids=["quick", "full"])
def quick(request):
    return request.param


def test_all_figures_with_at_least_three_seeds(quick):
    made = catalogue(quick)
    assert list(made) == list(FIGURES)
    for figure, settings in made.items():
        assert {setting.figure for setting in settings} == {figure}
        assert len({setting.key for setting in settings}) == len(settings)
        assert {setting.seed for setting in settings} >= {0, 1, 2} or figure == "theory"


def test_quick_needs_no_files():
    used = {setting.data for settings in catalogue(quick=True).values() for setting in settings}
    assert not used & set(datasets.ENTRIES)


def test_full_is_the_papers():
    made = catalogue()
    for figure in ("power-iteration", "kmeans"):
        settings = made[figure]
        assert {s.data for s in settings} == {"fashion-mnist"}
        assert {s.nodes for s in settings} == {100}
        assert {s.share for s in settings} == {None, 0.05, 0.1, 0.2}
        assert {s.split for s in settings} == {"iid", "non-iid"}
        assert {s.scheme for s in settings} >= PAPER
    assert {(s.data, s.nodes, s.split) for s in made["logistic"]} == {("cifar-10", 10, "non-iid")}
    assert {s.share for s in made["logistic"]} == {None, 0.005, 0.01, 0.02}
    assert {s.option("rate", 0) for s in made["quadratic"]} == {0.1, 0.05}
    assert {s.share for s in made["mse-vs-ratio"]} == {0.01, 0.1, 0.5}
    assert {s.data for s in made["ratio-rounds"]} == {"fashion-mnist", "cifar-10", "weather"}


def test_schemes_exist(quick):
    used = {s.scheme.partition(" ")[0] for settings in catalogue(quick).values() for s in settings}
    of_nodes = {name.partition(" ")[0] for schemes in BY_KNOWLEDGE.values() for name in schemes}
    assert used - {"", "exact", "rand-k-spatial-opt"} <= {*names(), *of_nodes}


def test_figures_that_show_the_same_run_share_it(quick):
    made = catalogue(quick)
    shown = {s.key for s in made["power-iteration"]}
    assert len(shown & {s.key for s in made["shared-memory"]}) == 3 * (1 + 3 * 7)
    assert {s.key for s in made["power-iteration-bytes"] if s.scheme in ("rand-k", "rand-k-temporal")} <= shown


def test_seeds_and_figures_can_be_chosen():
    made = catalogue(True, seeds=1, figures=["kmeans", "kmeans"])
    assert list(made) == ["kmeans"]
    assert {setting.seed for setting in made["kmeans"]} == {0}


def test_what_cannot_be_chosen():
    with pytest.raises(InvalidInput, match="no figure 'k-means'; known are theory, mse-vs-ratio"):
        catalogue(figures=["k-means"])
    with pytest.raises(InvalidInput, match="at least 1"):
        catalogue(seeds=0)


def test_longest_first_and_neighbours_together():
    settings = catalogue()["logistic"] + catalogue()["power-iteration"]
    ordered = longest_first(settings)
    assert sorted(s.key for s in ordered) == sorted(s.key for s in settings)
    assert seconds(ordered[0]) == max(map(seconds, settings))
    places = [(s.data, s.split, s.seed) for s in ordered]
    assert len([1 for a, b in pairwise(places) if a != b]) == len(set(places)) - 1


def test_every_table_is_in_the_documentation():
    text = (Path(__file__).parents[3] / "docs" / "reproduce.md").read_text(encoding="utf-8")
    assert [name for name in FIGURES if f"`{name}`" not in text] == []
