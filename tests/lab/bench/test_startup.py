"""A second process finds what the first compiled."""

from __future__ import annotations

from sparsemean.lab.bench.startup import FIRST, IMPORT, IMPORT_NUMPY, startup_rows


def test_import_and_first_round_are_measured_in_processes_of_their_own():
    rows = {row.what: row for row in startup_rows(1)}
    assert set(rows) == {IMPORT, FIRST}
    assert rows[IMPORT].seconds.median > 0
    assert rows[IMPORT].baselines[IMPORT_NUMPY].median > 0
    assert rows[FIRST].seconds.median > 0
