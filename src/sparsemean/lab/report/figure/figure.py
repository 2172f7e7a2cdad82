"""A figure as data: rows of panels with lines, marks and axes, before anything is drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsemean._types import Doubles
from sparsemean.lab.report.figure.curve import Curve
from sparsemean.lab.report.figure.spec import Quantity, Spec
from sparsemean.lab.report.figure.style import REFERENCES


@dataclass(frozen=True, eq=False)
class Line:
    """One scheme in one panel.

    Parameters
    ----------
    name
        The scheme, or what else is drawn.
    measured, theory
        What was measured and, where there is a formula, what it predicts.
    group
        The name whose look and place in the legend it shares with others, as faint points; empty where it has its own.
    stairs
        Whether it is a front: a staircase that holds each value until the next point.
    """

    name: str
    measured: Curve
    theory: Curve | None = None
    group: str = ""
    stairs: bool = False

    @property
    def look(self) -> str:
        """The name that its look goes by."""
        return self.group or self.name

    @property
    def reference(self) -> bool:
        """Whether it sends whole vectors, so that the others are compared with it."""
        return self.name in REFERENCES


@dataclass(frozen=True)
class AxisScale:
    """The vertical axis: logarithmic or linear, and its two ends."""

    log: bool
    low: float
    high: float


@dataclass(frozen=True)
class Mark:
    """A horizontal line at height ``y`` with a label: across the panel, or around ``x`` alone."""

    y: float
    label: str
    x: float | None = None


@dataclass(frozen=True)
class Label:
    """A name beside a point."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes.

    Parameters
    ----------
    title
        The setting that the panel shows; empty where there is only one.
    lines
        One per scheme.
    scale
        The vertical axis.
    ticks
        Names at 0, 1, 2, … of the horizontal axis, where it has names instead of numbers.
    marks, labels
        What is drawn besides the lines.
    """

    title: str
    lines: tuple[Line, ...]
    scale: AxisScale = AxisScale(False, 0.0, 1.0)
    ticks: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    labels: tuple[Label, ...] = ()

    def bars(self, line: Line) -> tuple[Doubles, Doubles]:
        """Centre and width of each of the line's bars; bars of one place stand side by side."""
        beside = [[other.name for other in self.lines if x in other.measured.x] for x in line.measured.x]
        widths = np.array([0.72 / max(2, len(names)) for names in beside])
        offsets = np.array([names.index(line.name) - (len(names) - 1) / 2 for names in beside])
        return line.measured.x + offsets * widths, widths


@dataclass(frozen=True, eq=False)
class PanelRow:
    """One quantity, with a panel for every setting."""

    quantity: Quantity
    panels: tuple[Panel, ...]


@dataclass(frozen=True, eq=False)
class Figure:
    """Rows of panels, and the texts around them.

    Parameters
    ----------
    name
        The name of its table, by which pages link to it.
    spec
        What it was composed from.
    rows
        One per quantity.
    columns
        How many panels stand side by side where there is room.
    series
        The names of all lines, in the order of the legend.
    takeaway, notes
        Sentences above and below, computed from the numbers.
    folded
        Those of ``series`` that are hidden until a reader asks for them.
    """

    name: str
    spec: Spec
    rows: tuple[PanelRow, ...]
    columns: int
    series: tuple[str, ...]
    takeaway: str = ""
    notes: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
