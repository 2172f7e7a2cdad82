"""The same figures for paper: one png, svg or pdf file each."""

from __future__ import annotations

import textwrap
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.lab.report.compose import compose
from sparsemean.lab.report.extra import optional
from sparsemean.lab.report.figure import Figure, Line, Panel, Row
from sparsemean.lab.report.reproduction import figure_names, read_tables
from sparsemean.lab.report.spec import spec_of
from sparsemean.lab.report.style import Style, style_of

FORMATS = ("png", "svg", "pdf")
WIDTH, HEIGHT = 3.6, 2.5
"""Of one panel, in inches."""

_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "cross": "P", "x": "X", "star": "*", "hexagon": "h"}
_MARKERS |= {"triangle-up": "^", "triangle-down": "v"}
_DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_SETTINGS = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e7eaef",
    "axes.edgecolor": "#8b95a3",
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 9,
    "svg.hashsalt": "sparsemean",  # the same figure is the same file
}
_METADATA = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def write_figures(
    out_dir: str | PathLike[str], directory: str | PathLike[str], format: str = "png"
) -> tuple[Path, ...]:
    """Draw every table of ``out_dir/tables`` into ``directory``, and return the paths."""
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


def draw(figure: Figure, path: Path) -> None:
    """Write one figure; the suffix of the path says in which format."""
    matplotlib = optional("matplotlib", "drawing figures")
    drawing = optional("matplotlib.figure", "drawing figures")
    lines = [-(-len(row.panels) // figure.columns) for row in figure.rows]
    with matplotlib.rc_context(_SETTINGS):
        size = (max(WIDTH * figure.columns, 2 * WIDTH), HEIGHT * sum(lines) + 1.1)
        sheet = drawing.Figure(figsize=size, layout="constrained", dpi=150)
        axes = sheet.subplots(sum(lines), figure.columns, squeeze=False)
        top = 0
        for row, height in zip(figure.rows, lines, strict=True):
            places = axes[top : top + height].ravel()
            for place, panel in zip(places, row.panels, strict=False):
                _panel(figure, row, panel, place)
            for unused in places[len(row.panels) :]:
                unused.set_visible(False)
            for first in axes[top : top + height, 0]:
                first.set_ylabel("\n".join(textwrap.wrap(row.quantity.label, 28)))
            top += height
        sheet.suptitle(figure.spec.title, x=0.01, ha="left", fontsize=12, fontweight="bold")
        handles = [_handle(style_of(name)) for name in figure.series]
        sheet.legend(handles=handles, loc="outside lower center", ncols=max(2, int(size[0] / 2.6)), frameon=False)
        if figure.notes:
            sheet.supxlabel("\n".join(_wrapped(figure.notes, size[0])), x=0.01, ha="left", fontsize=8)
        kind = path.suffix.removeprefix(".")
        sheet.savefig(path, format=kind, metadata=_METADATA[kind])


def _panel(figure: Figure, row: Row, panel: Panel, axes: Any) -> None:
    for place, line in enumerate(panel.lines):
        if figure.spec.kind == "bars":
            _bars(line, place, len(panel.lines), axes)
        else:
            _line(figure.spec.kind, line, axes)
    if row.scale.log:
        axes.set_yscale("log")
    if figure.spec.x_log:
        axes.set_xscale("log")
    axes.set_ylim(row.scale.low, row.scale.high)
    for mark in panel.marks:
        axes.axhline(mark.y, color="#4b5563", linewidth=0.8, linestyle="--")
        axes.text(1, mark.y, mark.label, transform=axes.get_yaxis_transform(), ha="right", va="bottom", fontsize=7)
    if panel.ticks:
        axes.set_xticks(range(len(panel.ticks)), panel.ticks)
        axes.grid(visible=False, axis="x")
    axes.set_title(panel.title)
    axes.set_xlabel(figure.spec.x_label)
    axes.set_axisbelow(True)


def _line(kind: str, line: Line, axes: Any) -> None:
    style, curve = style_of(line.name), line.measured
    mean = np.where(np.isfinite(curve.mean), curve.mean, np.nan)
    look = _look(style)
    if line.theory is not None:
        dash = _DASHES[style.dash] if kind == "points" else ":"
        axes.plot(line.theory.x, line.theory.mean, color=style.light, linestyle=dash, linewidth=1.4)
    if kind == "points":
        axes.errorbar(curve.x, mean, 2 * np.nan_to_num(curve.error), **{**look, "linestyle": "none"}, elinewidth=1)
        return
    axes.plot(curve.x, mean, **look, markevery=max(1, len(curve.x) // 8), linewidth=1.6)
    spread = np.isfinite(curve.error) & np.isfinite(curve.mean)
    if np.any(spread):
        low, high = mean - 2 * curve.error, mean + 2 * curve.error
        axes.fill_between(curve.x, low, high, where=spread, color=style.light, alpha=0.16, linewidth=0)


def _bars(line: Line, place: int, count: int, axes: Any) -> None:
    curve, width = line.measured, 0.65 / count
    x = curve.x + (place - (count - 1) / 2) * width
    error = 2 * np.nan_to_num(curve.error)
    axes.bar(x, curve.mean, width, yerr=error, color=style_of(line.name).light, capsize=2)


def _look(style: Style) -> dict[str, Any]:
    face = "white" if style.marker.endswith("-open") else style.light
    marker = _MARKERS[style.marker.removesuffix("-open")]
    look = {"color": style.light, "linestyle": _DASHES[style.dash], "marker": marker, "markersize": 4.5}
    return look | {"markerfacecolor": face, "markeredgecolor": style.light}


def _handle(style: Style) -> Any:
    return optional("matplotlib.lines", "drawing figures").Line2D([], [], label=style.label, **_look(style))


def _wrapped(notes: tuple[str, ...], width: float) -> list[str]:
    return [line for note in notes for line in textwrap.wrap(note, int(width * 18))]
