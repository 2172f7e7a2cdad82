"""numba is imported at the first call, and where it is not installed the twins serve."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sparsemean.kernels import draw, fold, gather
from sparsemean.kernels.fold import fold_numpy
from sparsemean.kernels.gather import gather_numpy
from sparsemean.kernels.sample import sample_numpy


@pytest.mark.parametrize(("choice", "twin"), [(draw, sample_numpy), (gather, gather_numpy), (fold, fold_numpy)])
def test_without_numba_the_twin_serves(choice, twin, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choice() is not twin
    monkeypatch.setitem(sys.modules, "numba", None)
    choice.cache_clear()
    try:
        assert choice() is twin
    finally:
        choice.cache_clear()


def test_the_package_does_not_import_numba() -> None:
    code = "import sys, sparsemean, sparsemean.kernels; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
