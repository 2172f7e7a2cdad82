"""What a figure shows: title, caption, axes, and which columns make lines and panels."""

from __future__ import annotations

from dataclasses import dataclass

from sparsemean.lab.report.figure.style import style_of

KEYS = ("task", "nodes", "data", "rate", "split", "share", "bytes")
"""Columns that tell settings apart. A table with several values of one gets a panel for each, the last key fastest."""


@dataclass(frozen=True)
class Quantity:
    """The quantity on the vertical axis of one row of panels.

    Parameters
    ----------
    columns
        Candidates; the first that the table has is drawn.
    label
        The name of the axis. What follows a comma explains it, and ``short`` leaves it out.
    log
        Whether the axis is logarithmic; None: where the values span more than a factor of 30.
    bounded
        Whether no line can diverge, so that the axis shows all of every line.
    percent
        Whether ticks are percentages.
    theory
        The column of the prediction that is drawn beside the measurement; empty for none.
    theory_label
        What the prediction is called.
    theory_of
        The one scheme that the prediction is about; empty for all.
    ranked
        Whether the sentence above the figure names the best scheme by this quantity.
    """

    columns: tuple[str, ...]
    label: str
    log: bool | None = None
    bounded: bool = False
    percent: bool = False
    theory: str = ""
    theory_label: str = ""
    theory_of: str = ""
    ranked: bool = False

    @property
    def short(self) -> str:
        """The label without its explanation."""
        return self.label.split(",")[0]


@dataclass(frozen=True)
class Spec:
    """One figure, before there are numbers.

    Parameters
    ----------
    title, caption
        Texts above and below.
    quantities
        One row of panels each.
    x, x_label, x_log
        Column, name and kind of the horizontal axis.
    kind
        ``lines`` (with bands), ``joined`` (points with error bars, joined), ``points`` (measured points, lines of
        theory) or ``bars``.
    series
        The column that tells lines apart.
    no_panels
        Keys that make no panels, because what is shown does not depend on them.
    own_scales
        Whether each panel has its own vertical axis; else panels of one task and data set share one where they can.
    ceiling
        Whether n − 1, the largest possible R2/R1, is marked.
    baseline
        The scheme with which the sentence above the figure compares.
    ours
        The scheme that is compared with it, point by point or at both ends of its line; empty where the best is named.
    all_rounds
        Whether the best is the one of the lowest mean over all rounds, not over the last ones.
    short
        The name in the page's navigation.
    tall
        Whether its panels are higher than usual, for an axis of many decades.
    by_name
        Whether schemes are called by their names, as on the command line, instead of by their labels.
    paper
        The numbers of the paper's figures that it shows again, such as "2a, 6"; empty where the paper draws no such.
    """

    title: str
    caption: str
    quantities: tuple[Quantity, ...]
    x: str = "round"
    x_label: str = "round"
    x_log: bool = False
    kind: str = "lines"
    series: str = "scheme"
    no_panels: tuple[str, ...] = ()
    own_scales: bool = False
    ceiling: bool = False
    baseline: str = "rand-k"
    ours: str = ""
    all_rounds: bool = False
    short: str = ""
    tall: bool = False
    by_name: bool = False
    paper: str = ""

    @property
    def heading(self) -> str:
        """The title, after the paper's numbers."""
        several = any(sign in self.paper for sign in ",–")
        return f"Figure{'s' if several else ''} {self.paper}: {self.title}" if self.paper else self.title

    def label(self, name: str) -> str:
        """What the line of that name is called."""
        return name if self.by_name else style_of(name).label
