"""Powers are kept at a part of a long vector's coordinates: what rests on them changes little, all else not at all."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemean.decoding.moment_sample import EVERY, SHORT, MomentSample
from sparsemean.decoding.totals import RoundTotals
from sparsemean.payload import Part
from sparsemean.payload.blocks import Blocks
from sparsemean.sampling import tile_size
from sparsemean.theory import Moments

LONG = (SHORT + 37) * 4096 + 1234


@pytest.mark.parametrize(
    "sizes", [(LONG,), (LONG - 5000, 5000), (10, LONG - 10), (70_000, 3, 90_000, LONG), (5,), (4096 * SHORT,)]
)
def test_every_block_has_its_part(sizes: tuple[int, ...]) -> None:
    held = MomentSample(Blocks(sizes))
    mask = np.zeros(held.blocks.dim, bool)
    mask[held.coordinates] = True
    assert mask.sum() == held.count
    of_block = held.blocks.sums(mask.astype(float))
    assert np.all(of_block >= np.array(sizes) / (2 * EVERY))
    np.testing.assert_allclose(held.scale * of_block, sizes)
    assert held.everything == (held.blocks.dim <= SHORT * tile_size(held.blocks.dim))
    some = np.random.default_rng(0).integers(0, held.blocks.dim, 1000)
    places = held.places(some)
    assert np.array_equal(places >= 0, mask[some])
    assert np.array_equal(held.coordinates[places[places >= 0]], some[places >= 0])


def test_a_long_vector_takes_14_bytes_a_coordinate_and_its_moments_are_near_those_of_all() -> None:
    blocks, rng = Blocks((4 * LONG, 3000)), np.random.default_rng(1)
    totals, table = RoundTotals(blocks, moments=True), np.zeros((3, blocks.dim))
    for row in table:
        chosen = rng.permutation(blocks.dim)[: blocks.dim // 2]
        row[chosen] = 0.5 + rng.normal(size=chosen.size)
        totals.add(np.ones(2), [Part(chosen, row[chosen])])
    arrays = [array for array in vars(totals).values() if isinstance(array, np.ndarray)]
    assert sum(array.nbytes for array in arrays) < 14.5 * blocks.dim
    moments, _ = totals.summary() or (None, None)
    assert moments is not None
    for number, block in enumerate((slice(0, 4 * LONG), slice(4 * LONG, None))):
        full = vars(Moments.of(table[:, block]))
        for name, value in full.items():
            near = 1e-11 if name in ("s2", "q", "noise") or number else 0.03
            assert getattr(moments, name)[number] == pytest.approx(value, rel=near, abs=1e-9), name
