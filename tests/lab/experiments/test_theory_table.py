"""Every row of the theory table passes, and one that is wrong does not."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemean import theory
from sparsemean.lab.experiments import Setting, SettingFailed, run_setting
from sparsemean.lab.experiments.theory_table import COLUMNS, STATEMENTS
from sparsemean.lab.experiments.theory_table.agreement import at_least, at_most, equal, same
from sparsemean.lab.experiments.theory_table.descent import expected_distance
from sparsemean.lab.experiments.theory_table.spatial import literal_scale


def setting(statement: str) -> Setting:
    options = (("measure", "theory"), ("statement", statement), ("trials", 30))
    return Setting("theory", "theory", "synthetic", "", options=options)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_pass(statement):
    rows = run_setting(setting(statement))
    assert rows
    for row in rows:
        assert row["passed"] == "yes", row
        assert set(COLUMNS) <= {*row}


def test_unknown_statement():
    with pytest.raises(SettingFailed, match="no statement is named 'theorem-5'"):
        run_setting(setting("theorem-5"))


def test_wrong_numbers_do_not_pass():
    samples = np.random.default_rng(0).normal(1.0, 0.1, 100)
    assert equal("s", "", samples, 1.0)["passed"] == "yes"
    assert equal("s", "", samples, 1.1)["passed"] == "no"
    assert equal("s", "", [2.0, 2.0], 2.1)["passed"] == "no"
    assert same("s", "", 1.0, 1.0 + 1e-6)["passed"] == "no"
    assert at_most("s", "", 1.1, 1.0)["passed"] == "no"
    assert at_least("s", "", 0.9, 1.0)["passed"] == "no"


def test_literal_reading_of_the_scale_is_another_number():
    assert literal_scale("max", 10, 0.1) < 0.9 * theory.beta_bar("max", 10, 0.1)


def test_expected_distance_is_below_the_bound_where_theorem_4_holds():
    for n, share in ((2, 0.5), (15, 0.1), (100, 0.01), (5, 1.0)):
        rate = theory.learning_rate_limit(n, share)
        exact = expected_distance(n, share, rate, 500, 3.0, 2.0)
        assert np.all(exact <= theory.distance_bound(rate, np.arange(501), 3.0, 2.0) * (1 + 1e-9))
