"""The ``sparsemean`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point: says what to install where the command line's libraries are missing."""
    try:
        from sparsemean.lab.cli.app import run
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich"):
            raise
        sys.exit(f"the sparsemean command needs {missing.name}: pip install 'sparsemean[cli]'")
    run()
