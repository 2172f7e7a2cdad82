"""What ``make dist`` builds, in empty environments: a node's with numpy alone, a server's with the command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed, free of this environment's Python settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (wheel,) = dist.glob("*.whl")
    return wheel


def pip(python: Path, *arguments: str | Path) -> str:
    """What our pip says of another environment, which has none."""
    return run(sys.executable, "-m", "pip", "--python", python, *arguments, cwd=python.parent)


def installed(wheel: str, folder: Path) -> Path:
    """The interpreter of an environment that holds the wheel and what it depends on."""
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip(python, "install", "--no-compile", "--constraint", ROOT / "constraints.txt", wheel)
    return python


@pytest.fixture(scope="module")
def node_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(str(wheel), tmp_path_factory.mktemp("node"))


def first_example() -> str:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    match = re.search(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    assert match, "README.md has no ```python block"
    return match[1]


def test_the_wheel_holds_the_type_marker_the_data_and_the_licences(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "sparsemean/py.typed",
        "sparsemean/lab/data/brittany_weather.npz",
        "sparsemean/lab/data/ATTRIBUTION.md",
    } <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_a_node_gets_numpy_and_nothing_else(node_python: Path) -> None:
    frozen = pip(node_python, "freeze", "--all")
    assert {re.split("==| @ ", line)[0] for line in frozen.splitlines()} == {"numpy", "sparsemean"}


def test_the_first_example_of_the_readme_runs_on_a_node(node_python: Path, tmp_path: Path) -> None:
    example = first_example()
    path = tmp_path / "example.txt"
    path.write_text(example, encoding="utf-8")
    as_doctest = ["-m", "doctest", "-o", "NORMALIZE_WHITESPACE", "-o", "ELLIPSIS"] if ">>>" in example else []
    run(node_python, "-W", "error", *as_doctest, path, cwd=tmp_path)


def test_the_source_distribution_has_what_tests_and_documentation_need(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        "Makefile",
        "constraints.txt",
        "CITATION.cff",
        "SECURITY.md",
        "docs/conf.py",
        "docs/pictures/overview.svg",
    }
    assert wanted | {"tests/golden/sampling_v1.json", "src/sparsemean/lab/data/brittany_weather.npz"} <= names
    assert not {name for name in names if name.startswith((".ci", "build/", ".venv"))}


def test_a_server_has_the_command_and_compiled_loops(wheel: Path, tmp_path: Path) -> None:
    python = installed(f"{wheel}[server,cli]", tmp_path)
    run(python, "-c", "import numba, zlib_ng, sparsemean; assert 'rand-k' in sparsemean.names()", cwd=tmp_path)
    told = run(python.with_name("sparsemean"), "theory", "-n", "10", "-d", "100", "-k", "10%", "--json", cwd=tmp_path)
    assert json.loads(told)
