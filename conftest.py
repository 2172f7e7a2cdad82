"""Engines are extras: where one is not installed, the examples in its integration are not collected.

Nor are what tests of it start as processes of their own; the tests themselves are skipped, and say why.
"""

from __future__ import annotations

from importlib.util import find_spec

ENGINES = {
    "flower": "flwr",
    "ray": "ray",
    "torch_ddp": "torch",
    "torch_outer": "torch",
    "torchft": "torchft",
    "http/service": "uvicorn",
}

collect_ignore = ["docs/conf.py"]  # Sphinx reads it; it has no examples

collect_ignore_glob = [
    pattern
    for folder, engine in ENGINES.items()
    if find_spec(engine) is None
    for pattern in (f"src/sparsemean/integrations/{folder}*", f"tests/integrations/{folder}_*.py")
]
