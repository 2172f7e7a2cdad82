"""Rows hold what was measured beside every baseline at hand; cases know their size; what does not fit is said."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.lab.bench import Case, bench, too_large
from sparsemean.lab.bench.baselines import of_decoding, of_encoding
from sparsemean.lab.bench.growth import growth_rows
from sparsemean.lab.bench.loops import GATHER, HASH_ALL, SUM_ALL, SUM_ONE, loop_rows
from sparsemean.lab.bench.player import DECODE, ENCODE, TRIP, Player, vectors_for
from sparsemean.lab.bench.sets import DIMS, MAIN, NODES, SHARES, every, whole

SMALL = Case("rand-k-spatial-avg", 20_000, 0.1, 3)
OPTIONAL = {name for name in ("scipy", "torch") if find_spec(name)}


def test_every_row_is_a_ratio_of_two_times_of_the_same_run():
    rows = {row.what: row for row in bench([SMALL], repeats=3)}
    assert list(rows) == [ENCODE, DECODE, TRIP]
    assert set(rows[ENCODE].baselines) == {"NumPy", "tuned NumPy", "limit"}
    assert set(rows[DECODE].baselines) == {"NumPy", "tuned NumPy", "bincount", "dense", "limit"} | OPTIONAL
    assert set(rows[TRIP].baselines) == {"NumPy", "tuned NumPy", "dense", "limit"}
    for row in rows.values():
        assert row.peak_bytes
        assert row.peak_bytes > 0
        for name, ratio in row.ratios.items():
            assert ratio.median == pytest.approx(row.baselines[name].median / row.seconds.median)
            assert 0 < ratio.low <= ratio.median <= ratio.high
    trip, n = rows[TRIP], SMALL.nodes
    assert trip.seconds.low <= n * rows[ENCODE].seconds.high + rows[DECODE].seconds.high
    assert trip.baselines["NumPy"] == rows[ENCODE].baselines["NumPy"].times(n) + rows[DECODE].baselines["NumPy"]


@pytest.mark.parametrize("scheme", sm.names())
def test_every_scheme_can_be_measured_over_many_rounds(scheme):
    case = Case(scheme, 1_000, 0.1, 3)
    player = Player(case, vectors_for(case, 10**9))
    for _ in range(3):
        seconds = player.clock()()
        assert seconds[TRIP] == pytest.approx(3 * seconds[ENCODE] + seconds[DECODE])
    assert player.server.round == 3
    assert min(player.peaks().values()) > 0


def test_lazy_nodes_do_not_get_away_with_saying_nothing():
    case = Case("lag", 1_000, 0.1, 2)
    player = Player(case, vectors_for(case, 10**9))
    for _ in range(3):
        blobs = player.encode()
        assert min(map(len, blobs)) > 4_000
        player.deliver(player.decode(blobs))


def test_schemes_of_their_kind_have_baselines_of_their_own():
    by_case = {row.case: row for row in bench([Case("top-k", 2_000, 0.1, 2)], 1) if row.what == ENCODE}
    assert all("argpartition" in row.baselines for row in by_case.values())
    few = list(bench([Case(MAIN, 2_000, 0.1, 2, "int8")], 1))
    assert all("float32" in row.baselines for row in few)


def test_the_baselines_compute_what_they_are_named_after():
    case = Case("rand-k", 500, 0.2, 4)
    vectors = vectors_for(case, 10**9)
    sent = vectors[:4, : case.k].sum(dtype=np.float64)
    works = of_decoding(case, vectors)
    for name in ("NumPy", "tuned NumPy"):
        assert np.sum(works[name]()) == pytest.approx(sent, rel=1e-4)
    sums, counts = works["bincount"]()
    assert (np.sum(sums), np.sum(counts)) == (pytest.approx(sent, rel=1e-4), 4 * case.k)
    for name in OPTIONAL:
        assert float(works[name]().sum()) == pytest.approx(sent, rel=1e-3)
    assert np.array_equal(works["dense"](), vectors[:4].mean(axis=0))
    assert len(of_encoding(case, vectors)["NumPy"]()) == 4 * case.k


def test_the_dense_mean_is_left_out_where_the_table_does_not_fit():
    case = Case("rand-k", 10_000, 0.01, 50)
    few = vectors_for(case, 8 * 4 * case.dim * 10)
    assert few.shape == (10, case.dim)
    assert "dense" not in of_decoding(case, few)


def test_vectors_differ_from_node_to_node():
    vectors = vectors_for(Case("rand-k", 1_000, 0.1, 5), 10**9)
    assert len({row.tobytes() for row in vectors}) == 5
    assert all(sorted(row) == sorted(vectors[0]) for row in vectors.tolist())


def test_the_limit_is_the_least_that_has_to_be_touched():
    assert SMALL.encode_bytes == 4 * 20_000 + 8_064
    assert SMALL.decode_bytes == 3 * 8_064 + 32 * 20_000


def test_what_does_not_fit_is_said_with_both_sizes():
    case = Case("rand-k-temporal", 10**6, 0.01, 1000)
    assert case.needed_bytes > 4 * 10**9
    assert too_large(case, free=10**9).startswith("needs about")
    assert "0.7 are free" in too_large(case, free=10**9)
    assert too_large(case, free=10**12) == ""
    more = [Case(scheme, 10**6, 0.01, 1000).needed_bytes for scheme in ("rand-k", "rand-k-hybrid", "diana")]
    assert more == sorted(more)


def test_loops_are_measured_by_themselves():
    rows = {row.what: row for row in loop_rows(Case(MAIN, 50_000, 0.1, 3), 1)}
    assert {what: set(row.baselines) for what, row in rows.items()} == {
        GATHER: {"NumPy", "tuned NumPy"},
        SUM_ONE: {"NumPy", "tuned NumPy", "dense", "indices given"},
        SUM_ALL: {"1 thread", "dense"},
        HASH_ALL: {"1 thread"},
    }


def test_growth_compares_with_vectors_half_as_long_and_as_much_sent():
    (row,) = growth_rows([Case("rand-k-temporal", 2_000, 0.1, 3)], 1)
    assert row.case == Case("rand-k-temporal", 4_000, 0.05, 3)
    assert row.case.k == 200
    assert list(row.baselines) == ["half as long"]


def test_the_whole_set_has_every_scheme_every_kind_and_every_size_that_takes_seconds():
    cases = whole()
    assert {case.scheme for case in cases} == set(sm.names())
    kinds = {"float32", "float64", "float16", "bfloat16", "int8", "int4", "2-bit", "1-bit", "eden-1", "eden-4"}
    assert {case.values for case in cases} == kinds
    assert {case.dim for case in cases} == set(DIMS)
    assert {case.share for case in cases} == set(SHARES)
    assert {case.nodes for case in cases} == set(NODES)
    sizes = [case.size for case in cases]
    assert sizes == sorted(sizes)
    assert len(cases) == len(set(cases))


def test_combinations_of_one_size_stand_together():
    cases = every(["rand-k", "top-k"], ["float32"], [100, 200], [0.1], [2])
    assert [(case.scheme, case.dim) for case in cases] == [
        *(("rand-k", 100), ("top-k", 100)),
        *(("rand-k", 200), ("top-k", 200)),
    ]
