"""RayServer on a real cluster of two nodes; what the session found (ray_session.py) is judged here, claim by claim."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'sparsemean[ray]'")

SESSION = Path(__file__).with_name("ray_session.py")
ROUNDING = 1e-12  # relative; seen are 2e-14
FITTED = {"rand-k-epochs-hybrid"}
Found = dict[str, Any]


def alone() -> list[str]:
    """A network and processes of its own, where that is permitted: this Ray listens on all addresses."""
    apart = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if shutil.which("unshare") and shutil.which("ip"):
        tried = subprocess.run([*apart, "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
        if tried.returncode == 0:
            return [*apart, "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    return []


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What the session found; it runs once, also where several processes share these tests."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    results = folder / "ray-session.json"
    with (folder / "ray-session.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not results.exists():
            quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
            # Ray starts its workers with a niceness of 15, so that beside other tests they would hardly ever run.
            environment = {**os.environ, **quiet, "RAY_worker_niceness": "0"}
            command = [*alone(), sys.executable, str(SESSION)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
            results.write_text(json.dumps([done.returncode, done.stdout, done.stderr]))
    code, out, said = json.loads(results.read_text())
    assert code == 0, said
    judged: Found = json.loads(out.splitlines()[-1])
    return judged


def check(found: Found, name: str) -> Found:
    part: Found = found[name]
    assert "failed" not in part, part["failed"]
    return part


def assert_same(rounds: list[Found], bits: bool = True) -> None:
    for each in rounds:
        assert each["rest"]
        assert each.get("answers", True)
        assert each["numbers"] < ROUNDING
        assert each["mean"] == 0.0 if bits else each["mean"] < ROUNDING
        assert each["bits"] or not bits


def test_estimates_are_those_of_a_server_bit_for_bit_where_nothing_is_fitted(found: Found) -> None:
    for name, seen in check(found, "same").items():
        assert_same(seen["rounds"], bits=name not in FITTED)
        assert seen["expected"] == 0.0 if name not in FITTED else seen["expected"] < ROUNDING
        assert seen["plans"]
    # Those below play four others; all schemes are in test_ray_shards.py.
    assert len(found["same"]) == 2


def test_nothing_accepted_is_lost_when_shards_are_killed_in_a_round(found: Found) -> None:
    seen = check(found, "killed")
    assert_same(seen["rounds"])
    assert len(seen["rounds"]) == 3
    assert seen["expected"] == 0.0
    assert seen["digest"]


def test_a_new_coordinator_completes_what_the_last_one_left_between_two_shards(found: Found) -> None:
    seen = check(found, "coordinator_died")
    assert seen["codes"] == [9, 9]
    assert seen["round"] == 1
    assert_same([seen["last"], seen["next"]])
    assert seen["came"]
    assert seen["answers"]
    assert seen["expected"] == 0.0
    assert seen["faults"] == [[], []]


def test_a_new_coordinator_tells_the_plans_that_the_last_one_told(found: Found) -> None:
    seen = check(found, "plans_kept")
    assert seen["codes"] == [9, 9]
    assert seen["half"]
    assert seen["told"]
    assert seen["came"]
    assert seen["plans"]
    assert_same(seen["rounds"])
    assert seen["expected"] == 0.0
    assert seen["faults"] == [[], []]


def test_a_payload_by_the_list_stays_where_a_coordinator_has_another_list(found: Found) -> None:
    seen = check(found, "plans_kept")
    assert seen["joined"] == "new"
    assert seen["kept"]


def test_fronts_refuse_what_a_server_refuses_and_the_round_has_what_was_taken(found: Found) -> None:
    seen = check(found, "fronts")
    assert seen["answers"] == ["Receipt", "ForeignPayload", "MalformedPayload"]
    assert seen["twice"] == [["Receipt"] * 2] * 2
    assert (seen["other"], seen["few"], seen["late"]) == ("ConflictingPayload", "TooFewNodes", "WrongRound")
    assert seen["came"]
    assert_same([seen["estimate"]])


def test_nothing_acknowledged_is_lost_when_fronts_shards_and_the_coordinator_are_killed_in_rounds(found: Found) -> None:
    seen = check(found, "fronts")
    assert seen["wrong"] == []
    assert seen["kills"] == {"front": 3, "shard": 3, "coordinator": 3}
    assert seen["rounds"] >= 9
    assert seen["faults"] == [[], []]


def test_the_service_plays_its_rounds_in_the_cluster(found: Found) -> None:
    seen = check(found, "service")
    if "missing" in seen:
        pytest.skip(f"the service needs {seen['missing']}: pip install 'sparsemean[serve]'")
    assert len(seen["apart"]) == 4
    assert max(seen["apart"]) < 1e-5  # means come back as float32
    assert seen["code"] == 0
    assert seen["journals"] == ["shard-000", "shard-001"]


def test_memories_of_twice_the_cap_are_shared_out_and_no_shard_holds_more_than_its_range(found: Found) -> None:
    seen = check(found, "capped")
    nodes, cap = seen["nodes"], seen["cap"]
    assert set(seen["refused"]) == {"RoundFull"}
    assert seen["taken"] == nodes
    assert_same([seen["alike"]])
    assert sum(size for size, *_ in seen["usage"]) * 4 * nodes == 2 * cap
    for size, known, after, before, _ in seen["usage"]:
        rows, totals, slack = 4 * nodes * size, 56 * size, 1 << 16
        assert known == nodes
        assert rows < after < rows + totals + slack
        assert before < totals + 3 * nodes * seen["sent"] + slack
        assert rows < cap


def test_what_is_refused_is_refused_as_by_a_server_and_changes_nothing(found: Found) -> None:
    seen = check(found, "lost")
    for plain, sharded, unchanged in seen["refused"]:
        assert plain == sharded != "none"
        assert unchanged
    assert seen["again"]
    assert seen["conflict"] == ["ConflictingPayload"] * 2
    assert seen["few"] == ["TooFewNodes"] * 2
    assert seen["after"] < ROUNDING


def test_a_shard_without_a_journal_is_lost_and_the_error_names_the_remedy(found: Found) -> None:
    first, then = check(found, "lost")["lost"]
    assert first.startswith("ShardLost: shard 1 of 2 died")
    assert "journal=" in first
    assert then == "ShardLost"


def test_settings_that_cannot_be_right_are_refused(found: Found) -> None:
    seen = check(found, "lost")
    assert all("give 1 to 5 shards" in words for words in seen["shards"])
    assert "shards = 2, not 3" in seen["foreign"]
    assert seen["folder"].startswith("DamagedJournal")
    assert "was closed" in seen["closed"]


@pytest.mark.parametrize("kept", ["journal", "memory"])
def test_an_answer_that_no_shard_can_give_is_an_error_that_names_shard_call_and_remedy(found: Found, kept: str) -> None:
    lies = check(found, "garbage")[kept]["lies"]
    assert set(lies) == {
        *("accept", "forget", "deal", "end", "summary", "result", "status", "roll", "ending"),
        *("remembered", "digest", "usage"),
    }
    for call, said in lies.items():
        liar = 0 if call in ("roll", "ending") else 1
        for lie, (error, after) in said.items():
            assert error.startswith("ShardLost: "), (call, lie, error)
            assert f"shard {liar} of 2" in error, (call, lie, error)
            assert f"{call}()" in error, (call, lie, error)
            assert "make a new RayServer" in error, (call, lie, error)
            assert after is True, (call, lie)  # as before, or as a Server is after the call


@pytest.mark.parametrize("kept", ["journal", "memory"])
def test_after_answers_that_were_garbage_the_rounds_are_those_of_a_server(found: Found, kept: str) -> None:
    rounds = check(found, "garbage")[kept]["rounds"]
    assert len(rounds) == 4
    assert_same(rounds, bits=False)
    assert found["garbage"][kept]["plans"]


def test_a_shard_that_always_answers_garbage_is_the_same_error_every_time(found: Found) -> None:
    for kept in ("journal", "memory"):
        always = check(found, "garbage")[kept]["always"]
        assert len(always) == 3
        assert set(always) == {always[0]}
        assert "sums of squares are negative or not finite" in always[0]


def test_a_payload_that_one_shard_did_not_take_is_taken_back_with_a_journal_and_else_an_error(found: Found) -> None:
    first, again, then = check(found, "garbage")["journal"]["apart"]
    assert first.startswith("ShardLost: shard 1 of 2 failed in accept() with ZeroDivisionError")
    assert (again, then) == ("none", "none")
    first, *rest = found["garbage"]["memory"]["apart"]
    assert first.startswith("ShardLost: shard 1 of 2 failed in accept() with ZeroDivisionError")
    assert all(error.startswith("ShardLost: shards disagree, and there is no journal") for error in rest)


def test_a_server_does_not_begin_with_a_shard_that_answers_garbage(found: Found) -> None:
    errors = check(found, "garbage")["born"]
    assert len(errors) == 3
    assert all(error.startswith("ShardLost: shard 0 of 2 answered status() with ") for error in errors)


def test_the_example_prints_a_table(found: Found) -> None:
    seen = check(found, "example")
    assert seen["code"] == 0, seen["errors"]
    assert "One Server has no room for 3 of the nodes. 2 shards:" in seen["said"]
    assert [line.split()[:2] for line in seen["said"].splitlines() if line.startswith("    ")] == [
        ["0", "8"],
        ["1", "8"],
    ]


def test_the_documented_snippet_runs_as_it_stands(found: Found) -> None:
    seen = check(found, "documented")
    assert [line.split()[0] for line in seen["said"][:3]] == ["a", "b", "c"]
    assert all("Receipt(" in line for line in seen["said"][:3])
    assert "Usage(lo=0, " in seen["said"][3]
    assert seen["journals"] == [f"shard-00{i}" for i in range(4)]


def test_shards_of_a_lost_host_come_back_on_another(found: Found) -> None:
    seen = check(found, "host_lost")
    assert (seen["before"], seen["after"]) == (2, 1)
    assert_same(seen["rounds"], bits=False)
    assert seen["expected"] < ROUNDING
