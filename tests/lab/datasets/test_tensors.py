"""Models as torch and safetensors save them: each state dict is the vector of a node, and no code in a file runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets import Images, Stream, load


def read(*given, **told) -> Stream:
    stream = load(*given, **told)
    assert not isinstance(stream, Images)
    return stream


def state(number: float) -> dict[str, torch.Tensor]:
    """A model of five parameters, of two types, and a counter."""
    weight = torch.tensor([[1.0, 2.0], [3.0, 4.0]]) + number
    return {
        "layer.weight": weight,
        "layer.bias": torch.tensor([0.5], dtype=torch.bfloat16),
        "batches": torch.tensor(7),
    }


def flat(number: float) -> list[float]:
    return [1 + number, 2 + number, 3 + number, 4 + number, 0.5]


def write_safetensors(path: Path, tensors: Mapping[str, tuple[str, np.ndarray]]) -> None:
    """By the format's specification: the length of a table, the table, the numbers."""
    table: dict[str, object] = {"__metadata__": {"format": "np"}}
    content = b""
    for name, (kind, array) in tensors.items():
        offsets = [len(content), len(content) + array.nbytes]
        table[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": offsets}
        content += array.tobytes()
    header = json.dumps(table).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + content)


@pytest.mark.parametrize("name", ["x.pt", "x.pth"])
@pytest.mark.parametrize(
    ("saved", "nodes"),
    [
        ([state(0), state(1)], ("node-0", "node-1")),
        ({"east": state(0), "west": state(1)}, ("east", "west")),
        ({"epoch": 3, "clients": [state(0), state(1)]}, ("node-0", "node-1")),
        ([torch.tensor(flat(0), requires_grad=True), torch.tensor(flat(1))], ("node-0", "node-1")),
        (torch.tensor([flat(0), flat(1)]), ("node-0", "node-1")),
    ],
)
def test_what_torch_saves_of_several_nodes(tmp_path, name, saved, nodes) -> None:
    torch.save(saved, tmp_path / name)
    stream = read(tmp_path / name)
    assert stream.vectors.tolist() == [[flat(0), flat(1)]]
    assert stream.nodes == nodes


def test_a_folder_or_several_files_are_nodes_named_as_the_files(tmp_path) -> None:
    for number in (10, 2):
        torch.save(state(number), tmp_path / f"client{number}.pt")
        single = np.array(flat(number)[:4], np.float32).reshape(2, 2)
        half = (np.array([0.5], np.float32).view(np.uint32) >> 16).astype(np.uint16)
        (tmp_path / "st").mkdir(exist_ok=True)
        write_safetensors(tmp_path / "st" / f"client{number}.safetensors", {"w": ("F32", single), "b": ("BF16", half)})
        (tmp_path / "npz").mkdir(exist_ok=True)
        np.savez(tmp_path / "npz" / f"client{number}.npz", w=single, b=np.array([0.5]))
    (tmp_path / "README.md").write_text("not a node")
    several = read([tmp_path / "client2.pt", tmp_path / "client10.pt"])
    assert several.name == "client2.pt and 1 more"
    assert several.note == "batches left out, as no floating-point numbers"
    for stream in (several, read(tmp_path), read(tmp_path / "st"), read(tmp_path / "npz")):
        assert stream.nodes == ("client2", "client10")
        assert stream.vectors.tolist() == [[flat(2), flat(10)]]
    assert read(tmp_path / "st").understood == (
        "1 round × 2 nodes × 5 coordinates, from 2 files, each with 2 tensors w, b"
    )


def test_an_array_in_each_file_is_the_rounds_of_a_node(tmp_path) -> None:
    vectors = np.arange(24.0).reshape(3, 2, 4)
    for node in range(2):
        np.save(tmp_path / f"n{node}.npy", vectors[:, node])
    assert read(tmp_path).vectors.tolist() == vectors.tolist()
    np.save(tmp_path / "n1.npy", vectors[:2, 1])
    with pytest.raises(InvalidInput, match="round 2, which has no row for the node 'n1'"):
        load(tmp_path)
    np.save(tmp_path / "n1.npy", vectors[:, 1, :3])
    with pytest.raises(InvalidInput, match=r"n1\.npy has 3 coordinates, .*n0\.npy has 4"):
        load(tmp_path)


def test_one_of_several_entries_is_named(tmp_path) -> None:
    path = tmp_path / "checkpoint.pt"
    torch.save({"epoch": 3, "model": state(0), "average": state(1)}, path)
    with pytest.raises(InvalidInput, match="say which entry, as in --array model: model, average"):
        load(path)
    stream = read(path, array="average")
    assert stream.vectors.tolist() == [[flat(1)]]
    assert "this is one node" in stream.note
    np.savez(tmp_path / "two.npz", a=np.ones((2, 3)), b=np.zeros((2, 2)))
    assert read(tmp_path / "two.npz", array="b").vectors.tolist() == [[[0, 0], [0, 0]]]
    with pytest.raises(InvalidInput, match="has no array 'c'; it holds a, b"):
        load(tmp_path / "two.npz", array="c")


class Harmful:
    """What a pickle may do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_no_code_in_a_file_runs(tmp_path) -> None:
    torch.save([state(0), Harmful(tmp_path / "harmed")], tmp_path / "x.pt")
    with pytest.raises(
        InvalidInput, match="it holds more than tensors, lists and dicts, and nothing else is unpickled"
    ):
        load(tmp_path / "x.pt")
    assert not (tmp_path / "harmed").exists()


def test_versions_of_torch_that_may_run_code_are_not_used(tmp_path, monkeypatch) -> None:
    torch.save(state(0), tmp_path / "x.pt")
    monkeypatch.setattr(torch, "__version__", "2.5.1+cpu")
    with pytest.raises(InvalidInput, match=r"pip install 'torch>=2\.6'"):
        load(tmp_path / "x.pt")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InvalidInput, match=r"reading \.pt files needs torch: pip install 'sparsemean\[torch\]'"):
        load(tmp_path / "x.pt")


@pytest.mark.parametrize(
    ("saved", "why"),
    [
        ([state(0), {"layer.weight": torch.ones(2, 3)}], "node 1 .* differ in name or shape from those of 0"),
        ({"epoch": 3}, r"it holds 'epoch'; save a model's state_dict\(\)"),
        ({"batches": torch.tensor(7)}, "no tensor holds floating-point numbers, but batches"),
        (torch.ones(2, 2, dtype=torch.complex64), "holds complex64, not real numbers"),
    ],
)
def test_what_holds_no_vectors_is_refused(tmp_path, saved, why: str) -> None:
    torch.save(saved, tmp_path / "x.pt")
    with pytest.raises(InvalidInput, match=why):
        load(tmp_path / "x.pt")


def test_damaged_files_are_refused(tmp_path) -> None:
    torch.save([state(0), state(1)], tmp_path / "x.pt")
    whole = (tmp_path / "x.pt").read_bytes()
    for content in (b"", b"garbage", whole[: len(whole) // 2]):
        (tmp_path / "x.pt").write_bytes(content)
        with pytest.raises(InvalidInput, match="cannot be read as tensors"):
            load(tmp_path / "x.pt")
    path = tmp_path / "x.safetensors"
    write_safetensors(path, {"w": ("F32", np.ones(4, np.float32))})
    whole = path.read_bytes()
    changes = [(b"[4]", b"[5]"), (b"[4]", b"-44"), (b"16]", b"17]"), (b"F32", b"F33"), (b"[0,", b"[9,")]
    for content in (b"", whole[:7], whole[:40], whole[:-1], *(whole.replace(*change) for change in changes)):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match="cannot be read as safetensors"):
            load(path)
    with pytest.raises(InvalidInput, match=r"holds files of several kinds \(\.pt, \.safetensors\)"):
        load(tmp_path)
