"""Tensors from the files of torch.save, .pt and .pth, by torch's reader of weights: no code in them runs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparsemean.errors import InvalidInput
from sparsemean.lab.optional_modules import optional

SAFE = (2, 6)
"""The first version whose reader of weights runs nothing from files of any age (CVE-2025-32434)."""


def loaded(path: Path) -> Any:
    """The file's lists and dicts with each tensor as an array."""
    torch = optional("torch", f"reading {path.suffix} files", "torch")
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < SAFE:
        raise InvalidInput(f"{path}: torch {torch.__version__} may run code in such files; pip install 'torch>=2.6'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # which pickle protocol a file has
            return _arrays(torch.load(path, map_location="cpu", weights_only=True), torch)
    except Exception as error:  # of many kinds, by what is damaged
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "Weights only" in why:
            why = "it holds more than tensors, lists and dicts, and nothing else is unpickled"
        raise InvalidInput(
            f"{path} cannot be read as tensors: {why}; save them with torch.save(model.state_dict(), path)"
        ) from error


def _arrays(tree: Any, torch: Any) -> Any:
    if isinstance(tree, torch.Tensor):
        plain = tree.detach().to_dense()
        return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()
    if isinstance(tree, Mapping):
        return {name: _arrays(value, torch) for name, value in tree.items()}
    return [_arrays(value, torch) for value in tree] if isinstance(tree, list | tuple) else tree
