"""The DDP hook on real process groups: gloo on loopback, 2 and 3 processes; what they found is judged here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sparsemean[torch]'")
filelock = pytest.importorskip("filelock", reason="filelock, which comes with PyTorch, is not installed")

RANK = Path(__file__).with_name("torch_ddp_rank.py")
SCHEMES = [
    *("shared", "shared-int8", "identity-int8", "spatial", "estimated", "temporal", "stable-int4", "hybrid-int8"),
    "balanced-hybrid",
]
CASES = {
    2: ["every_scheme", "unbiased", "resumed", "collectives", "refusals"],
    3: ["every_scheme", "bfloat16", "modes", "subgroup", "models", "differing", "comparisons"],
}
MODES = ["static_graph", "bucket_view", "one_bucket", "dense", "warm_up", "find_unused"]
Found = list[dict[str, Any]]


@pytest.fixture(scope="module", params=[2, 3])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What every rank found, case by case; two and three make a difference to the mean and nothing else."""
    return played(request.param, tmp_path_factory)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Two ranks, whose sum does not depend on an order: they resume bit for bit, by whichever collective."""
    return played(2, tmp_path_factory)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Three ranks, of which one can differ from the others, or be left out."""
    return played(3, tmp_path_factory)


def played(ranks: int, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What every rank found; played once, however many workers share the tests."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # that of the whole session
    folder = folder / f"ranks-{ranks}"
    with filelock.FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            folder.mkdir()
            run_ranks(ranks, folder, CASES[ranks])
    return [torch.load(folder / f"found-{rank}.pt", weights_only=True) for rank in range(ranks)]


def run_ranks(ranks: int, folder: Path, cases: list[str]) -> None:
    """Let the ranks run, and none outlive this."""
    commands = [[sys.executable, str(RANK), str(rank), str(ranks), str(folder), *cases] for rank in range(ranks)]
    started = [subprocess.Popen(each, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for each in commands]
    try:
        said = [process.communicate(timeout=400)[0].decode() for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert all(process.returncode == 0 for process in started), "\n".join(said)


def by_server(found: Found, start: int = 0) -> list[dict[str, np.ndarray]]:
    """The means that ``sparsemean.Server`` makes of the gradients the ranks had, compressed from step ``start`` on."""
    runs = found[0]["runs"]
    servers = {name: sm.Server(sm.Run.from_json(run), round=start) for name, run in runs.items() if run is not None}
    means = []
    for step in range(len(found[0]["local"])):
        local = {name: [rank["local"][step][name].float().numpy().ravel() for rank in found] for name in runs}
        mean = {name: np.asarray(np.mean(vectors, axis=0, dtype=np.float64)) for name, vectors in local.items()}
        for name, server in servers.items() if step >= start else ():
            plans = server.plans(map(str, range(len(found))))
            for rank, vector in enumerate(local[name]):
                server.accept(str(rank), sm.Client(server.run, str(rank)).encode(vector, step, plans[str(rank)]))
            mean[name] = server.close_round().mean
        means.append(mean)
    return means


def assert_means_of_server(found: Found, start: int = 0, rounding: float = 1e-6) -> None:
    for step, means in enumerate(by_server(found, start)):
        for name, mean in means.items():
            if not any(rank["local"][step][name].any() for rank in found):
                mean = np.zeros_like(mean)  # DDP leaves a gradient alone that no rank has, and zero_grad() made it 0
            given, size = found[0]["means"][step][name].float().numpy().ravel(), np.abs(mean).max()
            np.testing.assert_allclose(given, mean, rtol=rounding, atol=rounding * size, err_msg=f"{step} {name}")


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Bit for bit."""
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


def assert_equal_replicas(found: Found) -> None:
    for rank in found[1:]:
        assert_same(found[0]["weights"], rank["weights"])
        for mine, theirs in zip(found[0]["means"], rank["means"], strict=True):
            assert_same(mine, theirs)
        assert rank["metrics"] == found[0]["metrics"]


@pytest.mark.parametrize("name", SCHEMES)
def test_ranks_agree_bit_for_bit_and_have_the_mean_of_the_server(found, name):
    of_case = [rank["every_scheme"][name] for rank in found]
    assert_equal_replicas(of_case)
    assert_means_of_server(of_case)
    runs = [sm.Run.from_json(run) for run in of_case[0]["runs"].values() if run is not None]
    assert len(of_case[0]["runs"]) - len(runs) == 5  # four biases, and the last layer's 500 entries
    assert len({run.seed for run in runs}) == len(runs) > 1


@pytest.mark.parametrize("name", ["shared", "spatial", "hybrid-int8"])
def test_bfloat16_gradients(three, name):
    of_case = [rank["bfloat16"][name] for rank in three]
    assert all(mean.dtype == torch.bfloat16 for mean in of_case[0]["means"][0].values())
    assert_equal_replicas(of_case)
    assert_means_of_server(of_case, rounding=2**-8)


@pytest.mark.parametrize("mode", MODES)
def test_modes_of_ddp(three, mode):
    of_case = [rank["modes"][mode] for rank in three]
    assert_equal_replicas(of_case)
    assert_means_of_server(of_case, start={"dense": 99, "warm_up": 3}.get(mode, 0))


def test_nothing_depends_on_the_buckets(three):
    many, one = three[0]["every_scheme"]["temporal"], three[0]["modes"]["one_bucket"]
    assert_same(many["weights"], one["weights"])
    assert many["bytes"] == one["bytes"]


def test_warm_up_steps_are_dense(three):
    sent = three[0]["modes"]["warm_up"]["bytes"]
    assert [mine == dense for mine, dense in sent] == [True, True, True, False, False]
    assert three[0]["modes"]["warm_up"]["total_bytes"] == sum(mine for mine, _ in sent)


@pytest.mark.parametrize("name", ["shared", "hybrid-int8"])
def test_one_collective_per_bucket_and_its_bytes(two, name):
    case = two[0]["collectives"][name]
    steps, of_runs = case["steps"], case["of_runs"]
    assert steps[0]["buckets"] != steps[-1]["buckets"]  # they were rebuilt
    assert len(steps[-1]["buckets"]) > 1
    entries = {"last": 500, "first": 2400, "spare": 3600, "middle": 3000}
    biases = {"last": 10, "first": 60, "spare": 60, "middle": 50}
    whole = {name: 4 * (biases if name.endswith("bias") else entries)[name.split(".")[0]] for name in of_runs}
    compressed = sum(whole[name] if sent is None else sent for name, sent in of_runs.items())
    for number, step in enumerate(steps):
        assert len(step["seen"]) == len(step["buckets"])
        assert sum(step["seen"]) == step["bytes"] == (sum(whole.values()) if number < 2 else compressed)
        assert step["dense"] == sum(whole.values())
    assert case["total"] == sum(step["bytes"] for step in steps)


@pytest.mark.parametrize("how", ["state_dict", "pickle"])
@pytest.mark.parametrize("name", SCHEMES)
def test_training_resumes_bit_for_bit(two, name, how):
    for rank in two:
        case = rank["resumed"][name]
        straight, resumed = case["straight"], case[how]
        assert resumed["bytes"] == straight["bytes"]
        assert resumed["total_bytes"] == straight["total_bytes"]
        assert_same(straight["weights"], resumed["weights"])


def test_the_averaged_gradient_is_unbiased(two):
    """Over 120 seeds: |z| of 9,000 coordinates below 6, the mean of z² within 0.1 of 1, |z| along the truth below 4."""
    cases = [rank["unbiased"] for rank in two]
    truth = torch.stack([case["local"] for case in cases]).mean(dim=0).numpy()
    means = cases[0]["means"].numpy()
    off, spread = means.mean(axis=0) - truth, means.std(axis=0, ddof=1) / len(means) ** 0.5
    rounded = spread < 1e-7 * np.abs(truth).max()  # went whole
    assert np.count_nonzero(rounded) == 500 + 10 + 60 + 60 + 50
    np.testing.assert_allclose(off[rounded], 0.0, atol=1e-6 * np.abs(truth).max())
    z = off[~rounded] / spread[~rounded]
    along = (means - truth) @ truth
    assert np.abs(z).max() < 6.0
    assert abs(np.mean(z**2) - 1.0) < 0.1
    assert abs(along.mean()) < 4.0 * along.std(ddof=1) / len(along) ** 0.5


def test_metrics_tell_error_whether_it_is_a_bound_and_correlation(found):
    for name in SCHEMES:
        metrics, shared = found[0]["every_scheme"][name]["metrics"], name.startswith("shared")
        assert (metrics["error"] is None) == shared
        assert metrics["error_is_bound"] is (name == "balanced-few")
        assert (metrics["correlation"] is None) == (shared or metrics["error_is_bound"])
        assert 0 < metrics["bytes"] < metrics["dense_bytes"]
        assert metrics["total_bytes"] == 5 * metrics["bytes"]


def test_a_model_that_only_some_ranks_share(three):
    of_case = [case for rank in three if (case := rank["subgroup"])]
    assert len(of_case) == 2
    assert_equal_replicas(of_case)
    assert_means_of_server(of_case)


def test_what_cannot_be_served_is_refused_with_the_remedy(two):
    told = two[0]["refusals"]
    served = {name for name in sm.names() if not told[name]}
    assert served == {
        *("identity", "rand-k", "rand-k-spatial-max", "rand-k-spatial-avg", "rand-k-spatial-opt"),
        *("rand-k-spatial-adaptive", "rand-k-spatial-adaptive-unbiased", "rand-k-temporal"),
        *("rand-k-temporal-shared-stable", "rand-k-hybrid", "rand-k-balanced", "rand-k-balanced-hybrid"),
    }
    assert all(told[name].startswith("IncompatibleScheme: ") for name in set(sm.names()) - served)
    for name, remedy in {
        "top-k": "use RandK",
        "diana": "memory=PerNode()",
        "rand-k-temporal-shared": "SharedStable()",
        "rand-k-temporal-stale": "drop forget_after",
        "table": "table=",
        "scheme": "takes a Scheme",
        "start_iter": "0 or more",
        "seed": "same arguments",
        "model": "another model or number of ranks",
        "unknown": "State(scheme, model)",
        "unbound": "bind(model)",
        "run": "no parameter 'nowhere'",
    }.items():
        assert remedy in told[name], name


ARGUMENTS = ["seed", "encoder", "decoder", "memory", "values", "start_iter", "small"]
DIFFERENCES = {name: ([name], "give State the same arguments on every rank") for name in ARGUMENTS} | {
    "k": (["encoder"], "give State the same arguments on every rank"),
    "two": (["memory", "values"], "give State the same arguments on every rank"),
    "parameters": (["parameters"], "make the same model on every rank"),
    "step": (["step"], "load one checkpoint on every rank"),
    "contents": (["what is remembered"], "load one checkpoint on every rank"),
}


@pytest.mark.parametrize("what", DIFFERENCES)
def test_ranks_that_differ_are_all_told_in_what_at_the_first_step(three, what):
    named, remedy = DIFFERENCES[what]
    for rank in three:
        message = rank["differing"][what]
        assert message.startswith("InvalidInput: the ranks would diverge: they differ in ")
        assert all(f"{name} (here " in message for name in named)
        assert ("rank 1, 2 unlike rank 0" if what == "seed" else "rank 2 unlike rank 0") in message
        assert message.endswith(remedy + (", or none" if "checkpoint" in remedy else ""))
    assert "seed (here 1;" in three[1]["differing"]["seed"]


def test_ranks_that_were_told_may_go_on_with_a_model_that_is_alike(three):
    of_case = [rank["differing"]["alike"] for rank in three]
    assert_equal_replicas(of_case)
    assert_means_of_server(of_case)


def test_ranks_compare_their_settings_once_and_again_after_loading(three):
    for rank in three:
        assert rank["comparisons"]["bytes"] == [[88], [], [], [], [88]]


SHARDED = (
    r"sharded by FSDP .*; where the net fits on every rank use DistributedDataParallel\(net\), else .*reduce_dtype"
)
MODELS = {
    "fsdp": SHARDED,
    "fsdp inside": SHARDED,
    "fully_shard": SHARDED,
    "registered with fsdp": SHARDED,
    "bare": r"got Net; use State\(scheme, DistributedDataParallel\(net\)\)",
    "the module inside": r"got Net; use State\(scheme, DistributedDataParallel\(net\)\)",
    "no module": r"got str; use State\(scheme, DistributedDataParallel\(net\)\)",
    "sparse": r"the gradient of 'words\.weight' is sparse, .*sparse=False",
    "sparse bag": r"the gradient of 'weight' is sparse, .*sparse=False",
    "another group": r"other ranks than the model's; leave it out",
}


@pytest.mark.parametrize("model", MODELS)
def test_models_that_the_hook_cannot_serve_are_refused_by_state(three, model):
    for rank in three:
        assert re.search(rf"^InvalidInput: .*{MODELS[model]}", rank["models"][model])


@pytest.mark.parametrize("model", ["dense embedding", "sparse, ignored by DDP"])
def test_embeddings_without_sparse_gradients_in_ddp_are_served(three, model):
    assert [rank["models"][model] for rank in three] == ["", "", ""]
