"""What the server hands back, as people see it."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemean as sm


@pytest.mark.parametrize(("nodes", "dim"), [(1, 1), (40, 784), (3, 100_000)])
def test_an_estimate_prints_as_one_short_line(nodes, dim):
    estimate = sm.estimate_mean(np.ones((nodes, dim)), sm.named("rand-k", k=0.5))
    printed = repr(estimate)
    assert len(printed) < 140
    assert "\n" not in printed
    assert f"mean=array of {dim}" in printed
    assert f"nodes={nodes}," in printed
    assert f"bytes={estimate.bytes}," in printed
    said = "unknown" if estimate.error is None else f"{estimate.error:.4g}"
    said += "" if estimate.error_se is None else f" ± {estimate.error_se:.2g}"
    if estimate.actual_error_interval is not None:
        said += ", actual {:.3g} to {:.3g}".format(*estimate.actual_error_interval)
    assert printed.endswith(f"error={said})")
    assert ("actual" in printed) == (dim > 1)  # of one coordinate all is sent
    assert str(estimate) == printed


def test_an_unknown_error_is_called_so():
    assert "error=unknown)" in repr(sm.estimate_mean(np.ones((3, 4)), sm.named("top-k", k=2)))


def test_a_server_and_a_client_print_as_one_line_without_the_seed(tmp_path):
    run = sm.Run(sm.named("rand-k-temporal", k=2), dim=5, seed=987_654)
    server, client = sm.Server(run, journal=tmp_path / "j"), sm.Client(run, "station-12")
    blob = client.encode([1, 2, 3, 4, 5], 0)
    server.accept("station-12", blob)
    members = "RandK(k=2, shared=False), Mean(), PerNode(forget_after=None), float32 values, dim 5"
    assert repr(client) == f"<Client 'station-12': {members}>"
    kept = repr(str(tmp_path / "j"))
    shown = kept if len(kept) <= 80 else kept[:79] + "…"
    assert repr(server) == f"<Server: round 0 open, payloads: 1, nodes known: 0; {members}; journal {shown}>"
    server.close_round()
    assert repr(server).startswith("<Server: round 1 open, payloads: 0, nodes known: 1; ")
    server.close()
    assert "987" not in repr(server) + repr(client)


def test_what_is_long_is_cut_when_it_is_printed():
    sizes = tuple(range(1, 17))
    run = sm.Run(sm.named("diana", k=1), dim=500, blocks=[1] * 500)
    client = sm.Client(run, "n" * 250)
    client.encode(range(500), 3)
    assert repr(client).endswith("; round 3 waits for its receipt>")
    assert len(repr(client)) < 400
    assert len(repr(sm.Server(sm.Run(sm.named("rand-k", k=sizes), dim=500)))) < 400
