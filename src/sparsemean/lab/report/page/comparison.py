"""The page of ``sparsemean compare``: which scheme for these vectors, and what it costs."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from sparsemean._version import __version__
from sparsemean.errors import InvalidInput
from sparsemean.lab.numbers import error_with_margin, page_number
from sparsemean.lab.report.figure.style import style_of, token
from sparsemean.lab.report.page.comparison_figures import Result, against_bytes, aside, by_round, number, steady
from sparsemean.lab.report.page.document import READING, document, run_again, save_page
from sparsemean.lab.report.page.dot_plot import Dot, dot_plot
from sparsemean.lab.report.page.elements import PageSection, grid, paragraphs
from sparsemean.lab.report.page.figure_section import figure_section
from sparsemean.lab.report.page.legend import swatch


def write_compare_report(comparison: Mapping[str, Any], path: str | PathLike[str]) -> Path:
    """Write one HTML file about a comparison, and return its path.

    Parameters
    ----------
    comparison
        As ``Comparison.to_json`` returns it. ``results`` holds one mapping per scheme, best first: scheme,
        bytes_per_node, nmse, nmse_se and, where known, steady, steady_se, exact, server_estimate, unbiased, node_state,
        over_budget, reference and nmse_by_round. Optional: sweep, recommended, code, nodes, dim, rounds, warmup, seeds,
        zero_error, steady_zero_error, likeness (nodes, ratio, change), left_out, complete, and as plain text title,
        advice, source, note and command. Files of older versions lack some of these.
    path
        The file to write.
    """
    results: Sequence[Result] = comparison.get("results") or comparison.get("rows") or ()
    if not results:
        raise InvalidInput("a comparison without results makes no report: give at least one scheme")
    zero = number(comparison.get("steady_zero_error", comparison.get("zero_error")))
    drawn = (against_bytes(comparison.get("sweep") or (), results, zero), by_round(results))
    figures = [figure for figure in drawn if figure]
    fold = f"<details><summary>All numbers</summary>{_table(results)}</details>"
    sections = [
        PageSection("schemes", "schemes", "All schemes, best first", _facts(comparison) + _ranked(comparison) + fold),
        *(figure_section(figure, figure.spec.short) for figure in figures),
        PageSection("reading", "reading", "How to read this", paragraphs(f"{_TERMS}\n\n{READING}")),
        run_again(str(comparison.get("command") or ""), [__version__], _source(comparison)),
    ]
    title = str(comparison.get("title") or "sparsemean: which scheme for these vectors?")
    first, stop, rest = str(comparison.get("advice") or "").partition(". ")
    top = _code(comparison) + paragraphs(rest, "caption")
    looks = [str(result["scheme"]) for result in results]
    page = document(title, first + stop.rstrip(), (), sections, figures, "", top, looks)
    return save_page(page, path)


_TERMS = (
    "NMSE is the squared distance between estimate and true mean, divided by the mean squared length of the vectors. "
    "Schemes are ranked by the steady state: the rounds after those in which memories fill. “Exact” is what the "
    "formulas predict, “server's own” what the server said of its error without knowing the truth, both over all "
    "rounds; ≤ marks bounds. ± is two standard errors over seeds. An unbiased scheme is right on average, so its "
    "errors cancel over rounds. Node state means that a node has to remember something between rounds, plans that the "
    "server tells nodes what to send."
)


def _code(comparison: Mapping[str, Any]) -> str:
    """The recommended scheme as code to paste."""
    code = str(comparison.get("code") or "")
    if not code:
        return ""
    return (
        f'<div class="code"><pre><code>{html.escape(code)}</code></pre>'
        '<button type="button" class="copy">Copy</button></div>\n'
    )


def _ranked(comparison: Mapping[str, Any]) -> str:
    """The dot plot of all schemes, and what its numbers are."""
    results, warmup = comparison.get("results") or comparison.get("rows") or (), int(comparison.get("warmup") or 0)
    ranked = any(result.get("steady") is not None for result in results)
    when = f"in rounds {warmup + 1} to {comparison.get('rounds')}" if warmup and ranked else "over all rounds"
    dots = [_dot(result, comparison.get("recommended")) for result in results]
    zero = number(comparison.get("steady_zero_error", comparison.get("zero_error")))
    words = f"Relative error {when}; bars and ± are two standard errors."
    return paragraphs(words, "caption") + dot_plot(dots, "relative error", zero, "answering 0")


def _dot(result: Result, recommended: object) -> Dot:
    name, margin = str(result["scheme"]), 2 * steady(result, "_se")
    best = name == recommended
    size = f"{page_number(number(result.get('bytes_per_node')))} bytes"
    tags = (["recommended"] if best else []) + [word for key, word in _TAGS.items() if result.get(key)]
    tags += ["biased"] if result.get("unbiased") is False else []
    value = math.inf if math.isnan(steady(result)) else steady(result)
    return Dot(name, value, margin, size, tuple(tags), "best" if best else "aside" if aside(result) else "")


_TAGS = {"over_budget": "over the budget", "diverges": "diverges", "node_state": "node state", "planned": "plans"}


def _facts(comparison: Mapping[str, Any]) -> str:
    names = {"nodes": "nodes", "dim": "coordinates", "rounds": "rounds", "seeds": "seeds"}
    words = [f"{comparison[key]} {name}" for key, name in names.items() if comparison.get(key)]
    most_seeds = max(int(result.get("seeds") or 0) for result in comparison.get("results") or [{}])
    if comparison.get("seeds") and most_seeds > int(comparison["seeds"]):
        words[-1] = f"{comparison['seeds']} to {most_seeds} seeds"
    correlation = comparison.get("likeness") or {}
    if correlation.get("ratio") is not None:
        most = f" of at most {correlation['nodes'] - 1}" if correlation.get("nodes") else ""
        words.append(f"R2/R1 = {page_number(number(correlation['ratio']))}{most}")
    if correlation.get("change") is not None:
        words.append(f"change from round to round {100 * number(correlation['change']):.3g} %")
    left_out = ", ".join(str(name) for name in comparison.get("left_out") or ())
    text = (", ".join(words) + ".") if words else ""
    note = str(comparison.get("note") or "")
    notes = [
        "" if comparison.get("complete", True) else "Stopped before its end: this is what there was by then.",
        f"Too large for the budget: {left_out}." if left_out else "",
        f"About the file: {note}." if note else "",
    ]
    return paragraphs(text, "caption") + "".join(paragraphs(each, "note") for each in notes)


def _table(results: Sequence[Result]) -> str:
    numbers = ["bytes per node", "error", "over all rounds", "exact", "server's own"]
    heads = ["scheme", *numbers, "unbiased", "node state"]
    rows = []
    for result in results:
        name = str(result["scheme"])
        over = " over" if result.get("over_budget") else ""
        cells = [page_number(number(result.get("bytes_per_node"))) + over]
        cells.append(error_with_margin(steady(result), 2 * steady(result, "_se")))
        cells.append(error_with_margin(number(result.get("nmse")), 2 * number(result.get("nmse_se"))))
        for key, bound in (("exact", "exact_bound"), ("server_estimate", "server_bound")):
            cells.append(("≤ " if result.get(bound) else "") + page_number(number(result.get(key))))
        row = f"<td class=wide>{swatch(style_of(name), token(name))} {html.escape(name)}"
        row += "".join(_cell(head, cell) for head, cell in zip(numbers, cells, strict=True))
        row += f'<td data-name="unbiased">{"yes" if result.get("unbiased") else "no"}'
        rows.append(f'{row}<td data-name="node state">{"yes" if result.get("node_state") else "no"}')
    return grid(heads, rows, numbers)


def _cell(head: str, cell: str) -> str:
    """One number; on a narrow screen those not known are left out."""
    kind = "number unknown" if cell == "–" else "number"
    return f'<td class="{kind}" data-name="{html.escape(head)}">{cell}'


def _source(comparison: Mapping[str, Any]) -> dict[str, str]:
    source = str(comparison.get("source") or "")
    return {"Data": source} if source else {}
