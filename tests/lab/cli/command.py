"""The ``sparsemean`` command in this process: a new one takes a second to import all that it needs."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess

import pytest

from sparsemean.lab.cli import main


def command(*arguments: object, columns: int = 140) -> CompletedProcess[str]:
    """What a process of that command would print, and how it would end."""
    words = ["sparsemean", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", words)
        patch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as end:
            main()
    assert end.value.code is None or isinstance(end.value.code, int)
    return CompletedProcess(words, end.value.code or 0, out.getvalue(), err.getvalue())
