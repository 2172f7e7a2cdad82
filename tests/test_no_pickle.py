"""Nothing on the server's side can run what bytes say: no pickle, marshal, yaml, eval or exec in what it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sparsemean

SOURCE = Path(sparsemean.__file__).parent
ROOTS = ("sparsemean", "sparsemean.server", "sparsemean.journal", "sparsemean.extending")
MODULES = {
    "pickle", "_pickle", "cPickle", "pickletools", "copyreg", "shelve", "marshal", "dill", "cloudpickle", "joblib",
    "yaml", "ruamel", "code", "codeop", "runpy", "subprocess", "ctypes",
}  # fmt: skip
CALLS = {"eval", "exec", "compile", "__import__", "execfile", "system", "popen", "import_module"}
LOADERS = {"load", "loadtxt", "genfromtxt", "save", "savez", "savez_compressed", "read_array"}


def path_of(module: str) -> Path | None:
    """The file of a module of ours; None for what is not a module."""
    place = SOURCE.parent.joinpath(*module.split("."))
    found = [path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()]
    return found[0] if found else None


def imported(module: str, tree: ast.Module) -> Iterator[str]:
    """Everything a module imports, wherever in it: modules, and names that may be modules."""
    path = path_of(module)
    package = module if path is not None and path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Call) and (named := _import_module(node)):
            yield named


def _import_module(node: ast.Call) -> str | None:
    """What ``importlib.import_module("…")`` imports; None where it is no such call, or its name is computed."""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    given = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
    return given if called == "import_module" and isinstance(given, str) else None


def reachable() -> dict[str, ast.Module]:
    """Our modules that the server's side imports, and the packages they lie in."""
    trees: dict[str, ast.Module] = {}
    waiting = list(ROOTS)
    while waiting:
        module = waiting.pop()
        path = path_of(module)
        if module in trees or path is None or not module.startswith("sparsemean"):
            continue
        trees[module] = ast.parse(path.read_text(encoding="utf-8"))
        waiting += [module.rpartition(".")[0], *imported(module, trees[module])]
    return trees


def faults(module: str, tree: ast.Module) -> Iterator[str]:
    """What could run bytes."""
    for name in imported(module, tree):
        if name.partition(".")[0] in MODULES:
            yield f"{module} imports {name}"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        owner = (
            function.value.id if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) else ""
        )
        where = f"{module}, line {node.lineno}:"
        if _import_module(node):
            continue
        if name in CALLS and (isinstance(function, ast.Name) or owner in ("os", "builtins", "importlib")):
            yield f"{where} calls {name}"
        if owner in ("torch", "pickle", "yaml", "joblib", "marshal") and name in ("load", "loads"):
            yield f"{where} calls {owner}.{name}"
        allowed = [word.value for word in node.keywords if word.arg == "allow_pickle"]
        if owner in ("np", "numpy") and name in LOADERS and not _false(allowed):
            yield f"{where} calls {owner}.{name} without allow_pickle=False"
        if allowed and not _false(allowed):
            yield f"{where} allows pickle"


def _false(values: list[ast.expr]) -> bool:
    return len(values) == 1 and isinstance(values[0], ast.Constant) and values[0].value is False


def test_the_servers_side_is_looked_at_as_a_whole():
    found = set(reachable())
    assert {*ROOTS, "sparsemean.wire.frame", "sparsemean.journal.log", "sparsemean.kernels.compiled"} <= found
    assert "sparsemean.client" in found
    assert not any(module.startswith(("sparsemean.lab", "sparsemean.integrations")) for module in found)
    assert len(found) > 60


def test_nothing_there_can_run_what_bytes_say():
    assert [fault for module, tree in reachable().items() for fault in faults(module, tree)] == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "def f():\n    import marshal.x as y",
        "eval('1')",
        "exec(blob)",
        "import builtins\nbuiltins.eval(text)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=trusted)",
        "torch.load(path)",
        "from yaml import safe_load",
        "importlib.import_module('pickle')",
        "importlib.import_module(name)",
        "reader.read(allow_pickle=True)",
    ],
)
def test_the_test_would_notice(source):
    assert list(faults("sparsemean.server", ast.parse(source)))


def test_harmless_calls_are_no_faults():
    harmless = "np.load(path, allow_pickle=False)\nre.compile('a')\njson.loads(text)\ncursor.execute(sql)"
    assert list(faults("sparsemean.server", ast.parse(harmless))) == []
