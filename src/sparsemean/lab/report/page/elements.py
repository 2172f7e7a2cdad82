"""Pieces of HTML that all pages are made of: sections, paragraphs and tables."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class PageSection:
    """A part of the page.

    Parameters
    ----------
    name
        The address of the section within the page.
    short
        The text of the link in the navigation; empty for none.
    title
        The heading.
    body
        HTML; the others are plain text.
    """

    name: str
    short: str
    title: str
    body: str


def paragraphs(text: str, kind: str = "") -> str:
    """Text as HTML; an empty line begins a new paragraph."""
    attribute = f' class="{kind}"' if kind else ""
    return "".join(f"<p{attribute}>{html.escape(part)}</p>\n" for part in text.split("\n\n") if part.strip())


def grid(heads: Iterable[str], rows: Iterable[str], numbers: Iterable[str] = (), cards: bool = True) -> str:
    """A table.

    Parameters
    ----------
    heads
        Column names, as plain text.
    rows
        HTML of the cells of each row.
    numbers
        The columns whose head is aligned right.
    cards
        Whether rows become cards on a narrow screen; else the table scrolls.
    """
    right = set(numbers)
    head = "".join(f"<th{' class=number' if name in right else ''}>{html.escape(name)}" for name in heads)
    body = "".join(f"<tr>{row}" for row in rows)
    kind = ' class="cards"' if cards else ""
    return f'<div class="scroll" tabindex="0"><table{kind}><thead><tr>{head}<tbody>{body}</table></div>'
