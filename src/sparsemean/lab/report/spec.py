"""What a figure shows: its words, its axes, and what makes a panel. Drawing it is told elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

KEYS = ("task", "nodes", "data", "rate", "split", "share")
"""Columns that tell settings apart: where several occur in one table they make panels, the last varying fastest."""


@dataclass(frozen=True)
class Quantity:
    """One row of panels."""

    columns: tuple[str, ...]
    """The first of these that the table has is drawn."""
    label: str
    log: bool | None = None
    """None: logarithmic where the values span more than a factor of 30."""
    bounded: bool = False
    """Whether no line can run away, so that the axis shows all of it."""
    percent: bool = False
    theory: str = ""
    """The column of what theory says, drawn beside what was measured."""
    theory_label: str = ""
    theory_of: str = ""
    """The one scheme that theory speaks of; empty for all."""
    ranked: bool = False
    """Whether the sentence above the figure names the best scheme by it."""

    @property
    def short(self) -> str:
        """The label without its explanation."""
        return self.label.split(",")[0]


@dataclass(frozen=True)
class Spec:
    """One figure. ``kind`` is lines (with bands), points (measured points, lines of theory) or bars."""

    title: str
    caption: str
    quantities: tuple[Quantity, ...]
    x: str = "round"
    x_label: str = "round"
    x_log: bool = False
    kind: str = "lines"
    series: str = "scheme"
    """The column that tells lines apart."""
    no_panels: tuple[str, ...] = ()
    """Keys on which what is shown does not depend."""
    own_scales: bool = False
    """Whether each panel has its own vertical axis; else panels of the same task and data share one where they can."""
    ceiling: bool = False
    """Whether n − 1, the largest R2/R1 there can be, is marked."""
    short: str = ""
    """The name in the page's navigation."""
