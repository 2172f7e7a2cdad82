"""The snippets that open the pages on engines run as they stand; that of docs/ray.md does in the session of Ray."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def snippets(page: str) -> list[str]:
    return re.findall("```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def test_flower() -> None:
    pytest.importorskip("flwr", reason="the Flower integration needs flwr: pip install 'sparsemean[flower]'")
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp

    node: dict[str, Any] = {}
    server: dict[str, Any] = {}
    exec(snippets("flower.md")[0], node)
    exec(snippets("flower.md")[1], server)
    assert isinstance(node["app"], ClientApp)
    assert isinstance(server["app"], ServerApp)
    assert node["app"]._mods == [node["sparsemean_mod"]]
    exec(snippets("flower.md")[2], server)
    assert isinstance(server["strategy"], server["Recorder"])
    exec(snippets("flower.md")[3], server)
    assert server["strategy"].scheme.encoder.facts.relative


def test_torch_outer(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="outer averaging needs torch: pip install 'sparsemean[torch]'")
    torch.distributed.init_process_group("gloo", f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        given: dict[str, Any] = {"net": torch.nn.Linear(100, 100, bias=False)}
        exec(snippets("outer.md")[0], given)
        start = given["net"].weight.detach().clone()
        with torch.no_grad():
            given["net"].weight += 1.0
        assert [given["outer"].step() for _ in range(50)] == [False] * 49 + [True]
        moved = given["net"].weight.detach() - start
        assert float((moved - 0.7 * 1.9).abs().max()) < 1e-3  # at 7 bytes a coordinate, of one worker
        exec(snippets("outer.md")[1], given)
        assert given["down"].encoder.facts.unbiased is False
    finally:
        torch.distributed.destroy_process_group()


def test_torch_ddp(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="the DDP hook needs torch: pip install 'sparsemean[torch]'")
    torch.distributed.init_process_group("gloo", f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        given: dict[str, Any] = {"net": torch.nn.Linear(100, 100, bias=False)}
        exec(snippets("torch-ddp.md")[0], given)
        for _ in range(3):
            given["net"].zero_grad()
            given["model"](torch.ones(100)).sum().backward()
        assert given["state"].bytes < given["state"].dense_bytes / 15
        assert torch.count_nonzero(given["net"].weight.grad) == 3_500
        exec(snippets("torch-ddp.md")[1], given)
        recorded = given["gradients"](given["model"], lambda: given["model"](torch.ones(100)).sum().backward())
        assert recorded.shape == (5, 1, 10_000)
        assert (recorded == 1.0).all()  # of a sum of outputs, where all inputs are 1
    finally:
        torch.distributed.destroy_process_group()
