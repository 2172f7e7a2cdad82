"""Write the tutorials as notebooks, beside the pages that they are made of.

    python scripts/make_notebooks.py

A page is plain Markdown, and its examples are run by the tests. In the notebook examples are cells without prompts, and
what the page says that they print is their output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from doctest import DocTestParser, Example
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
TUTORIALS = ("first-ten-minutes", "paper-by-hand")
FENCED = re.compile(r"^```python\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebook_of(page: str) -> dict[str, Any]:
    """The notebook of a page, as JSON of format 4.5."""
    cells: list[dict[str, Any]] = []
    for number, piece in enumerate(FENCED.split(page)):
        if number % 2:
            cells += code_cells(piece)
        elif piece.strip():
            cells.append({"cell_type": "markdown", "metadata": {}, "source": lines(piece.strip())})
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def code_cells(block: str) -> Iterator[dict[str, Any]]:
    """Examples up to one that shows something make a cell."""
    source = ""
    for example in (examples := DocTestParser().get_examples(block)):
        source += example.source
        if example.want or example is examples[-1]:
            fails = example.exc_msg is not None
            yield {
                "cell_type": "code",
                "execution_count": None,
                "metadata": {"tags": ["raises-exception"]} if fails else {},
                "outputs": [shown(example)] if example.want else [],
                "source": lines(source.rstrip("\n")),
            }
            source = ""


def shown(example: Example) -> dict[str, Any]:
    """What the page says comes of an example, as the output of a cell."""
    if example.exc_msg is not None:
        name, _, message = example.exc_msg.strip().partition(": ")
        name = name.rpartition(".")[2]
        return {"output_type": "error", "ename": name, "evalue": message, "traceback": [example.exc_msg.strip()]}
    try:
        compile(example.source, "example", "eval")
        printed = example.source.startswith("print(")
    except SyntaxError:
        printed = True
    if printed:
        return {"output_type": "stream", "name": "stdout", "text": lines(example.want)}
    data = {"text/plain": lines(example.want.rstrip("\n"))}
    return {"output_type": "execute_result", "data": data, "execution_count": None, "metadata": {}}


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    for name in TUTORIALS:
        notebook = notebook_of((DOCS / f"{name}.md").read_text(encoding="utf-8"))
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        (DOCS / f"{name}.ipynb").write_text(text, encoding="utf-8")
        print(f"docs/{name}.ipynb")


if __name__ == "__main__":
    main()
