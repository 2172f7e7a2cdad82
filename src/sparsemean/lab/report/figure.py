"""A figure as data: what is to be seen, before anybody draws it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsemean._types import Doubles
from sparsemean.lab.report.spec import Quantity, Spec
from sparsemean.lab.report.style import REFERENCES
from sparsemean.lab.report.tables import Curve


@dataclass(frozen=True, eq=False)
class Line:
    """One scheme in one panel."""

    name: str
    measured: Curve
    theory: Curve | None = None

    @property
    def reference(self) -> bool:
        """Whether it sends whole vectors, so that the others are measured against it."""
        return self.name in REFERENCES


@dataclass(frozen=True)
class Scale:
    """The vertical axis."""

    log: bool
    low: float
    high: float


@dataclass(frozen=True)
class Mark:
    """A height worth knowing: all along the panel, or at one place of it."""

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
    """One pair of axes."""

    title: str
    lines: tuple[Line, ...]
    scale: Scale = Scale(False, 0.0, 1.0)
    ticks: tuple[str, ...] = ()
    """Names at 0, 1, 2, … of the horizontal axis, where it has names."""
    marks: tuple[Mark, ...] = ()
    labels: tuple[Label, ...] = ()

    def bars(self, line: Line) -> tuple[Doubles, Doubles]:
        """Where the line's bars stand, and how wide each is: those of one place side by side, centred."""
        beside = [[other.name for other in self.lines if x in other.measured.x] for x in line.measured.x]
        widths = np.array([0.72 / max(2, len(names)) for names in beside])
        offsets = np.array([names.index(line.name) - (len(names) - 1) / 2 for names in beside])
        return line.measured.x + offsets * widths, widths


@dataclass(frozen=True, eq=False)
class Row:
    """One quantity, in every setting."""

    quantity: Quantity
    panels: tuple[Panel, ...]


@dataclass(frozen=True, eq=False)
class Figure:
    """Rows of panels, and the words around them."""

    name: str
    spec: Spec
    rows: tuple[Row, ...]
    columns: int
    """How many panels stand side by side where there is room."""
    series: tuple[str, ...]
    takeaway: str = ""
    notes: tuple[str, ...] = ()
