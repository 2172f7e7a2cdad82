"""What was measured is written down and read again, and two records are compared by their ratios."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.bench import Case, Measurement
from sparsemean.lab.bench.changes import changes
from sparsemean.lab.bench.link import Break
from sparsemean.lab.bench.record import BenchRecord, read
from sparsemean.lab.bench.timing import Timing

CASE = Case("rand-k", 1_000, 0.1, 3)


def timing(seconds: float) -> Timing:
    return Timing(0.9 * seconds, seconds, 1.1 * seconds, 7)


def record(ours: float = 1.0, numpy: float = 8.0, dense: float = 2.0) -> BenchRecord:
    rows = (
        Measurement("server round", CASE, timing(ours), {"NumPy": timing(numpy), "dense": timing(dense)}, 1_000, 0.5),
        Measurement("import", None, timing(0.1), {"import numpy": timing(0.05)}),
    )
    links = (Break(CASE, 1.0, 2.0, 464, 4_000, float("inf")),)
    return BenchRecord({"processor": "a"}, rows, links, ("x: too large",), complete=False)


def test_what_is_written_is_read_again(tmp_path: Path):
    path = tmp_path / "new" / "bench.json"
    record().write(path)
    assert read(path) == record()
    plain = json.loads(path.read_text())
    assert plain["rows"][0]["ratios"]["NumPy"]["median"] == 8.0
    assert "np.add.at" in plain["baselines"]["NumPy"]


def test_busy_rows_are_known():
    assert [row.what for row in record().busy] == ["server round"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1}', "3", '{"format": 1, "machine": {}, "rows": [1]}'])
def test_what_was_not_written_by_bench_is_refused(tmp_path: Path, text: str):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match="was not written by"):
        read(path)


def test_other_formats_and_missing_files_are_named(tmp_path: Path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        read(tmp_path / "nowhere.json")
    path = tmp_path / "later.json"
    path.write_text('{"format": 99}')
    with pytest.raises(InvalidInput, match="measure anew"):
        read(path)


def change_of(old: BenchRecord, new: BenchRecord):
    return next(change for change in changes(old, new) if change.label.startswith("server"))


def test_a_slower_machine_is_no_change():
    """All times are doubled, ours and the baselines': the ratios are the same."""
    change = change_of(record(), record(ours=2.0, numpy=16.0, dense=4.0))
    assert (change.low, change.mean, change.high) == pytest.approx((1.0, 1.0, 1.0))
    assert change.verdict == "same"


@pytest.mark.parametrize(("ours", "times", "verdict"), [(0.5, 2.0, "faster"), (2.0, 0.5, "slower"), (1.05, 1, "same")])
def test_a_change_of_ours_is_one(ours: float, times: float, verdict: str):
    change = change_of(record(), record(ours=ours))
    assert change.mean == pytest.approx(times, rel=0.06)
    assert change.verdict == verdict
    assert change.memory == 1.0


def test_what_only_one_baseline_sees_is_no_change():
    """The dense mean took half the time, so against it we seem slower, against NumPy not."""
    assert change_of(record(), record(dense=1.0)).verdict == "same"


def test_rows_of_one_record_alone_are_left_out_and_the_slowest_change_stands_first():
    old, new = record(), record(ours=4.0)
    more = replace(new, rows=(*new.rows, Measurement("new", None, timing(1.0))))
    assert [change.label for change in changes(old, more)] == ["server round: " + str(CASE), "import"]


def test_rows_without_baselines_are_compared_by_the_clock():
    old, new = (replace(record(), rows=(Measurement("first", None, timing(s)),)) for s in (1.0, 0.25))
    assert changes(old, new)[0].mean == pytest.approx(4.0)


@pytest.mark.parametrize("text", ["{}", "[1, 2]", '"words"', "{"])
def test_other_files_are_refused_in_words(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"was not written by `sparsemean bench --out`, or was changed since$"):
        read(path)
