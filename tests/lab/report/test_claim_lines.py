"""The terminal tells of claims what the page tells, in the same groups."""

from __future__ import annotations

from sparsemean.lab.report.claim_groups import grouped
from sparsemean.lab.report.claim_lines import claim_lines
from sparsemean.lab.report.figure.table import ResultTable
from sparsemean.lab.report.page.claims import tiles

CLAIMS = [
    {"claim": claim, "place": place, "source": source, "verdict": verdict, "correction": correction}
    for claim, place, source, verdict, correction in (
        ("a.", "Lemma 1", "paper", "reproduced", ""),
        ("b.", "Lemma 2", "paper", "contradicted", "w*"),
        ("c.", "Section 5", "paper", "partly", ""),
        ("d.", "Section 5", "paper", "needs the full data", ""),
        ("e.", "Past the paper", "own", "needs the full data", ""),
        ("f.", "Past the paper", "own", "needs the full data", ""),
    )
]


def test_totals_are_those_of_the_page_and_our_own_claims_stand_apart():
    assert claim_lines(CLAIMS)[-2:] == [
        "The paper's claims: 1 reproduced; 1 corrections of the paper; 1 contradicted or partly; "
        "1 need the full data, or inconclusive.",
        "Our own claims: 2 need the full data.",
    ]
    assert len(tiles(grouped(ResultTable.of(CLAIMS)))) == 4


def test_a_slip_of_the_paper_is_a_correction_with_what_is_right():
    lines = claim_lines(CLAIMS)
    at = lines.index("         correction  b.")
    assert lines[at + 1].strip() == "Right: w*"
    assert not any(line.strip().startswith("contradicted") for line in lines)
