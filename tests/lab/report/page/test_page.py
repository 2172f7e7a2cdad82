"""The page as a file: complete, self-contained, and text from outside stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sparsemean._version import __version__
from sparsemean.errors import InvalidInput
from sparsemean.lab.report import write_compare_report, write_report
from sparsemean.lab.report.claim_groups import grouped, own_groups
from sparsemean.lab.report.figure.table import ResultTable
from sparsemean.lab.report.page.claims import claims_html
from sparsemean.lab.report.page.comparison_figures import against_bytes, by_round
from sparsemean.lab.report.page.legend import legend
from sparsemean.lab.report.page.verdicts import badge, theory_table

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
    assert "Figures 2a, 6: Error of the mean against how alike the nodes are" in read.text
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
    assert "8 of 9 formulas hold" in read.text
    assert 'class="badge bad"' in badge("no")


def test_it_is_one_file_below_two_megabytes(page: Path, read: Reader):
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < 2_000_000
    outside = [attributes for _, attributes in read.elements if attributes.get("src")]
    assert not outside
    assert "default-src 'none'" in text
    namespace = "http://www.w3.org/2000/svg"  # a name, which nobody asks for
    assert not re.findall(r"https?://|@import|url\((?!#)", text.replace(namespace, ""))


def test_long_runs_keep_the_page_small(tmp_path: Path):
    fake.write_table(tmp_path / "tables", "logistic", fake.logistic(2, 400))
    path = write_report(tmp_path, tmp_path / "deep" / "report.html")
    assert path.stat().st_size < 400_000


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
    text = path.read_text(encoding="utf-8")
    read = Reader(text)
    assert not [tag for tag, _ in read.elements if tag == "img"]
    assert [tag for tag, _ in read.elements].count("script") == 3  # data, drawing, page
    assert not any(key.startswith("on") for _, attributes in read.elements for key in attributes)
    assert EVIL in read.text


def test_a_file_name_is_text_too(tmp_path: Path):
    fake.write_table(tmp_path / "tables", "a\"><img src='x'>", [{"scheme": "rand-k", "round": 0, "mse": 1.0}])
    text = write_report(tmp_path, tmp_path / "report.html").read_text(encoding="utf-8")
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


def test_claims_stand_in_four_groups_with_surprises_in_sight():
    verdicts = {
        "reproduced": 5,
        "contradicted": 4,
        "partly": 1,
        "needs the full data": 2,
        "inconclusive": 1,
        "not run": 1,
    }
    rows = [
        {
            "claim": f"claim {word} {i}",
            "place": "Section 3",
            "where": "kmeans",
            "verdict": word,
            "outcome": "It came out.",
        }
        | {"finding": "3 checks", "correction": "w*" if word == "contradicted" and i == 0 else "", "source": "paper"}
        for word, count in verdicts.items()
        for i in range(count)
    ]
    claims = ResultTable.of([*rows, {**rows[0], "source": "own"}])
    groups = grouped(claims)
    assert {group.name: len(group.rows) for group in groups} == {
        "reproduced": 5, "corrections": 1, "contradicted": 4, "open": 4
    }  # fmt: skip
    told = claims_html(groups, {"kmeans": ("#figure-kmeans", "Figure 5b")})
    assert re.findall(r'id="(\w+)" open', told) == ["corrections", "contradicted"]
    assert told.count('<a href="#figure-kmeans">Figure 5b</a>') == len(rows)
    assert told.count("<summary>The checks</summary>") == len(rows)
    assert "<b>Right:</b> w*" in told
    assert claims_html(own_groups(claims), {}).count('class="claim"') == 1


def test_claims_of_earlier_versions_have_their_groups():
    rows = [{"claim": "a", "place": "Section 3", "verdict": "not reproduced", "finding": "1 check: no."}]
    claims = ResultTable.of([*rows, {**rows[0], "verdict": "not run"}, {**rows[0], "place": "Past the paper"}])
    assert [len(group.rows) for group in grouped(claims)] == [0, 0, 1, 1]
    assert "1 check: no." in claims_html(grouped(claims), {})
    assert claims_html(own_groups(claims), {}).count('class="claim"') == 1


@pytest.mark.parametrize(
    ("data", "words"), [("digits", "support, but not contradict"), ("fashion-mnist", "are the data of the paper")]
)
def test_a_page_says_first_what_was_run_and_what_that_means(tmp_path: Path, data: str, words: str):
    fake.write_table(tmp_path / "tables", "kmeans", fake.descent("kmeans", data, 2, 3))
    read = Reader(write_report(tmp_path, tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "at 100 nodes, each with 2 seeds" in read.text
    assert words in read.text


def test_many_formulas_are_folded_but_for_those_that_fail():
    rows = list(fake.theory_rows(40))
    told = theory_table(ResultTable.of(rows))
    assert "<details><summary>39 that passed" in told
    assert told.index("✗ failed") < told.index("<details>")


def test_a_comparison_has_table_figures_and_advice(tmp_path: Path):
    path = write_compare_report(fake.comparison(), tmp_path / "compare.html")
    text = path.read_text(encoding="utf-8")
    read = Reader(text)
    sections = [attributes["id"] for tag, attributes in read.elements if tag == "section"]
    assert sections == ["schemes", "figure-rounds", "reading", "again"]
    for words in (
        "Use rand-k-spatial-avg: relative error 0.04",
        "37 nodes, 89 coordinates, 20 rounds, 20 seeds, R2/R1 = 24.3 of at most 36, change from round to round 41 %.",
        "Too large for the budget: rtop-k.",
        "Weather of <January> & more",
        "bars and ± are two standard errors",
        "rand-k-temporal-shared diverged, and is drawn no further than its numbers are finite",
    ):
        assert words in read.text
    assert "Weather of <January>" not in text
    assert 'class="value">diverges' in text


def test_the_recommended_scheme_is_at_the_top_as_code(tmp_path: Path):
    told = {**fake.comparison(), "recommended": "rand-k-spatial-avg", "code": 'sm.named("rand-k-spatial-avg", k=<9>)'}
    text = write_compare_report(told, tmp_path / "compare.html").read_text(encoding="utf-8")
    assert text.index("k=&lt;9&gt;)</code></pre><button") < text.index("<main>")
    assert 'class="best"><div class="name">rand-k-spatial-avg' in text
    assert "recommended" in text


def test_the_sweep_is_a_line_per_scheme_with_two_standard_errors_and_whole_vectors_as_points():
    sweep = [
        {"scheme": name, "bytes_per_node": sent, "steady": level / sent, "steady_se": 0.1 * level / sent}
        for name, level in (("rand-k", 9.0), ("auto int8", 1.0))
        for sent in (50, 100, 200)
    ]
    dense = {"scheme": "identity int8", "bytes_per_node": 300, "steady": 1e-6, "steady_se": 1e-8, "over_budget": True}
    figure = against_bytes(sweep, [dense], 0.7)
    assert figure is not None
    [panel] = figure.rows[0].panels
    lines = {line.name: line.measured for line in panel.lines}
    assert {name: line.x.tolist() for name, line in lines.items()} == {
        "rand-k": [50, 100, 200], "auto int8": [50, 100, 200], "identity int8": [300]
    }  # fmt: skip
    assert lines["rand-k"].margin.tolist() == pytest.approx([0.036, 0.018, 0.009])
    assert panel.scale.low < 1e-6
    assert figure.spec.label("auto int8") == "auto int8"
    assert against_bytes([], [dense], 0.7) is None


def test_round_by_round_the_best_and_the_references_are_shown_others_on_demand():
    results = [
        {"scheme": f"scheme-{i}", "nmse": 0.1 * i, "nmse_by_round": [0.1 * i, 0.2 * i], "bytes_per_node": 9}
        for i in range(1, 12)
    ]
    results.append({**results[-1], "scheme": "rand-k", "reference": True})
    figure = by_round(results)
    assert figure is not None
    assert set(figure.series) - set(figure.folded) == {*(f"scheme-{i}" for i in range(1, 6)), "rand-k"}
    assert legend(figure.series, str, figure.folded).count('aria-pressed="false"') == len(figure.folded) == 6


def test_a_note_names_no_line_that_is_hidden():
    results = [
        {"scheme": f"scheme-{i}", "nmse": 0.1 * i, "nmse_by_round": [0.1 * i, 0.2 * i], "bytes_per_node": 9}
        for i in range(1, 12)
    ]
    results.append({**results[-1], "scheme": "lag", "nmse_by_round": [1.0, 1e-9]})
    figure = by_round(results)
    assert figure is not None
    assert "lag" in figure.folded
    assert not [note for note in figure.notes if "lag" in note]


def test_biased_schemes_are_marked_in_the_ranking(tmp_path: Path):
    results = [{"scheme": name, "bytes_per_node": 9, "nmse": 0.1} for name in ("top-k", "rand-k")]
    biased = [{**result, "unbiased": result["scheme"] == "rand-k"} for result in results]
    text = write_compare_report({"results": biased}, tmp_path / "compare.html").read_text(encoding="utf-8")
    assert 'class="name">top-k <span class="tag">biased</span>' in text
    assert 'class="name">rand-k</div>' in text


def test_a_comparison_of_one_round_has_no_figure_over_rounds(tmp_path: Path):
    path = write_compare_report(fake.comparison(rounds=1), tmp_path / "compare.html")
    read = Reader(path.read_text(encoding="utf-8"))
    assert "figure-rounds" not in [attributes.get("id") for _, attributes in read.elements]


def test_the_least_a_comparison_may_hold_is_enough(tmp_path: Path):
    row = {"scheme": EVIL, "bytes_per_node": 10.0, "nmse": 0.5}
    path = write_compare_report({"results": [row], "advice": EVIL, "source": EVIL}, tmp_path / "compare.html")
    text = path.read_text(encoding="utf-8")
    assert not [tag for tag, _ in Reader(text).elements if tag == "img"]
    with pytest.raises(InvalidInput, match="at least one scheme"):
        write_compare_report({"results": []}, tmp_path / "compare.html")
