"""The legend above a figure: one button per scheme, with its line and marker; and the colours as CSS."""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Iterable

from sparsemean.lab.report.draw.symbols import DASHES
from sparsemean.lab.report.figure.style import Style, style_of, token


def legend(names: Iterable[str], label: Callable[[str], str], folded: Collection[str] = ()) -> str:
    """Buttons that hide and show the lines of these names, which ``label`` makes readable; ``folded`` begin hidden."""
    shown: list[str] = []
    more: list[str] = []
    for name in names:
        (more if name in folded else shown).append(
            f'<button type="button" value="{token(name)}" aria-pressed="{"false" if name in folded else "true"}">'
            f"{swatch(style_of(name), token(name))}{html.escape(label(name))}</button>"
        )
    fold = f'<details class="more"><summary>{len(more)} more</summary>{"".join(more)}</details>' if more else ""
    return f'<div class="legend" role="group" aria-label="Show or hide">{"".join(shown)}{fold}</div>'


def swatch(style: Style, colour: str) -> str:
    """A piece of the line with one marker on it."""
    mark = style.marker.removesuffix("-open")
    kind = ' class="open"' if style.marker.endswith("-open") else ""
    use = "" if mark == "none" else f'<use href="#mark-{mark}" x="9" width="16" height="16"{kind}/>'
    return (
        f'<svg class="swatch" width="34" height="16" aria-hidden="true" style="--own:var({colour})">'
        f'<path d="M0 8h34" stroke-dasharray="{DASHES[style.dash]}"/>{use}</svg>'
    )


def palette(names: Iterable[str]) -> str:
    """The schemes' colours as CSS variables, for either theme."""
    own = sorted(set(names))
    light = "".join(f"{token(name)}:{style_of(name).light};" for name in own)
    dark = "".join(f"{token(name)}:{style_of(name).dark};" for name in own)
    return f":root{{{light}}}@media (prefers-color-scheme: dark){{:root{{{dark}}}}}"
