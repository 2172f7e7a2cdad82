"""The printed sheet: title, legend, panels and notes, each with its place in inches, so that nothing overlaps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sheet:
    """Where everything goes, in inches."""

    columns: int
    lines: int
    legend_lines: int
    note_lines: int
    panel: tuple[float, float]

    GAP = (0.55, 0.75)
    LEFT, RIGHT, TITLE, LINE = 0.75, 0.15, 0.4, 0.21

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
