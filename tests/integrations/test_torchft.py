"""torchft's DiLoCo over our process group: as over gloo where nothing is lost; and a replica that dies and returns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sparsemean[torch]'")
pytest.importorskip("torchft", reason="torchft is not installed: pip install 'sparsemean[torchft]'")

import sparsemean as sm  # noqa: E402
from sparsemean.integrations.torchft import SparseProcessGroup  # noqa: E402

from .own_network import network_of_its_own  # noqa: E402

REPLICAS = Path(__file__).with_name("torchft_replicas.py")
DIM = 20 * 40 + 40 * 5  # in tensors of 100 entries or more


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the replicas of each group came to."""
    apart = network_of_its_own()
    if not apart:
        pytest.skip("torchft listens on every address, and this system permits no network namespace")
    folder = tmp_path_factory.mktemp("torchft")
    command = [*apart, sys.executable, str(REPLICAS), "all", str(folder)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, env=env, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return {path.stem: torch.load(path, weights_only=True) for path in folder.glob("*.pt")}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    for name, each in one["net"].items():
        assert torch.equal(each, other["net"][name]), name


def test_whole_vectors_of_float32_are_what_gloo_averages(found):
    assert_same(found["float32-a"], found["float32-b"])
    for name, each in found["float32-a"]["net"].items():
        torch.testing.assert_close(each, found["dense-a"]["net"][name], rtol=0, atol=1e-6)
    assert found["float32-a"]["dense"] == 4 * 4 * DIM  # four exchanges


def test_a_replica_dies_and_returns_and_both_are_alike(found):
    one, other = found["killed-a"], found["killed-b"]
    assert_same(one, other)
    assert one["alone"] > 0, "it went on by itself"
    assert one["step"] == other["step"] >= 10
    assert one["sent"] < one["dense"] / 10


@pytest.mark.parametrize(
    "scheme",
    [
        sm.named("auto", k=0.1),
        sm.named("rand-k-temporal", k=0.1),
        sm.named("error-feedback-top-k", k=0.1),
        sm.named("rand-k-spatial-adaptive-unbiased", k=0.1),
    ],
)
def test_schemes_that_keep_something_are_refused(scheme):
    with pytest.raises(sm.IncompatibleScheme, match=r"without memory or plan|keep nothing"):
        SparseProcessGroup(scheme)
