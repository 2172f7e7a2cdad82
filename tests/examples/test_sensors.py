"""The sensor network as a user runs it: a real broker, a process for each station, stations that die and return."""

from __future__ import annotations

import importlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm

SENSORS = Path(__file__).parents[2] / "examples" / "sensors"
STATIONS, ROUNDS, DEATHS = 9, 8, 2
PATIENCE = 180.0  # seconds for a process or a message, on a machine that does ten other things

pytest.importorskip("paho.mqtt", reason="no paho-mqtt here: pip install paho-mqtt")
pytest.importorskip("matplotlib", reason="no matplotlib here: pip install 'sparsemean[report]'")


@pytest.fixture(autouse=True)
def mosquitto() -> None:
    if shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin") is None:
        pytest.skip("no MQTT broker on this machine: install mosquitto to see the sensor network tested with it")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports one of the example's files by name, and forgets them all afterwards."""
    monkeypatch.syspath_prepend(str(SENSORS))
    yield importlib.import_module
    for file in SENSORS.glob("*.py"):
        sys.modules.pop(file.stem, None)


def run_example(folder: Path, *options: str) -> tuple[str, dict[str, Any]]:
    """What it prints and its data; it must leave neither a process of its group nor a temporary file."""
    temporary = folder / "tmp"
    temporary.mkdir()
    sizes = f"--stations={STATIONS}", f"--rounds={ROUNDS}", f"--deaths={DEATHS}", "--deadline=4"
    files = f"--out={folder / 'map.png'}", f"--data={folder / 'data.json'}"
    process = subprocess.Popen(
        [sys.executable, SENSORS / "fuse.py", *sizes, *files, *options],
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        encoding="utf-8",
    )
    try:
        printed, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, printed
        assert not group_lives(process.pid), "processes were left behind"
    finally:
        if group_lives(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    assert not list(temporary.iterdir())
    assert (folder / "map.png").read_bytes().startswith(b"\x89PNG")
    return printed, json.loads((folder / "data.json").read_text())


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_region_s_mean_from_a_tenth_of_the_bytes_while_stations_die_and_return(tmp_path: Path, example: Any):
    printed, data = run_example(tmp_path)
    run, rows = sm.Run.from_json(json.dumps(data["run"])), data["rounds"]
    readings = example("readings").load(ROUNDS, 3, STATIONS)
    victims = re.findall(r"killed \(-9\): (.*)", printed)[0].split()
    assert len(victims) == DEATHS
    assert set(rows[3]["missing"]) >= set(victims), "killed in round 2, started again in round 4"
    assert readings.stations[-1] in rows[6]["missing"], "the station that hangs misses round 6"
    assert not {*victims, readings.stations[-1]} & set(rows[7]["missing"])
    assert rows[7]["refused"].get("WrongRound", 0) >= 1, "what it sent late is refused by name"

    seen = [[readings.stations.index(node) for node in row["nodes"]] for row in rows]
    played = replay(run, readings, seen)
    for row, estimate in zip(rows, played, strict=True):
        np.testing.assert_allclose(row["mean"], estimate.mean, rtol=0, atol=1e-12)
        assert (row["error"], row["error_se"]) == pytest.approx((estimate.error, estimate.error_se), rel=1e-9)
        assert row["bytes"] == len(row["nodes"]) * run.payload_bytes <= 0.1 * row["dense_bytes"]

    # The sum over rounds of the true squared errors against theory: z below 5, the spread from other seeds.
    expected = sum(expected_error(run, readings.vectors[t, came]) for t, came in enumerate(seen))
    others = [
        true_errors(readings, seen, replay(sm.Run(run.scheme, run.dim, seed, run.blocks), readings, seen))
        for seed in range(1, 51)
    ]
    spread = np.std(others, ddof=1)
    rounding = sum(estimate.rounding or 0.0 for estimate in played)
    assert abs(np.mean(others) - expected - rounding) < 5 * spread / 50**0.5 + 0.1 * rounding
    assert abs(sum(row["true_error"] for row in rows) - expected - rounding) < 5 * spread
    check_table(printed, rows, run.dim)


def replay(run: sm.Run, readings: Any, seen: list[list[int]]) -> list[sm.Estimate]:
    """The same rounds with the same stations, in this process."""
    server, estimates = sm.Server(run), []
    for t, came in enumerate(seen):
        for i in came:
            node = readings.stations[i]
            server.accept(node, sm.Client(run, node).encode(readings.vectors[t, i], t))
        estimates.append(server.close_round())
    return estimates


def true_errors(readings: Any, seen: list[list[int]], estimates: list[sm.Estimate]) -> float:
    truth = [readings.vectors[t, came].mean(axis=0) for t, came in enumerate(seen)]
    return float(sum(np.sum((e.mean - mean) ** 2) for e, mean in zip(estimates, truth, strict=True)))


def expected_error(run: sm.Run, vectors: np.ndarray) -> float:
    """Of values that are not rounded."""
    r1, r2 = sm.theory.correlation(vectors)
    return sm.theory.spatial_mse(r1, r2, len(vectors), run.share or 0.0, "avg")


def check_table(printed: str, rows: list[dict[str, Any]], dim: int) -> None:
    lines = re.findall(r"^ +(\d+) +\S+ +(\d+) +(\d+) +(\d+) +([\d.]+)% +([\d.]+) +([\d.]+) ±", printed, re.MULTILINE)
    assert len(lines) == ROUNDS
    for line, row in zip(lines, rows, strict=True):
        round, came, missing, sent, share, true, stated = map(float, line)
        assert (round, came, missing, sent) == (row["round"], len(row["nodes"]), len(row["missing"]), row["bytes"])
        assert abs(share - 100 * row["bytes"] / row["dense_bytes"]) <= 0.05
        assert abs(true - (row["true_error"] / dim) ** 0.5) <= 0.0005001
        assert abs(stated - (row["error"] / dim) ** 0.5) <= 0.0005001


def test_stations_with_a_state_of_their_own_find_back_after_a_power_cut(tmp_path: Path):
    printed, data = run_example(tmp_path, "--scheme=diana", "--values=int8", "--payload=222", "--stations=5")
    assert "at most 222 bytes instead of 1068" in printed
    rows = data["rounds"]
    assert len(rows[3]["missing"]) >= DEATHS
    assert rows[7]["missing"] == [], printed
    assert {kind for row in rows for kind in row["refused"]} <= {"WrongRound", "OutOfStep"}
    assert all(row["true_error"] < 4 * row["error"] for row in rows)


@contextmanager
def user(example: Any, broker: Any, name: str, *topics: str) -> Iterator[tuple[Any, queue.Queue[tuple[str, Any]]]]:
    """A connection of that user, and what it hears on the topics."""
    link, ready = example("link"), threading.Event()
    heard: queue.Queue[tuple[str, Any]] = queue.Queue()
    os.environ[link.PASSWORD] = broker.passwords[name]
    client = link.connection(name, broker.address)
    client.on_connect = lambda client, *_: client.subscribe([(topic, 1) for topic in topics])
    client.on_subscribe = lambda *_: ready.set()
    client.on_message = lambda _client, _data, message: heard.put((message.topic, json.loads(message.payload)))
    client.loop_start()
    try:
        assert ready.wait(20)
        yield client, heard
    finally:
        client.disconnect()
        client.loop_stop()
        os.environ.pop(link.PASSWORD, None)


def test_every_payload_gets_a_receipt_or_a_refusal_by_name(tmp_path: Path, example: Any):
    topics = example("link").Topics("test")
    run = sm.Run(sm.named("rand-k", k=5), dim=20)
    a, b = (sm.Client(run, node) for node in "ab")
    (tmp_path / "run.json").write_text(run.to_json())
    (tmp_path / "stations.txt").write_text("a\nb\n")
    with example("broker").private_broker(tmp_path, "test", ["a", "b"]) as broker:
        files, where = (tmp_path / "run.json", tmp_path / "stations.txt"), ("--broker", broker.address)
        options = ("--network=test", "--rounds=2", "--deadline=3", "--start=0.1")
        with (
            user(example, broker, "watch", topics.round, topics.estimate) as (_, news),
            user(example, broker, "a", topics.receipt("a")) as (as_a, to_a),
            user(example, broker, "b", topics.receipt("b"), topics.receipt("a"), topics.payload("a")) as (as_b, to_b),
            server_process(example, broker, *files, *where, *options) as server,
        ):

            def ask(link: Any, answers: queue.Queue[tuple[str, Any]], node: str, blob: bytes) -> dict[str, Any]:
                link.publish(topics.payload(node), blob, qos=1)
                topic, said = answers.get(timeout=PATIENCE)
                assert topic == topics.receipt(node)
                return dict(said)

            assert news.get(timeout=PATIENCE)[1] == {"round": 0, "run": run.digest}
            first = a.encode(np.arange(20), 0)
            taken = ask(as_a, to_a, "a", first)["taken"]
            assert (taken["node"], taken["round"]) == ("a", 0)
            assert ask(as_a, to_a, "a", first)["taken"] == taken
            assert ask(as_a, to_a, "a", a.encode(np.ones(20), 0))["refused"] == "ConflictingPayload"
            assert ask(as_b, to_b, "b", b"garbage")["refused"] == "MalformedPayload"
            assert ask(as_b, to_b, "b", first)["refused"] == "ForeignPayload"
            early = ask(as_b, to_b, "b", b.encode(np.ones(20), 5))
            assert (early["refused"], early["round"]) == ("WrongRound", 0)
            as_b.publish(topics.payload("a"), a.encode(np.zeros(20), 0), qos=1)  # the broker lets nobody speak for a
            closed = news.get(timeout=PATIENCE)[1]
            assert (closed["round"], closed["nodes"]) == (0, ["a"])
            refusals = ("ConflictingPayload", "MalformedPayload", "ForeignPayload", "WrongRound")
            assert closed["refused"] == dict.fromkeys(refusals, 1)
            assert news.get(timeout=PATIENCE)[1]["round"] == 1
            assert ask(as_b, to_b, "b", b.encode(np.ones(20), 0))["refused"] == "WrongRound"
            assert ask(as_a, to_a, "a", first)["taken"] == taken
            for link, answers, client in ((as_a, to_a, a), (as_b, to_b, b)):
                ask(link, answers, client.node, client.encode(np.ones(20), 1))
            assert sorted(news.get(timeout=PATIENCE)[1]["nodes"]) == ["a", "b"]
            assert news.get(timeout=PATIENCE)[1]["round"] is None
            assert to_a.empty()
            assert to_b.empty()
            assert server.wait(20) == 0


def test_a_broker_that_restarts_is_told_again_what_it_had_retained(tmp_path: Path, example: Any):
    run = sm.Run(sm.named("rand-k", k=5), dim=20)
    (tmp_path / "run.json").write_text(run.to_json())
    (tmp_path / "stations.txt").write_text("a")
    np.save(tmp_path / "a.npy", np.ones((2, 20)))
    program = example("broker").program
    topics = example("link").Topics("test")
    with ExitStack() as stack:
        with example("broker").private_broker(tmp_path, "test", ["a"]) as broker:
            where = ("--broker", broker.address, "--network=test")
            files = (tmp_path / "run.json", tmp_path / "stations.txt")
            options = ("--rounds=2", "--deadline=60", "--start=0.1")
            server = stack.enter_context(server_process(example, broker, *files, *where, *options))
            with user(example, broker, "watch", topics.round) as (_, news):
                assert news.get(timeout=PATIENCE)[1]["round"] == 0
        again = subprocess.Popen([program("mosquitto"), "-c", tmp_path / "mosquitto.conf"], stderr=subprocess.DEVNULL)
        stack.callback(again.wait)
        stack.callback(again.kill)
        environment = {**os.environ, example("link").PASSWORD: broker.passwords["a"]}
        station = [sys.executable, SENSORS / "node.py", "a", tmp_path / "a.npy", *where]
        assert subprocess.run(station, env=environment, timeout=PATIENCE, check=False).returncode == 0
        assert server.wait(20) == 0


@contextmanager
def server_process(example: Any, broker: Any, *arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, example("link").PASSWORD: broker.passwords["fusion"]}
    process = subprocess.Popen([sys.executable, SENSORS / "server.py", *arguments], env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_ended_from_outside_it_stops_what_it_started(tmp_path: Path):
    process = subprocess.Popen(
        [sys.executable, SENSORS / "fuse.py", f"--stations={STATIONS}", f"--out={tmp_path / 'map.png'}"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + 60
        while not list(tmp_path.glob("sensors-*/stations.txt")) and time.monotonic() < until:
            time.sleep(0.05)
        process.terminate()
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 143
        assert not group_lives(process.pid)
        assert not list(tmp_path.iterdir())
    finally:
        if group_lives(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


def test_what_is_missing_is_named_with_its_remedy(example: Any):
    with pytest.raises(SystemExit, match="apt install mosquitto"):
        example("broker").program("no-such-mosquitto")
    without = "import sys; sys.modules['paho'] = None; sys.path.insert(0, sys.argv[1]); import link"
    done = subprocess.run([sys.executable, "-c", without, SENSORS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (1, "paho-mqtt is not installed: pip install paho-mqtt")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--rounds=7", "--deaths=1"), "--deaths needs 8 rounds or more"),
        (("--rounds=8", "--stations=5", "--deaths=5"), "--deaths goes from 0 to 4 with 5 stations, got 5"),
        (("--deaths=-1",), "--deaths goes from 0 to 36"),
    ],
)
def test_deaths_that_cannot_happen_are_refused(options: tuple[str, ...], said: str):
    command = [sys.executable, str(SENSORS / "fuse.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(said)
