"""What a server says of its rounds: the numbers, the log, and the writers, read by the programs they are for."""

from __future__ import annotations

import csv
import logging
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tensorboardX import SummaryWriter
from tensorboardX.proto.event_pb2 import Event

import sparsemean as sm
from sparsemean._names import SchemeName

DIM = 30
RNG = np.random.default_rng(1)
VECTORS = {node: RNG.normal(size=DIM) + 1.0 for node in "abcd"}


def run_named(name: SchemeName = "rand-k-spatial-avg") -> sm.Run:
    return sm.Run(sm.named(name, k=10), DIM)


def blob(run: sm.Run, node: str, round: int) -> bytes:
    return sm.Client(run, node).encode(VECTORS[node], round)


def eventful_round(server: sm.Server) -> sm.Estimate:
    """Three nodes, one of them twice, and five refusals."""
    run, round = server.run, server.round
    for node in ("a", "b", "a", "c"):
        server.accept(node, blob(run, node, round))
    refused: list[tuple[str, bytes, type[sm.SparseMeanError]]] = [
        ("d", b"rubbish", sm.MalformedPayload),
        ("d", b"rubbish", sm.MalformedPayload),
        ("d", blob(run, "c", round), sm.ForeignPayload),
        ("d", blob(run, "d", round + 5), sm.WrongRound),
        ("", b"", sm.InvalidInput),
    ]
    for node, bad, kind in refused:
        with pytest.raises(kind):
            server.accept(node, bad)
    return server.close_round()


def report(**changes: Any) -> sm.RoundReport:
    numbers = {"round": 4, "skipped": False, "nodes": 3, "repeated": 1, "refused": {}, "forgotten": 0, "bytes": 90}
    return sm.RoundReport(**{**numbers, "seconds": 0.5, **changes})


# --- The numbers.


@pytest.mark.parametrize("journal", [False, True])
def test_a_report_counts_what_happened_in_its_round(journal, tmp_path):
    reports: list[sm.RoundReport] = []
    with sm.Server(run_named(), journal=tmp_path if journal else None, on_round=[reports.append]) as server:
        estimate = eventful_round(server)
        server.accept("d", blob(server.run, "d", 1))
        server.skip_round()
        server.accept_many([("a", blob(server.run, "a", 2)), ("b", b"rubbish"), ("a", blob(server.run, "a", 2))])
        server.close_round()
    first, second, third = reports
    assert (first.round, first.skipped, first.nodes, first.repeated) == (0, False, 3, 1)
    assert first.refused == {"MalformedPayload": 2, "ForeignPayload": 1, "WrongRound": 1, "InvalidInput": 1}
    assert first.bytes == 3 * server.run.payload_bytes
    assert first.bytes == estimate.bytes
    assert (first.error, first.error_se) == (estimate.error, estimate.error_se)
    assert estimate.correlation is not None
    assert first.ratio == estimate.correlation.ratio
    assert first.seconds > 0
    assert (second.round, second.skipped, second.nodes, second.repeated, second.refused) == (1, True, 1, 0, {})
    assert second.error is second.error_se is second.ratio is None
    assert (third.round, third.nodes, third.repeated, third.refused) == (2, 1, 1, {"MalformedPayload": 1})


def test_seconds_run_from_the_end_of_the_round_before(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("sparsemean.server.counters.time.monotonic", lambda: now[0])
    reports: list[sm.RoundReport] = []
    server = sm.Server(run_named(), on_round=[reports.append])
    for later in (3.0, 0.25):
        server.accept("a", blob(server.run, "a", server.round))
        now[0] += later
        server.close_round()
    assert [each.seconds for each in reports] == [3.0, 0.25]


def test_a_round_that_could_not_be_closed_is_not_reported_and_keeps_its_counts():
    reports: list[sm.RoundReport] = []
    server = sm.Server(run_named(), on_round=[reports.append])
    with pytest.raises(sm.PayloadError):
        server.accept("a", b"rubbish")
    with pytest.raises(sm.TooFewNodes):
        server.close_round()
    assert reports == []
    server.accept("a", blob(server.run, "a", 0))
    server.close_round()
    assert reports[0].refused == {"MalformedPayload": 1}


def test_where_no_error_is_known_none_is_reported():
    reports: list[sm.RoundReport] = []
    server = sm.Server(run_named("top-k"), on_round=[reports.append])
    server.accept("a", blob(server.run, "a", 0))
    server.close_round()
    assert reports[0].error is reports[0].error_se is reports[0].ratio is None
    assert {"error", "error_se", "ratio"}.isdisjoint(reports[0].numbers())


# --- The log.


def test_rounds_are_logged_and_so_are_refusals_where_somebody_wants_to_know(caplog):
    caplog.set_level(logging.DEBUG, "sparsemean")
    eventful_round(sm.Server(run_named()))
    ended = [record for record in caplog.records if record.levelno == logging.INFO]
    assert len(ended) == 1
    assert ended[0].name == "sparsemean.server"
    assert "round=0" in ended[0].getMessage()
    assert "nodes=3" in ended[0].getMessage()
    refused = [record.getMessage() for record in caplog.records if record.levelno == logging.DEBUG]
    assert len(refused) == 5
    assert all(message.startswith("refused: ") for message in refused)


def test_forgetting_for_want_of_room_is_a_warning(caplog):
    run = run_named()
    server = sm.Server(run, memory_bytes=3000)
    for node in "ab":
        server.accept(node, blob(run, node, server.round))
        server.close_round()
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == ["round 1: forgot 1 nodes for want of room; see memory_bytes"]


def test_without_a_handler_nothing_is_printed(capsys):
    eventful_round(sm.Server(run_named()))
    assert capsys.readouterr() == ("", "")


def test_a_watcher_that_fails_hurts_neither_the_round_nor_the_others(caplog):
    def failing(_: sm.RoundReport) -> None:
        raise OSError("the disk of the reports is full")

    reports: list[sm.RoundReport] = []
    alone, server = sm.Server(run_named()), sm.Server(run_named(), on_round=[failing, reports.append])
    assert eventful_round(server).mean.tobytes() == eventful_round(alone).mean.tobytes()
    assert server.round == 1
    assert server.digest() == alone.digest()
    assert len(reports) == 1
    (logged,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "failing" in logged.getMessage()
    assert logged.exc_info is not None
    assert "the disk of the reports is full" in str(logged.exc_info[1])


def test_a_watcher_may_use_the_server(tmp_path):
    """It is called when the round is over and the server free, so a deadlock would show here."""
    seen: list[tuple[int, str]] = []
    server = sm.Server(
        run_named(), journal=tmp_path, on_round=[lambda each: seen.append((server.round, server.digest()))]
    )
    with server:
        eventful_round(server)
        assert seen == [(1, server.digest())]


# --- CSV.


def test_csv_has_one_heading_and_a_line_for_each_round_also_after_a_restart(tmp_path):
    path = tmp_path / "rounds.csv"
    for start in (0, 2):
        server = sm.Server(run_named(), round=start, on_round=[sm.CsvReports(path)])
        eventful_round(server)
        server.skip_round()
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["round"], line["skipped"], line["nodes"]) for line in lines] == [
        ("0", "False", "3"), ("1", "True", "0"), ("2", "False", "3"), ("3", "True", "0"),
    ]  # fmt: skip
    assert lines[0]["refused"] == "ForeignPayload=1 InvalidInput=1 MalformedPayload=2 WrongRound=1"
    assert float(lines[0]["error"]) > 0
    assert lines[1]["error"] == lines[1]["refused"] == ""


def test_csv_and_numbers_have_all_there_is():
    names = set(sm.RoundReport.__dataclass_fields__)
    assert set(sm.CsvReports.NAMES) == names
    whole = report(error=1.0, error_se=0.5, ratio=2.0, refused={"WrongRound": 2, "OutOfStep": 1})
    assert set(whole.numbers()) == names
    assert whole.numbers()["refused"] == 3


# --- Prometheus, as its own client reads it.


def samples(reports: sm.PrometheusReports) -> dict[tuple[str, str], float]:
    families = list(text_string_to_metric_families(reports.text()))
    assert all(family.documentation for family in families)
    assert {family.type for family in families} == {"counter", "gauge"}
    found = [sample for family in families for sample in family.samples]
    assert len({(sample.name, *sample.labels.items()) for sample in found}) == len(found)
    return {(sample.name, sample.labels.get("reason", "")): sample.value for sample in found}


def test_prometheus_reads_sums_over_rounds_and_the_last_round():
    reports = sm.PrometheusReports()
    assert samples(reports)["sparsemean_rounds_total", ""] == 0
    server = sm.Server(run_named(), on_round=[reports])
    estimates = [eventful_round(server) for _ in range(3)]
    found = samples(reports)
    assert found["sparsemean_rounds_total", ""] == 3
    assert found["sparsemean_nodes_total", ""] == 9
    assert found["sparsemean_repeated_total", ""] == 3
    assert found["sparsemean_bytes_total", ""] == sum(estimate.bytes for estimate in estimates)
    assert found["sparsemean_refused_total", "MalformedPayload"] == 6
    assert found["sparsemean_refused_total", "WrongRound"] == 3
    assert found["sparsemean_round", ""] == 2
    assert found["sparsemean_error", ""] == pytest.approx(estimates[-1].error, rel=1e-9)
    server.skip_round()
    found = samples(reports)
    assert found["sparsemean_skipped_total", ""] == 1
    assert ("sparsemean_error", "") not in found  # a skipped round has none


def test_large_counts_keep_their_last_digit():
    reports = sm.PrometheusReports()
    for _ in range(3):
        reports(report(bytes=10**14 + 1))
    assert samples(reports)["sparsemean_bytes_total", ""] == 3 * 10**14 + 3


# --- TensorBoard, from the file its writer makes.


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    (path,) = folder.iterdir()
    data, at, found = path.read_bytes(), 0, dict[str, list[tuple[int, float]]]()
    while at < len(data):  # length, its checksum, the event, its checksum
        (length,) = struct.unpack_from("<Q", data, at)
        event = Event()
        event.ParseFromString(data[at + 12 : at + 12 + length])
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, value.simple_value))
        at += 16 + length
    return found


def test_tensorboard_gets_a_point_for_each_round(tmp_path):
    writer = SummaryWriter(str(tmp_path))
    server = sm.Server(run_named(), round=7, on_round=[sm.TensorBoardReports(writer)])
    estimates = [eventful_round(server) for _ in range(2)]
    server.skip_round()
    writer.close()
    found = scalars(tmp_path)
    assert found["sparsemean/nodes"] == [(7, 3.0), (8, 3.0), (9, 0.0)]
    assert found["sparsemean/refused"] == [(7, 5.0), (8, 5.0), (9, 0.0)]
    assert [step for step, _ in found["sparsemean/error"]] == [7, 8]
    assert [error for _, error in found["sparsemean/error"]] == pytest.approx([each.error for each in estimates])
    assert "sparsemean/round" not in found


def test_tensorboard_is_spared_what_is_no_number_and_takes_another_prefix(tmp_path):
    writer = SummaryWriter(str(tmp_path))
    sm.TensorBoardReports(writer, prefix="run-3")(report(error=math.inf, ratio=math.nan, error_se=0.25))
    writer.close()
    found = scalars(tmp_path)
    assert found["run-3/error_se"] == [(4, 0.25)]
    assert {"run-3/error", "run-3/ratio"}.isdisjoint(found)


def test_what_is_no_writer_is_refused():
    with pytest.raises(sm.InvalidInput, match="SummaryWriter"):
        sm.TensorBoardReports("runs/today")  # type: ignore[arg-type]
