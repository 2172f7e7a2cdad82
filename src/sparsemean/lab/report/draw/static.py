"""Figures for paper: one png, svg or pdf file each, drawn by matplotlib."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.lab.optional_modules import optional
from sparsemean.lab.report.figure.catalogue import figure_names, spec_of
from sparsemean.lab.report.figure.compose import compose
from sparsemean.lab.report.figure.figure import AxisScale, Figure, Line, Panel, PanelRow
from sparsemean.lab.report.figure.scale import band, x_range
from sparsemean.lab.report.figure.style import Style, style_of
from sparsemean.lab.report.figure.table import read_tables
from sparsemean.lab.report.figure.ticks import log_ticks

FORMATS = ("png", "svg", "pdf")
PURPOSE = "drawing figures"

_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "cross": "P", "x": "X", "star": "*", "hexagon": "h"}
_MARKERS |= {"triangle-up": "^", "triangle-down": "v", "pentagon": "p", "none": ""}
_DASHES: dict[str, Any] = {
    "solid": "-",
    "dash": "--",
    "dot": ":",
    "dashdot": "-.",
    "longdash": (0, (9, 3)),
    "longdashdot": (0, (9, 2, 2, 2)),
}
_SETTINGS = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e7eaef",
    "axes.edgecolor": "#8b95a3",
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 9,
    "text.parse_math": False,  # names are not formulas
    "svg.hashsalt": "sparsemean",  # the same figure is the same file
}
_METADATA = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def write_figures(
    out_dir: str | PathLike[str], directory: str | PathLike[str], format: str = "png"
) -> tuple[Path, ...]:
    """Draw every table of ``out_dir/tables`` into a file of ``directory``, and return the paths."""
    if format not in FORMATS:
        raise InvalidInput(f"figures are written as {', '.join(FORMATS)}, not as {format!r}")
    tables = read_tables(out_dir)
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in figure_names(tables):
        if figure := compose(name, spec_of(name), tables[name]):
            paths.append(target / f"{name}.{format}")
            draw(figure, paths[-1])
    return tuple(paths)


@dataclass(frozen=True)
class Sheet:
    """The layout of one image in inches: title, legend, panels and notes, so that nothing overlaps.

    Parameters
    ----------
    columns, lines
        How many panels stand side by side, and one below the other.
    legend_lines, note_lines
        Lines of text above and below the panels.
    panel
        Width and height of a panel.
    """

    columns: int
    lines: int
    legend_lines: int
    note_lines: int
    panel: tuple[float, float]

    GAP = (0.55, 0.75)
    LEFT, RIGHT, TITLE, LINE = 0.95, 0.15, 0.4, 0.21

    @property
    def width(self) -> float:
        return self.LEFT + self.columns * (self.panel[0] + self.GAP[0]) - self.GAP[0] + self.RIGHT

    @property
    def head(self) -> float:
        return self.TITLE + self.LINE * self.legend_lines + 0.2

    @property
    def height(self) -> float:
        return self.head + self.lines * (self.panel[1] + self.GAP[1]) + self.LINE * self.note_lines

    def place(self, line: int, column: int) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of a panel, as parts of the sheet."""
        left = self.LEFT + column * (self.panel[0] + self.GAP[0])
        top = self.head + line * (self.panel[1] + self.GAP[1]) + 0.25
        bottom = self.height - top - self.panel[1]
        return left / self.width, bottom / self.height, self.panel[0] / self.width, self.panel[1] / self.height


def draw(figure: Figure, path: Path) -> None:
    """Write one figure; the suffix of the path says in which format."""
    columns = figure.columns
    panel = (2.9, 1.75) if columns > 1 else (5.4, 2.6)
    lines = [-(-len(row.panels) // columns) for row in figure.rows]
    width = Sheet(columns, 0, 0, 0, panel).width
    notes = [line for note in figure.notes for line in textwrap.wrap(note, int(15 * width))]
    longest = max(len(figure.spec.label(name)) for name in figure.series)
    entries = max(1, int(width / (0.7 + 0.075 * longest)))
    sheet = Sheet(columns, sum(lines), -(-len(figure.series) // entries), len(notes), panel)
    with optional("matplotlib", PURPOSE, "report").rc_context(_SETTINGS):
        canvas = optional("matplotlib.figure", PURPOSE, "report").Figure(figsize=(sheet.width, sheet.height), dpi=150)
        line = 0
        for row, height in zip(figure.rows, lines, strict=True):
            for i, shown in enumerate(row.panels):
                axes = canvas.add_axes(sheet.place(line + i // columns, i % columns))
                _panel(figure, row, shown, axes)
                if i % columns == 0:
                    axes.set_ylabel("\n".join(textwrap.wrap(row.quantity.short, 26)))
            line += height
        left = 0.1 / sheet.width
        canvas.text(left, 1 - 0.12 / sheet.height, figure.spec.heading, va="top", fontsize=12, fontweight="bold")
        handles = [_handle(style_of(name), figure.spec.label(name)) for name in figure.series]
        corner = (0.0, 1 - sheet.TITLE / sheet.height)
        canvas.legend(handles=handles, loc="upper left", bbox_to_anchor=corner, ncols=entries, frameon=False)
        canvas.text(left, 0.08 / sheet.height, "\n".join(notes), va="bottom", fontsize=8, linespacing=1.5)
        kind = path.suffix.removeprefix(".")
        canvas.savefig(path, format=kind, metadata=_METADATA[kind])


def _panel(figure: Figure, row: PanelRow, panel: Panel, axes: Any) -> None:
    for line in panel.lines:
        if figure.spec.kind == "bars":
            _bars(panel, line, axes)
        else:
            _line(figure.spec.kind, line, panel.scale, axes)
    if figure.spec.x_log:
        ends = x_range(panel)
        places = log_ticks(AxisScale(True, *ends))
        axes.set_xscale("log")
        axes.set_xlim(*ends)
        axes.set_xticks([value for value, _ in places], [text for _, text in places])
        axes.set_xticks([], minor=True)
    if panel.scale.log:
        ticks = log_ticks(panel.scale)
        axes.set_yscale("log")
        axes.set_yticks([value for value, _ in ticks], [text for _, text in ticks])
        axes.set_yticks([], minor=True)
    elif row.quantity.percent:
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    axes.set_ylim(panel.scale.low, panel.scale.high)
    for mark in panel.marks:
        ends = axes.get_xlim() if mark.x is None else (mark.x - 0.4, mark.x + 0.4)
        axes.plot(ends, (mark.y, mark.y), color="#4b5563", linewidth=0.9, linestyle="--")
        place_x = ends[1] if mark.x is None else mark.x
        axes.text(place_x, mark.y, mark.label, ha="right" if mark.x is None else "center", va="bottom", fontsize=7)
    if panel.ticks:
        axes.set_xticks(range(len(panel.ticks)), panel.ticks)
        axes.grid(visible=False, axis="x")
    axes.set_title(panel.title)
    axes.set_xlabel(figure.spec.x_label)
    axes.set_axisbelow(True)


def _line(kind: str, line: Line, scale: AxisScale, axes: Any) -> None:
    style, curve = style_of(line.look), line.measured
    mean = np.where(np.isfinite(curve.mean), curve.mean, np.nan)
    look = _look(style)
    if line.stairs:
        axes.step(curve.x, mean, where="post", **look, linewidth=1.2 if style.dash != "solid" else 2.4)
        return
    if line.theory is not None:
        dash, width = (_DASHES[style.dash], 1.4) if kind == "points" else ("--", 0.8)
        axes.plot(line.theory.x, line.theory.mean, color=style.light, linestyle=dash, linewidth=width)
    if kind == "points" or line.group:
        points = {**look, "linestyle": "none", "markersize": 3.5, "elinewidth": 1}
        axes.errorbar(curve.x, mean, np.nan_to_num(curve.margin), **points)
        return
    axes.plot(curve.x, mean, **look, markevery=max(1, len(curve.x) // 8), linewidth=1.6)
    low, high = band(curve, scale)
    if np.any(spread := np.isfinite(low)):
        axes.fill_between(curve.x, low, high, where=spread, color=style.light, alpha=0.16, linewidth=0)


def _bars(panel: Panel, line: Line, axes: Any) -> None:
    x, width = panel.bars(line)
    error = np.nan_to_num(line.measured.margin)
    axes.bar(x, line.measured.mean, width, yerr=error, color=style_of(line.name).light, capsize=2)


def _look(style: Style) -> dict[str, Any]:
    face = "white" if style.marker.endswith("-open") else style.light
    marker = _MARKERS[style.marker.removesuffix("-open")]
    look = {"color": style.light, "linestyle": _DASHES[style.dash], "marker": marker, "markersize": 4.5}
    return look | {"markerfacecolor": face, "markeredgecolor": style.light}


def _handle(style: Style, label: str) -> Any:
    label = label if not label.startswith("_") else f" {label}"  # else it would be left out
    return optional("matplotlib.lines", PURPOSE, "report").Line2D([], [], label=label, **_look(style))
