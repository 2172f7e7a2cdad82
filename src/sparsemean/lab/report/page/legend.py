"""The legend above a figure: one button per scheme, with its line and marker; and the colours as CSS."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable

from sparsemean.lab.report.figure.style import Style, style_of, token

_SHAPES = {
    "none": "",
    "circle": '<circle cx="17" cy="8" r="4"/>',
    "square": '<path d="M13 4h8v8h-8z"/>',
    "diamond": '<path d="M17 3l5 5-5 5-5-5z"/>',
    "cross": '<path d="M15.3 3.5h3.4v2.8h2.8v3.4h-2.8v2.8h-3.4V9.7h-2.8V6.3h2.8z"/>',
    "x": '<path d="M13.5 3l3.5 3.2L20.5 3 22 4.5 18.8 8 22 11.5 20.5 13 17 9.8 13.5 13 12 11.5 15.2 8 12 4.5z"/>',
    "triangle-up": '<path d="M17 3l5 9H12z"/>',
    "triangle-down": '<path d="M17 13l5-9H12z"/>',
    "star": '<path d="M17 2l1.6 4 4.3.2-3.3 2.7 1.1 4.2-3.7-2.3-3.7 2.3 1.1-4.2L11.1 6.2l4.3-.2z"/>',
    "pentagon": '<path d="M17 3l4.8 3.5-1.8 5.6h-6l-1.8-5.6z"/>',
    "hexagon": '<path d="M17 3.2l4.3 2.4v4.8L17 12.8l-4.3-2.4V5.6z"/>',
}
_DASHES = {
    "solid": "",
    "dash": "7 3",
    "dot": "2 3",
    "dashdot": "7 2 2 2",
    "longdash": "11 3",
    "longdashdot": "11 2 2 2",
}


def legend(names: Iterable[str], label: Callable[[str], str] = lambda name: style_of(name).label) -> str:
    """Buttons that hide and show the lines of these names, which ``label`` makes readable."""
    buttons = "".join(
        f'<button type="button" value="{token(name)}" aria-pressed="true">'
        f"{swatch(style_of(name), token(name))}{html.escape(label(name))}</button>"
        for name in names
    )
    return f'<div class="legend" role="group" aria-label="Show or hide">{buttons}</div>'


def swatch(style: Style, colour: str) -> str:
    """A piece of the line with one marker on it."""
    shape = style.marker.removesuffix("-open")
    fill = "var(--card)" if style.marker.endswith("-open") else f"var({colour})"
    return (
        f'<svg width="34" height="16" aria-hidden="true" style="stroke:var({colour});fill:{fill}">'
        f'<path d="M0 8h34" fill="none" stroke-width="2" stroke-dasharray="{_DASHES[style.dash]}"/>'
        f"{_SHAPES[shape]}</svg>"
    )


def palette(names: Iterable[str]) -> str:
    """The schemes' colours as CSS variables, for either theme."""
    own = sorted(set(names))
    light = "".join(f"{token(name)}:{style_of(name).light};" for name in own)
    dark = "".join(f"{token(name)}:{style_of(name).dark};" for name in own)
    return f":root{{{light}}}@media (prefers-color-scheme: dark){{:root{{{dark}}}}}"
