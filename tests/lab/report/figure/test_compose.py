"""Which rows make a line, which lines a panel, and what is said about them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparsemean.lab.report.figure.catalogue import SPECS, spec_of
from sparsemean.lab.report.figure.compose import POINTS, compose
from sparsemean.lab.report.figure.curve import curve
from sparsemean.lab.report.figure.figure import Figure
from sparsemean.lab.report.figure.table import ResultTable
from sparsemean.lab.student import t_quantile

from .. import fake


def composed(name: str, rows) -> Figure:
    figure = compose(name, spec_of(name), ResultTable.of(list(rows)))
    assert figure is not None
    return figure


def titles(figure: Figure) -> list[str]:
    return [panel.title for panel in figure.rows[0].panels]


def test_panels_are_split_and_share():
    figure = composed("kmeans", fake.descent("kmeans", "fashion-mnist", 2, 3))
    assert titles(figure)[:4] == ["IID, k/d = 5 %", "IID, k/d = 10 %", "IID, k/d = 20 %", "non-IID, k/d = 5 %"]
    assert figure.columns == 3
    assert [row.quantity.short for row in figure.rows] == ["mean squared distance to the centres", "error of the mean"]


def test_the_exact_mean_is_in_every_panel():
    figure = composed("kmeans", fake.descent("kmeans", "fashion-mnist", 2, 3))
    assert all("exact" in {line.name for line in panel.lines} for panel in figure.rows[0].panels)


def test_whole_vectors_make_no_panel_of_their_own():
    rows = [{"scheme": "rand-k", "share": share, "round": 0, "mse": 1.0} for share in (0.1, 0.2)]
    figure = composed("mine", [*rows, {"scheme": "identity", "share": 1.0, "round": 0, "mse": 0.1}])
    assert titles(figure) == ["k/d = 10 %", "k/d = 20 %"]


def test_a_key_that_follows_from_another_is_not_told():
    figure = composed("shared-memory", fake.shared_memory(2, 3))
    assert titles(figure)[-1] == "Weather, Brittany, k/d = 10 %"


def test_panels_of_other_data_have_their_own_axis():
    panels = composed("shared-memory", fake.shared_memory(2, 3)).rows[0].panels
    assert panels[0].scale == panels[1].scale != panels[3].scale


def test_panels_that_would_fill_little_of_a_shared_axis_get_their_own():
    def rows(low: float):
        for share, height in ((0.1, 20.0), (0.2, low)):
            for t, objective in enumerate((height, 2.0)):
                yield {"scheme": "rand-k", "share": share, "round": t, "objective": objective, "mse": 1.0}

    shared, own = (composed("mine", rows(low)) for low in (15.0, 4.0))
    assert len({panel.scale for panel in shared.rows[0].panels}) == 1
    assert len({panel.scale for panel in own.rows[0].panels}) == 2
    assert shared.notes == ()
    assert own.notes == ("Mind the vertical axes, which differ from panel to panel: objective.",)


def test_the_bound_is_drawn_for_the_scheme_it_speaks_of():
    figure = composed("quadratic", fake.quadratic(2, 20))
    assert titles(figure) == ["learning rate 0.05", "learning rate 0.1"]
    assert {line.name for line in figure.rows[0].panels[0].lines if line.theory} == {"rand-k-temporal"}
    assert not any(line.theory for line in figure.rows[1].panels[0].lines)


def test_lines_are_the_means_over_seeds():
    rows = list(fake.descent("kmeans", "fashion-mnist", 3, 4, schemes=("rand-k",), shares=(0.1,), splits=("iid",)))
    line = composed("kmeans", rows).rows[1].panels[0].lines[0]
    mse = np.array([float(str(row["mse"])) for row in rows]).reshape(3, 4)
    assert line.measured.mean == pytest.approx(mse.mean(axis=0))
    assert line.measured.margin == pytest.approx(t_quantile(3) * mse.std(axis=0, ddof=1) / math.sqrt(3))


def test_who_diverges_is_said():
    notes = composed("quadratic", fake.quadratic(4, 120)).notes
    assert notes[0] == (
        "Rand-k-Temporal, O(d) memory diverged, and is drawn no further than its numbers are finite: "
        "learning rate 0.1 (4 of 4 seeds, from round 60 on)."
    )


def test_who_leaves_the_panel_is_said():
    rows = [{"scheme": "rand-k", "round": t, "mse": 1.0} for t in range(5)]
    rows += [{"scheme": "rand-k-temporal-shared", "round": t, "mse": 10.0 ** (5 * t)} for t in range(5)]
    assert composed("mine", rows).notes == (
        "Leaving a panel at its upper edge: Rand-k-Temporal, O(d) memory (up to 1·10²⁰).",
    )


def test_who_falls_out_of_the_panel_is_said():
    rows = [{"scheme": "rand-k", "round": t, "mse": 1.0} for t in range(3)]
    rows += [{"scheme": "exact", "round": t, "mse": 10.0 ** (-5 * t)} for t in range(3)]
    assert composed("mine", rows).notes == ("Leaving a panel at its lower edge: Exact mean (down to 1·10⁻¹⁰).",)


def test_what_a_logarithmic_axis_cannot_show_is_said():
    notes = composed("kmeans", fake.descent("kmeans", "fashion-mnist", 2, 3)).notes
    assert notes == ("Not drawn, since its error of the mean is zero or nearly so: Exact mean.",)


def test_measured_points_come_with_the_formula():
    figure = composed("mse-vs-ratio", fake.mse_vs_ratio(2))
    assert titles(figure) == ["k/d = 1 %", "k/d = 10 %", "k/d = 50 %"]
    line = figure.rows[0].panels[1].lines[0]
    assert line.theory is not None
    assert line.measured.mean == pytest.approx(line.theory.mean, rel=0.05)
    assert figure.takeaway.startswith("Of 312 measured points, half lie within ")


def test_bars_stand_side_by_side_around_their_name():
    figure = composed("ratio-first-round", fake.first_round(2))
    panel = figure.rows[0].panels[0]
    assert panel.ticks == ("Fashion-MNIST", "CIFAR-10", "Weather, Brittany")
    places = {line.name: panel.bars(line)[0].round(6).tolist() for line in panel.lines}
    assert places == {"iid": [-0.18, 0.82], "non-iid": [0.18, 1.18], "stations": [2.0]}
    assert [mark.y for mark in panel.marks] == [99.0, 99.0, 36.0]
    assert figure.takeaway.endswith("IID 97 to 100 %, non-IID 72 to 85 %, Stations 70 %.")


def test_similarity_over_rounds_has_its_ceiling():
    figure = composed("ratio-rounds", fake.ratio_rounds(2, 5))
    assert {panel.title: [mark.y for mark in panel.marks] for panel in figure.rows[0].panels} == {
        "CIFAR-10": [99.0],
        "Fashion-MNIST": [99.0],
        "Weather, Brittany": [36.0],
    }


def test_the_best_is_named_with_how_much_better_it_is():
    rows = [{"scheme": "rand-k", "round": 0, "mse": 8.0}, {"scheme": "rand-k-hybrid", "round": 0, "mse": 2.0}]
    rows += [{"scheme": "exact", "round": 0, "mse": 0.0}]
    assert composed("mine", rows).takeaway == "Lowest error at the end: Hybrid memory (4 times below Rand-k)."


def test_designed_draws_are_compared_with_what_they_change():
    """With the hybrid memory of independent draws, over all rounds where the end says little."""
    levels = {"rand-k": (8.0, 8.0), "rand-k-hybrid": (6.0, 2.0), "rand-k-balanced-hybrid": (1.0, 3.0)}
    levels |= {"rand-k-epochs-hybrid": (3.0, 3.0)}
    rows = [
        {"scheme": name, "round": t, "mse": value, "objective": 1.0}
        for name, values in levels.items()
        for t, value in enumerate(values)
    ]
    assert composed("designed-kmeans", rows).takeaway == (
        "Epochs, hybrid memory: 0.5 times the error of Hybrid memory in the first round, 1.5 times at the end."
    )
    assert composed("designed-weather", rows).takeaway == (
        "Lowest error on average over the rounds: Balanced draws, hybrid memory (2 times below Hybrid memory)."
    )


def similarity(share: float, split: str, apart: float, opt: float, balanced: float):
    for scheme, mse in (("rand-k-spatial-opt", opt), ("rand-k-balanced", balanced)):
        place = {"split": split, "share": share, "apart": apart, "scheme": scheme, "nodes": 10}
        yield {**place, "round": 0, "mse": mse, "mse_se": 0.01 * mse, "exact": mse}


def test_single_rounds_tell_the_gain_over_opt_and_the_agreement():
    rows = [*similarity(0.1, "0 % absent", 1.0, 0.9, 0.9), *similarity(0.1, "0 % absent", 0.1, 0.6, 0.1)]
    figure = composed("designed-correlation", [*rows, *similarity(0.3, "10 % absent", 0.1, 0.1, 0.05)])
    assert titles(figure) == ["k/d = 10 %", "k/d = 30 %"]
    assert figure.takeaway.startswith("Balanced draws: 1 to 6 times below Rand-k-Spatial (Opt). Of 6 measured points, ")


def test_panels_of_single_rounds_name_who_was_absent():
    places = [(0.1, "0 % absent"), (0.1, "10 of 1,000 asked"), (0.3, "0 % absent"), (0.3, "10 % absent")]
    rows = [row for share, split in places for row in similarity(share, split, 0.1, 0.6, 0.1)]
    assert titles(composed("designed-correlation", rows)) == [
        *(
            "0 % absent, k/d = 10 %",
            "0 % absent, k/d = 30 %",
            "10 % absent, k/d = 30 %",
            "10 of 1,000 asked, k/d = 10 %",
        )
    ]


def test_identical_vectors_are_bars_by_the_number_of_nodes():
    rows = [
        {**row, "nodes": nodes, "data": "normal", "task": "alike"}
        for nodes in (10, 50)
        for row in similarity(0.1, "", 0.0, 0.6, 0.024)
    ]
    figure = composed("designed-equal", rows)
    assert figure.rows[0].panels[0].ticks == ("10 nodes", "50 nodes")
    assert figure.takeaway == "Balanced draws: 25 times below Rand-k-Spatial (Opt)."


def test_one_that_diverges_wins_nothing():
    rows = [{"scheme": name, "round": 0, "mse": value} for name, value in (("rand-k", 8.0), ("wangni", 9.0))]
    rows += [{"scheme": "induced", "round": t, "mse": value} for t, value in enumerate((1.0, math.inf))]
    assert composed("mine", rows).takeaway == "Lowest error at the end: Rand-k."


def test_accuracy_is_found_under_either_name():
    for name in ("accuracy", "test_accuracy"):
        rows = [{"scheme": "rand-k", "round": t, "objective": 1.0, "mse": 1.0, name: 0.3} for t in range(3)]
        assert [row.quantity.short for row in composed("logistic", rows).rows][1] == "test accuracy"


def test_kinds_of_values_make_lines_of_their_own():
    rows = [{"scheme": "rand-k", "values": kind, "round": 0, "mse": 1.0} for kind in ("float32", "int8")]
    assert composed("kmeans-bytes", rows).series == ("rand-k float32", "rand-k int8")


def test_an_unknown_figure_shows_objective_and_error():
    figure = composed("of-my-own", fake.descent("of-my-own", "weather", 2, 3, schemes=("rand-k", "mine")))
    assert figure.spec.title == "Of my own"
    assert [row.quantity.short for row in figure.rows] == ["objective", "error of the mean"]


def test_a_table_without_anything_to_show_makes_no_figure():
    assert compose("kmeans", SPECS["kmeans"], ResultTable.of([{"scheme": "rand-k", "round": 0}])) is None


def test_long_lines_are_thinned_with_both_ends_kept():
    rows = [{"scheme": "rand-k", "round": t, "mse": 1.0 + t} for t in range(1000)]
    line = composed("mine", rows).rows[0].panels[0].lines[0].measured
    assert len(line.x) == POINTS
    assert line.x[[0, -1]].tolist() == [0.0, 999.0]
    assert curve([0], [1.0]).x.tolist() == [0.0]
