"""Time that a new process needs: for importing the package, and for the first round of a server."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sparsemean.client import Client
from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.machine import Others
from sparsemean.lab.bench.measurement import Measurement
from sparsemean.lab.bench.timing import Clock, clock_of, in_turn

IMPORT, IMPORT_NUMPY, FIRST = "a process that imports sparsemean", "import numpy", "first round of a new process"

_FIRST_ROUND = """
import sys, time, sparsemean
run = sparsemean.Run.from_json(sys.argv[1])
start = time.perf_counter()
server = sparsemean.Server(run)
server.accept_many(sys.argv[2])
server.close_round()
print(time.perf_counter() - start)
"""


def startup_rows(repeats: int = 7) -> Iterator[Measurement]:
    """The import beside that of NumPy, and the first round, from bytes on disk to the mean, of a second process."""
    with tempfile.TemporaryDirectory() as folder:
        others, compiled = Others(), Path(folder, "compiled")

        def importing(name: str) -> Clock:
            return clock_of(name, lambda: _python(compiled, f"import {name}"))

        imports = in_turn([importing(name) for name in ("sparsemean", "numpy")], repeats, longest=60.0)
        yield Measurement(IMPORT, None, imports["sparsemean"], {IMPORT_NUMPY: imports["numpy"]}, others=others.cores())
        case, others = Case("rand-k-spatial-avg", 1 << 22, 0.1, 16), Others()
        vector = np.random.default_rng(0).standard_normal(case.dim, np.float32)
        for i in range(case.nodes):
            Path(folder, f"{i}.spmn").write_bytes(Client(case.run, str(i)).encode(vector, 0))
        told = [case.run.to_json(), folder]
        timings = in_turn([lambda: {FIRST: float(_python(compiled, _FIRST_ROUND, *told))}], repeats, longest=60.0)
    yield Measurement(FIRST, case, timings[FIRST], others=others.cores())


def _python(compiled: Path, code: str, *arguments: str) -> str:
    """What a new process prints. The first one compiles what is not yet kept on disk, and is the warm-up.

    Python's own bytecode is kept apart, as an installer would have done, whatever the environment says of it.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(compiled), "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
