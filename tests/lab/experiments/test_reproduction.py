"""The runner: parallel, interruptible, and the same bytes in the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.experiments import Setting, SettingFailed, reproduce, reproduce_settings, worker_pool
from sparsemean.lab.tables import read_table

pytestmark = pytest.mark.xdist_group("reproduction")  # most tests compare with one run

OPTIONS = (("dim", 40), ("rate", 0.1))
TINY = {
    "quadratic": [
        Setting("quadratic", "quadratic", "normal", scheme, share, seed, 4, "", 3, OPTIONS)
        for scheme, share in (("exact", None), ("rand-k", 0.1), ("wangni", 0.1))
        for seed in (1, 0)
    ],
    "shared-memory": [
        Setting("shared-memory", "stream", "weather", scheme, 0.1, 0, 2, "stations", 37)
        for scheme in ("rand-k-temporal-shared", "rand-k")
    ],
    "theory": [Setting("theory", "theory", "synthetic", "", options=(("measure", "theory"), ("statement", "optimum")))],
}
TOTAL = sum(map(len, TINY.values()))


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The tables of a run that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole")
    seen: list[tuple[int, int, str, float]] = []
    paths = reproduce_settings(TINY, out, jobs=2, progress=lambda *told: seen.append(told))
    assert [done for done, *_ in seen] == list(range(1, TOTAL + 1))
    assert {total for _, total, *_ in seen} == {TOTAL}
    assert {label for *_, label, _ in seen} == {setting.label for made in TINY.values() for setting in made}
    assert all(seconds > 0 for *_, seconds in seen)
    assert set(paths) == {*TINY, "claims"}
    return out


def test_tables_are_tidy_and_sorted(whole):
    rows = read_table(whole / "tables" / "quadratic.csv")
    assert len(rows) == 6 * 4
    keys = [(row["share"], row["scheme"], int(row["seed"]), int(row["round"])) for row in rows]
    assert keys == sorted(keys)
    assert set(files(whole / "tables")) == {"quadratic.csv", "shared-memory.csv", "theory.csv", "claims.csv"}


def test_one_process_gives_the_same_bytes(whole, tmp_path):
    reproduce_settings(TINY, tmp_path, jobs=1)
    assert files(tmp_path / "tables") == files(whole / "tables")
    assert files(tmp_path / "parts") == files(whole / "parts")


def test_interrupted_and_resumed(whole, tmp_path):
    def stop(done: int, total: int, label: str, seconds: float) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce_settings(TINY, tmp_path, jobs=2, progress=stop)
    assert len(files(tmp_path / "parts")) == 3
    assert not files(tmp_path / "tables")
    kept = files(tmp_path / "parts")
    again: list[int] = []
    reproduce_settings(TINY, tmp_path, jobs=2, progress=lambda done, *_: again.append(done))
    assert again == list(range(4, TOTAL + 1))
    assert files(tmp_path / "tables") == files(whole / "tables")
    assert kept.items() <= files(tmp_path / "parts").items()


def test_nothing_is_run_twice(whole):
    before = files(whole / "tables")
    reproduce_settings(TINY, whole, progress=lambda *_: pytest.fail("ran again"))
    assert files(whole / "tables") == before


def test_a_run_that_two_figures_show_is_run_once(tmp_path):
    one = TINY["quadratic"][:1]
    told: list[str] = []
    made = {"quadratic": one, "mine": [replace(one[0], figure="mine")]}
    reproduce_settings(made, tmp_path, jobs=2, progress=lambda *t: told.append(t[2]))
    assert told == [one[0].label]
    assert {row["figure"] for row in read_table(tmp_path / "tables" / "mine.csv")} == {"mine"}


def test_failures_are_named_and_the_rest_is_kept(tmp_path):
    good, bad = TINY["quadratic"][2], replace(TINY["quadratic"][2], scheme="rand-q")
    with pytest.raises(SettingFailed, match="1 of 2 settings failed") as failure:
        reproduce_settings({"quadratic": [bad, good]}, tmp_path, jobs=2)
    assert bad.label in str(failure.value)
    assert "did you mean 'rand-k'?" in str(failure.value)
    assert [path.stem for path in (tmp_path / "parts").iterdir()] == [good.key]


def test_a_process_that_dies_names_its_setting(tmp_path, monkeypatch):
    monkeypatch.setattr(worker_pool, "PROGRAM", "import sys; sys.stdin.readline(); sys.exit('out of memory')")
    with pytest.raises(SettingFailed, match=r"its process ended with code 1\. out of memory") as failure:
        reproduce_settings({"quadratic": TINY["quadratic"][:2]}, tmp_path, jobs=1)
    assert all(setting.label in str(failure.value) for setting in TINY["quadratic"][:2])


def test_missing_data_is_told_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPARSEMEAN_DATA", raising=False)
    with pytest.raises(InvalidInput, match="the data set fashion-mnist lacks 4 of its 4 files"):
        reproduce(tmp_path / "out", data_dir=tmp_path, figures=["kmeans"])
    assert not (tmp_path / "out").exists()


def test_wrong_arguments(tmp_path):
    with pytest.raises(InvalidInput, match="jobs is a number of processes"):
        reproduce(tmp_path, jobs=0)
    with pytest.raises(InvalidInput, match="no figure 'x'"):
        reproduce(tmp_path, figures=["x"])


PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell leaves it ignored
from sparsemean.lab.experiments import Setting, reproduce_settings
out, rounds = sys.argv[1], (4, 100_000, 100_000)
made = [Setting("q", "quadratic", "normal", "rand-k", 0.1, 0, r, "", 3 + i) for i, r in enumerate(rounds)]
reproduce_settings({"q": made}, out, data_dir=out, jobs=3)
"""


def test_ctrl_c_ends_all_processes(tmp_path):
    path = os.pathsep.join(entry for entry in sys.path if entry)
    running = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("parts/*.json")) and running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode != 0
    assert "KeyboardInterrupt" in said
    assert len(list(tmp_path.glob("parts/*.json"))) == 1
    # A worker's command line holds the data folder, which is this test's own.
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _readable(path)]
    assert not [command for command in commands if str(tmp_path).encode() in command]


def test_a_worker_ends_with_its_input_in_the_middle_of_a_setting():
    """As when the process that had started it is killed."""
    endless = replace(TINY["quadratic"][0], rounds=10**7)
    command = [sys.executable, "-c", worker_pool.PROGRAM, json.dumps([sys.path, None])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None
        try:
            worker.stdin.write(endless.canonical + "\n")
            worker.stdin.close()
            assert worker.wait(60) == 0
        finally:
            worker.kill()


def _readable(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


def test_a_package_that_is_not_there_is_named_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InvalidInput, match=r"the set digits needs sklearn: pip install 'sparsemean\[lab\]'"):
        reproduce(tmp_path, quick=True, progress=lambda *told: pytest.fail("a setting was run"))
    assert not list(tmp_path.iterdir())
