"""Marks and dashes on the screen, the same in legends and in figures."""

from __future__ import annotations

SHAPES = {
    "circle": '<circle cx="8" cy="8" r="4"/>',
    "square": '<path d="M4 4h8v8h-8z"/>',
    "diamond": '<path d="M8 3l5 5-5 5-5-5z"/>',
    "cross": '<path d="M6.3 3.5h3.4v2.8h2.8v3.4h-2.8v2.8h-3.4V9.7h-2.8V6.3h2.8z"/>',
    "x": '<path d="M4.5 3l3.5 3.2L11.5 3 13 4.5 9.8 8 13 11.5 11.5 13 8 9.8 4.5 13 3 11.5 6.2 8 3 4.5z"/>',
    "triangle-up": '<path d="M8 3l5 9H3z"/>',
    "triangle-down": '<path d="M8 13l5-9H3z"/>',
    "star": '<path d="M8 2l1.6 4 4.3.2-3.3 2.7 1.1 4.2-3.7-2.3-3.7 2.3 1.1-4.2L2.1 6.2l4.3-.2z"/>',
    "pentagon": '<path d="M8 3l4.8 3.5-1.8 5.6h-6l-1.8-5.6z"/>',
    "hexagon": '<path d="M8 3.2l4.3 2.4v4.8L8 12.8l-4.3-2.4V5.6z"/>',
}
"""Drawn in a square of 16 by 16."""

DASHES = {
    "solid": "",
    "dash": "7 3",
    "dot": "2 3",
    "dashdot": "7 2 2 2",
    "longdash": "11 3",
    "longdashdot": "11 2 2 2",
}


def symbols() -> str:
    """The shapes as symbols that a page has once and uses wherever it draws a mark."""
    shapes = "".join(f'<symbol id="mark-{name}" viewBox="0 0 16 16">{shape}</symbol>' for name, shape in SHAPES.items())
    return f'<svg class="symbols" aria-hidden="true">{shapes}</svg>'
