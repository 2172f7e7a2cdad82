"""The legend: one button per scheme, with its line and marker as they look in the figure."""

from __future__ import annotations

import html
from collections.abc import Iterable

from sparsemean.lab.report.style import Style, style_of, token

_SHAPES = {
    "circle": '<circle cx="17" cy="8" r="4"/>',
    "square": '<path d="M13 4h8v8h-8z"/>',
    "diamond": '<path d="M17 3l5 5-5 5-5-5z"/>',
    "cross": '<path d="M15.3 3.5h3.4v2.8h2.8v3.4h-2.8v2.8h-3.4V9.700h-2.8V6.300h2.800z"/>',
    "x": '<path d="M13.500 3l3.500 3.200L20.500 3 22 4.500 18.800 8 22 11.500 20.500 13 17 9.800 13.500 13 12 11.500 15.200 8 12 4.500z"/>',
    "triangle-up": '<path d="M17 3l5 9H12z"/>',
    "triangle-down": '<path d="M17 13l5-9H12z"/>',
    "star": '<path d="M17 2l1.600 4 4.300.200-3.300 2.700 1.100 4.200-3.700-2.300-3.700 2.300 1.100-4.200L11.100 6.200l4.300-.200z"/>',
    "hexagon": '<path d="M17 3.200l4.300 2.400v4.800L17 12.800l-4.300-2.400V5.600z"/>',
}
_DASHES = {"solid": "", "dash": "7 3", "dot": "2 3", "dashdot": "7 2 2 2"}


def legend(names: Iterable[str]) -> str:
    """Buttons that hide and show."""
    buttons = "".join(
        f'<button type="button" value="{token(name)}" aria-pressed="true">'
        f"{swatch(style_of(name), token(name))}{html.escape(style_of(name).label)}</button>"
        for name in names
    )
    return f'<div class="legend" role="group" aria-label="Show or hide">{buttons}</div>'


def swatch(style: Style, colour: str) -> str:
    """A piece of the line with one marker on it."""
    shape, _, hollow = style.marker.partition("-open")
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
