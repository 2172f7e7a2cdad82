"""The tutorials as notebooks: made of their pages, and run by a real kernel they show what they say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from make_notebooks import TUTORIALS, notebook_of

DOCS = Path(__file__).parents[2] / "docs"


def shown(cell: dict[str, Any]) -> str:
    """The outputs of a cell as a reader sees them; a kernel may send what is printed in several pieces."""
    outputs = cell.get("outputs", [])
    return "".join(output.get("text") or output.get("ename") or output["data"]["text/plain"] for output in outputs)


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_notebook_is_that_of_its_page_and_a_kernel_shows_what_it_says(name: str, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="notebooks are run with nbclient and ipykernel")
    path = DOCS / f"{name}.ipynb"
    written = nbformat.read(path, as_version=4)
    nbformat.validate(written)
    made = notebook_of((DOCS / f"{name}.md").read_text(encoding="utf-8"))
    assert json.loads(path.read_text(encoding="utf-8")) == made, "the page has changed: run scripts/make_notebooks.py"
    execute = "from nbclient.cli import main; main()"  # in a process of its own, with its own event loop and sockets
    command = [sys.executable, "-c", execute, f"--output={tmp_path / 'run'}", str(path)]
    subprocess.run(command, check=True, timeout=600, capture_output=True)
    run = nbformat.read(tmp_path / "run.ipynb", as_version=4)
    assert [shown(cell) for cell in run.cells] == [shown(cell) for cell in written.cells]
