"""Journals that servers of earlier versions left behind: every later version opens them and goes on.

``scripts/make_golden_journals.py`` made them, and says what is in them. One that no longer fits is not to be made anew:
the code is wrong, or has to migrate it.
"""

from __future__ import annotations

import json
import runpy
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.journal import contents, faults

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "golden" / "journal"
NAMES = sorted(str(path.relative_to(GOLDEN).with_suffix("")) for path in GOLDEN.glob("v*/*.zip"))
MAKER = runpy.run_path(str(ROOT.parent / "scripts" / "make_golden_journals.py"))
ROUNDING = 1e-12  # of sums, which are taken in another order where numba is not installed


def stored(name: str, folder: Path) -> tuple[dict[str, Any], sm.Run]:
    """What the journal's server knew; the journal itself is unpacked into the folder."""
    with zipfile.ZipFile(GOLDEN / f"{name}.zip") as archive:
        archive.extractall(folder)
    story = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return story, sm.Run.from_json(json.dumps(story["run"]))


def test_every_kind_of_memory_has_a_golden_journal():
    kinds = {type(sm.named(name, k=0.5).memory) for name in MAKER["MEMORIES"]}
    assert kinds >= {type(sm.named(name, k=0.5).memory) for name in sm.names() if name != "rand-k-spatial-opt"}
    assert {f"v1/{name}-{state}" for name in MAKER["MEMORIES"] for state in ("open", "between")} < set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("shards")])
@pytest.mark.filterwarnings("ignore::sparsemean.errors.DivergenceWarning")
def test_it_is_whole_and_opens_and_goes_on(name, tmp_path):
    story, run = stored(name, tmp_path)
    assert faults(tmp_path) == []
    assert contents(tmp_path).waiting == tuple(story["waiting"])
    nodes = MAKER["Nodes"](run)
    told_before = sm.Server(run)  # brings the nodes' own states to where they were
    MAKER["begin"](told_before, nodes)
    if story["waiting"]:
        nodes.send(told_before, tuple(story["waiting"]))
    for _ in range(2):  # also after it was opened and closed by this version
        with sm.Server(run, journal=tmp_path) as server:
            assert server.round == story["round"]
            for node, expected in story["expected"].items():
                np.testing.assert_allclose(server.expected(node), expected, rtol=ROUNDING, atol=ROUNDING)
            last = server.last_estimate()
            assert (None if last is None else last.mean.tolist()) == story["last"]
    assert faults(tmp_path) == []
    with sm.Server(run, journal=tmp_path) as server:
        estimates = list(MAKER["go_on"](server, nodes, bool(story["waiting"])))
        after = server.digest()
    for estimate, expected in zip(estimates, story["next"], strict=True):
        np.testing.assert_allclose(estimate.mean, expected["mean"], rtol=ROUNDING, atol=ROUNDING)
        assert (estimate.round, estimate.bytes) == (expected["round"], expected["bytes"])
        # Another unbiased estimate of the same error than in the version that wrote the journal.
        assert estimate.error == (expected["error"] and pytest.approx(expected["error"], rel=0.1))
    assert faults(tmp_path) == []
    with sm.Server(run, journal=tmp_path) as server:
        assert server.digest() == after
