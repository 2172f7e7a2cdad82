"""The page as a file: complete, self-contained, and text from outside stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sparsemean._version import __version__
from sparsemean.errors import InvalidInput
from sparsemean.lab.report import write_compare_report, write_report
from sparsemean.lab.report.draw.interactive import library
from sparsemean.lab.report.figure.table import ResultTable
from sparsemean.lab.report.page.comparison import against_bytes
from sparsemean.lab.report.page.verdicts import badge, claims_table, theory_table

from .. import fake

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


class Reader(HTMLParser):
    """Elements with their attributes, and text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


@pytest.fixture(scope="module")
def read(page: Path) -> Reader:
    return Reader(page.read_text(encoding="utf-8"))


def test_it_has_every_figure_and_every_table(read: Reader, out_dir: Path):
    sections = [attributes["id"] for tag, attributes in read.elements if tag == "section"]
    assert sections[:2] == ["findings", "reading"]
    assert sections[2:-2] == [
        f"figure-{name}"
        for name in [
            *("mse-vs-ratio", "ratio-first-round", "ratio-rounds", "quadratic", "power-iteration", "kmeans"),
            *("logistic", "shared-memory", "power-iteration-bytes", "of-my-own"),
        ]
    ]
    assert sections[-2:] == ["theory", "again"]


def test_every_link_leads_somewhere_on_the_page(read: Reader):
    names = {f"#{attributes['id']}" for tag, attributes in read.elements if attributes.get("id")}
    links = [attributes["href"] for tag, attributes in read.elements if tag == "a"]
    assert len(links) > 10
    assert set(links) <= names


def test_title_intro_command_version_and_whose_data(read: Reader):
    for words in (
        "Figures & <claims>",
        "Second <b>.",
        "sparsemean reproduce --out x",
        f"sparsemean {__version__}",
        "Zalando SE, MIT licence",
        "Krizhevsky, Learning Multiple Layers",
    ):
        assert words in read.text


def test_verdicts_are_told_by_words_and_signs_too(read: Reader):
    assert "✓ confirmed" in read.text
    assert "≈ holds in part" in read.text
    assert "✗ not reproduced" in read.text
    assert "✗ 8 of 9 formulas hold" in read.text
    assert 'class="badge bad"' in badge("no")


def test_it_is_one_file_with_the_library_once_and_below_eight_megabytes(page: Path, read: Reader):
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < 8_000_000
    assert text.count(library()) == 1
    outside = [attributes for _, attributes in read.elements if attributes.get("src")]
    assert not outside
    own = text.replace(library(), "")
    assert "default-src 'none'" in own
    assert not re.findall(r"https?://|@import|url\(", own)


def test_long_runs_keep_the_page_small(tmp_path: Path):
    fake.write_table(tmp_path / "tables", "logistic", fake.logistic(2, 400))
    path = write_report(tmp_path, tmp_path / "deep" / "report.html")
    assert path.stat().st_size - len(library().encode()) < 1_000_000


def test_text_from_outside_stays_text(tmp_path: Path):
    rows = [
        {"scheme": EVIL, "round": t, "mse": 1.0 + t, "objective": 1.0, "split": split, "data": EVIL, "version": EVIL}
        for t in range(3)
        for split in (EVIL, "iid")
    ]
    fake.write_table(tmp_path / "tables", "mine", rows)
    names = ("claim", "where", "finding", "verdict")
    fake.write_table(tmp_path / "tables", "claims", [dict.fromkeys(names, EVIL)])
    checked = ("statement", "setting", "measured", "exact", "z", "passed", "relation")
    fake.write_table(tmp_path / "tables", "theory", [dict.fromkeys(checked, EVIL)])
    path = write_report(tmp_path, tmp_path / "report.html", EVIL, EVIL, EVIL)
    text = path.read_text(encoding="utf-8").replace(library(), "")
    read = Reader(text)
    assert not [tag for tag, _ in read.elements if tag == "img"]
    assert [tag for tag, _ in read.elements].count("script") == 3
    assert not any(key.startswith("on") for _, attributes in read.elements for key in attributes)
    assert EVIL in read.text


def test_a_file_name_is_text_too(tmp_path: Path):
    fake.write_table(tmp_path / "tables", "a\"><img src='x'>", [{"scheme": "rand-k", "round": 0, "mse": 1.0}])
    text = write_report(tmp_path, tmp_path / "report.html").read_text(encoding="utf-8").replace(library(), "")
    assert not [tag for tag, _ in Reader(text).elements if tag == "img"]


def test_figures_without_a_table_are_left_out(tmp_path: Path):
    fake.write_table(tmp_path / "tables", "kmeans", fake.descent("kmeans", "digits", 1, 3))
    (tmp_path / "tables" / "logistic.csv").write_text("scheme,round,mse\n")
    read = Reader(write_report(tmp_path, tmp_path / "report.html").read_text(encoding="utf-8"))
    sections = [attributes["id"] for tag, attributes in read.elements if tag == "section"]
    assert sections == ["findings", "reading", "figure-kmeans", "again"]
    assert "Lowest error at the end" in read.text


def test_no_tables_at_all_is_an_error_with_the_remedy(tmp_path: Path):
    with pytest.raises(InvalidInput, match="run 'sparsemean reproduce' first"):
        write_report(tmp_path, tmp_path / "report.html")


def test_many_claims_are_folded_by_verdict_those_that_failed_in_sight():
    words = ("reproduced", "partly", "not reproduced", "not run")
    rows = [
        {"claim": f"claim {i}", "place": "Section 3", "where": "kmeans", "verdict": words[i % 4]} for i in range(20)
    ]
    told = claims_table(ResultTable.of(rows), {"kmeans": "#figure-kmeans"})
    order = [told.index(f"5 {word}</span></summary>") for word in ("not reproduced", "partly", "reproduced", "not run")]
    assert order == sorted(order)
    assert told.count("<details open>") == 1
    assert told.count("<details>") == 3
    assert told.count('<a href="#figure-kmeans">') == 20
    assert "Section 3" in told


def test_many_formulas_are_folded_but_for_those_that_fail():
    rows = list(fake.theory_rows(40))
    told = theory_table(ResultTable.of(rows))
    assert "<details><summary>39 that passed" in told
    assert told.index("✗ failed") < told.index("<details>")


def test_a_comparison_has_table_figures_and_advice(tmp_path: Path):
    path = write_compare_report(fake.comparison(), tmp_path / "compare.html")
    text = path.read_text(encoding="utf-8").replace(library(), "")
    read = Reader(text)
    sections = [attributes["id"] for tag, attributes in read.elements if tag == "section"]
    assert sections == ["schemes", "figure-bytes", "figure-rounds", "reading", "again"]
    for words in (
        "Use rand-k-spatial-avg: relative error 0.04",
        "37 nodes, 89 coordinates, 20 rounds, 20 seeds, R2/R1 = 24.3 of at most 36, change from round to round 41 %.",
        "Too large for the budget: rtop-k.",
        "Weather of <January> & more",
        "Diverged, and therefore not drawn: Rand-k-Temporal, O(d) memory.",
        "Not drawn, since its relative error is zero or nearly so: Whole vectors and LAG.",
    ):
        assert words in read.text
    assert "Weather of <January>" not in text


def test_named_are_those_that_no_other_beats_in_error_and_bytes():
    points = {"wangni": (80, 0.2), "rand-k": (100, 0.3), "rand-k-spatial-avg": (100, 0.12), "induced": (120, 0.15)}
    points |= {"rand-k-spatial-opt": (100, 0.11), "identity": (400, 1e-30)}
    rows = [{"scheme": name, "bytes_per_node": sent, "nmse": nmse} for name, (sent, nmse) in points.items()]
    labels = against_bytes(rows, 1).rows[0].panels[0].labels
    assert [label.text for label in labels] == ["Wangni", "Rand-k-Spatial (Avg)"]


def test_a_comparison_of_one_round_has_no_figure_over_rounds(tmp_path: Path):
    path = write_compare_report(fake.comparison(rounds=1), tmp_path / "compare.html")
    read = Reader(path.read_text(encoding="utf-8"))
    assert "figure-rounds" not in [attributes.get("id") for _, attributes in read.elements]


def test_the_least_a_comparison_may_hold_is_enough(tmp_path: Path):
    row = {"scheme": EVIL, "bytes_per_node": 10.0, "nmse": 0.5}
    path = write_compare_report({"results": [row], "advice": EVIL, "source": EVIL}, tmp_path / "compare.html")
    text = path.read_text(encoding="utf-8").replace(library(), "")
    assert not [tag for tag, _ in Reader(text).elements if tag == "img"]
    with pytest.raises(InvalidInput, match="at least one scheme"):
        write_compare_report({"results": []}, tmp_path / "compare.html")
