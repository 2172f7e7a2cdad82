"""Image files of every figure, the same whenever they are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.report import write_figures
from sparsemean.lab.report.draw.static import Sheet

from .. import fake

BEGINNINGS = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF-"}


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One figure of each kind."""
    folder = tmp_path_factory.mktemp("few")
    fake.write_table(folder / "tables", "quadratic", fake.quadratic(2, 100))
    fake.write_table(folder / "tables", "mse-vs-ratio", fake.mse_vs_ratio(1))
    fake.write_table(folder / "tables", "ratio-first-round", fake.first_round(2))
    fake.write_table(folder / "tables", "theory", fake.theory_rows())
    return folder


@pytest.mark.parametrize("format", BEGINNINGS)
def test_every_figure_is_written(few: Path, tmp_path: Path, format: str):
    paths = write_figures(few, tmp_path / "figures", format)
    assert [path.name for path in paths] == [
        f"{name}.{format}" for name in ("mse-vs-ratio", "ratio-first-round", "quadratic")
    ]
    assert all(path.read_bytes().startswith(BEGINNINGS[format]) for path in paths)


def test_the_same_tables_give_the_same_files(few: Path, tmp_path: Path):
    one, other = (write_figures(few, tmp_path / name, "svg") for name in ("one", "other"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


def test_another_format_is_refused(few: Path, tmp_path: Path):
    with pytest.raises(InvalidInput, match="png, svg, pdf, not as 'gif'"):
        write_figures(few, tmp_path, "gif")


def test_names_with_signs_of_formulas_are_drawn_as_they_are(tmp_path: Path):
    rows = [
        {"scheme": scheme, "round": t, "mse": 1.0 + t, "split": split}
        for scheme in (r"$\frac{$", "_hidden")
        for t in (0, 1)
        for split in (r"$\wrong$", "_")
    ]
    fake.write_table(tmp_path / "tables", r"my $\own{$", rows)
    assert len(write_figures(tmp_path, tmp_path, "svg")) == 1


def test_nothing_on_a_sheet_overlaps():
    sheet = Sheet(3, 4, 2, 3, (2.9, 1.75))
    boxes = [sheet.place(line, column) for line in range(4) for column in range(3)]
    assert all(left >= 0 and bottom >= 0 and left + width <= 1 for left, bottom, width, _ in boxes)
    assert boxes[0][1] + boxes[0][3] <= 1 - sheet.head / sheet.height
    assert boxes[3][1] + boxes[3][3] < boxes[0][1]
    assert boxes[-1][1] * sheet.height > sheet.LINE * sheet.note_lines
