"""numba is imported at the first call that is worth it, and where it is not installed the NumPy functions serve."""

from __future__ import annotations

import inspect
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

from sparsemean.kernels import compiled, compiled_arrays, compiled_eden, compiled_epochs, compiled_listed
from sparsemean.kernels.twin import ARRAYS, DRAWING, EPOCHS, LISTED, PASS, ROTATION, SMALL, chosen, twin

FILES = [
    sys.modules[f"sparsemean.kernels.{name}"]
    for name in ["arrays", "carry", "eden", "epochs", "fit_sums", "fold", "listed", "restore", "sample"]
]
NUMPY = {name: function for file in FILES for name, function in vars(file).items() if name.endswith("_numpy")}


def compiled_module(own: str) -> ModuleType:
    modules = compiled_epochs, compiled_listed, compiled, compiled_arrays, compiled_eden
    return next(module for module in modules if hasattr(module, own))


@pytest.mark.parametrize("name", sorted(NUMPY))
def test_every_numpy_function_has_a_twin_and_serves_without_numba(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numpy, own = NUMPY[name], name.removesuffix("_numpy")
    module = compiled_module(own)
    found = chosen(numpy, own, module.__name__)
    assert found is getattr(module, own)
    monkeypatch.setitem(sys.modules, "numba", None)
    assert chosen(numpy, own, module.__name__) is numpy


@pytest.mark.parametrize("name", sorted(NUMPY))
def test_twins_have_the_same_parameters(name: str) -> None:
    own = name.removesuffix("_numpy")
    twins = NUMPY[name], getattr(compiled_module(own), own)
    one, other = ([(each.name, each.default) for each in inspect.signature(f).parameters.values()] for f in twins)
    assert one == other


def test_every_pair_calls_its_own_twin() -> None:
    """In a process where numba cannot be imported, each becomes its NumPy function at the first call that tries to."""
    in_a_new_process(
        WITHOUT_NUMBA + "for pair in (draw, gather, schedule, send, fold, carry, put, fit_sums, restore, scatter, "
        "add_scaled, reweigh, power_sums, largest, rotate_and_round, rotate_back, send_gathered, fold_listed, "
        "fit_listed, carry_listed, put_listed):\n"
        "    assert pair.func is not pair.__wrapped__\n"
        "    try: pair(*[Big()] * len(inspect.signature(pair).parameters))\n"
        "    except (TypeError, AttributeError, ValueError): pass\n"
        "    assert pair.func is pair.__wrapped__, pair\n"
    )


WITHOUT_NUMBA = """
import inspect, sys
sys.modules["numba"] = None
from sparsemean.kernels import *
from sparsemean.kernels.eden import rotate_and_round, rotate_back
from sparsemean.kernels.epochs import schedule, send, send_gathered
from sparsemean.kernels.listed import carry_listed, fit_listed, fold_listed, put_listed
from sparsemean.kernels.twin import SMALL

class Big:
    size = SMALL + 1

"""


def numpy_double(x: int, times: int = 2) -> str:
    """Doubles, in NumPy."""
    return f"numpy {x * times}"


def numba_double(x: int, times: int = 2) -> str:
    return f"numba {x * times}"


@pytest.fixture
def _doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "double", numba_double, raising=False)


@pytest.mark.usefixtures("_doubled")
def test_a_pair_is_called_like_its_numpy_function() -> None:
    double = twin(numpy_double, "double")
    for _ in range(2):  # the first call, and later ones
        assert double(3) == double(x=3) == "numba 6"
        assert double(3, 3) == double(3, times=3) == "numba 9"
        assert inspect.signature(double) == inspect.signature(numpy_double)
        assert double.__doc__ == "Doubles, in NumPy."


@pytest.mark.usefixtures("_doubled")
def test_the_first_call_may_come_from_many_threads() -> None:
    with ThreadPoolExecutor(8) as pool:
        for _ in range(50):
            double = twin(numpy_double, "double")
            assert set(pool.map(double, [3] * 16)) == {"numba 6"}


def test_without_numba_a_pair_calls_its_numpy_function(monkeypatch: pytest.MonkeyPatch) -> None:
    double = twin(numpy_double, "double")
    monkeypatch.setitem(sys.modules, "numba", None)
    assert [double(3), double(3, times=3)] == ["numpy 6", "numpy 9"]


@pytest.mark.usefixtures("_doubled")
def test_only_many_values_are_worth_loading_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    double = twin(numpy_double, "double", values=lambda x, times=2: x)
    for module in (DRAWING, ARRAYS, ROTATION, EPOCHS, LISTED, PASS):
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert double(SMALL) == double(SMALL) == f"numpy {2 * SMALL}"
    monkeypatch.setitem(sys.modules, DRAWING, compiled)
    assert double(SMALL) == f"numba {2 * SMALL}"  # something else has loaded it
    monkeypatch.delitem(sys.modules, DRAWING)
    assert double(SMALL) == f"numba {2 * SMALL}"


@pytest.mark.usefixtures("_doubled")
def test_many_values_load_numba_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (DRAWING, ARRAYS, ROTATION, EPOCHS, LISTED, PASS):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr("importlib.import_module", {"numba": None, DRAWING: compiled}.__getitem__)
    double = twin(numpy_double, "double", values=lambda x, times=2: x)
    assert double(SMALL) == f"numpy {2 * SMALL}"
    assert double(SMALL + 1) == f"numba {2 * SMALL + 2}"
    assert double(1) == "numba 2"


def in_a_new_process(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_does_not_import_numba() -> None:
    in_a_new_process("import sys, sparsemean, sparsemean.kernels; sys.exit('numba' in sys.modules)")


@pytest.mark.parametrize(
    "call",
    [
        "draw(sample, 0, sample.tiles, np.empty(sample.k, np.int64))",
        "gathered(sample, np.zeros(sample.dim))",
        "largest(np.zeros(SMALL), 5)",
        "restore([1, 2], np.zeros(SMALL, np.uint8), np.ones(SMALL // 256), 256, 4, np.empty(SMALL, np.float32))",
    ],
)
def test_small_calls_do_not_load_numba(call: str) -> None:
    in_a_new_process(
        "import sys; import numpy as np; from sparsemean.kernels import *; from sparsemean.kernels.twin import SMALL\n"
        f"sample = Sample.keyed(bytes(range(32)), 3 * SMALL, SMALL, 4096); {call}; sys.exit('numba' in sys.modules)"
    )
