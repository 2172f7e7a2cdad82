"""Cells of a text file, whatever separates them: commas, semicolons, tabs, bars or blanks."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from sparsemean.errors import InvalidInput

Line = tuple[int, list[str]]
"""Its number in the file, and its cells without blanks around them."""

COMMENT = re.compile(r"\s*#(?![;\t|,])|\s*$")
"""A line that is skipped at the top of a file; where a separator follows, ``#`` is the name of a column."""

SEPARATORS = (";", "\t", "|", ",")
"""In this order: where there are semicolons, commas may be decimal marks."""


def lines_of(path: Path) -> Iterator[Line]:
    """The lines of the file in which any cell holds something."""
    try:
        with path.open("rb") as raw:
            utf16 = raw.read(2) in (b"\xff\xfe", b"\xfe\xff")  # Excel's "Unicode text"
        with path.open(encoding="utf-16" if utf16 else "utf-8-sig", newline="") as file:
            yield from cells(file)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} cannot be read as UTF-8 text ({error}); export it anew as UTF-8 (Excel: CSV UTF-8)"
        ) from error
    except (OSError, csv.Error) as error:
        raise InvalidInput(f"{path} cannot be read as lines of cells ({error})") from error


def cells(lines: Iterator[str]) -> Iterator[Line]:
    """Line number and stripped cells of every line that is not blank."""
    skipped = 0
    for line in lines:
        if not COMMENT.match(line):
            lines = chain([line], lines)
            break
        skipped += 1
    beginning = list(islice(lines, 8))
    if beginning and (told := re.fullmatch(r'"?sep=(.)"?\s*', beginning[0])):  # Excel's hint to itself
        beginning, skipped, separator = beginning[1:], skipped + 1, told[1]
    else:
        separator = separator_of([line for line in beginning if line.strip()])
    reader = csv.reader(
        chain(beginning, lines), delimiter=separator, strict=separator != " ", skipinitialspace=separator == " "
    )
    for row in reader:
        stripped = [cell.strip() for cell in (row[:-1] if separator == " " and row and not row[-1] else row)]
        if any(stripped):
            yield reader.line_num + skipped, stripped


def separator_of(lines: list[str]) -> str:
    """What separates cells, by the first lines of the file.

    >>> separator_of(["a;b", "1,5;2,5"]), separator_of(["x y", "1 2"]), separator_of(["wind speed", "1"])
    (';', ' ', ',')
    """
    if not lines:
        return ","
    unquoted = [re.sub(r'"[^"]*"', "", line) for line in lines]
    for separator in SEPARATORS:
        if separator in unquoted[0]:
            return separator
    counts = {len(line.split()) for line in unquoted}
    return " " if len(counts) == 1 and counts != {1} else ","
