"""EDEN: few bits a value, rounded after a random rotation that both sides know (Vargaftik et al. 2021 and 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sparsemean._types import Doubles, Floats
from sparsemean.errors import InvalidInput, MalformedPayload, NonFiniteValues
from sparsemean.kernels.eden import LEAST, TILE, Tiles, codes_size, rotate_and_round, rotate_back, tile_sizes
from sparsemean.kernels.lloyd_max import distortion
from sparsemean.payload.noise import Levels
from sparsemean.sampling import Key, stream_of
from sparsemean.theory.eden import eden_error
from sparsemean.wire.reader import Reader
from sparsemean.wire.values.bits import check_padding
from sparsemean.wire.values.dither import LABEL
from sparsemean.wire.values.dithered import Dithered
from sparsemean.wire.values.kind import ValueKind

LARGEST_VALUE = 2.0**112
LARGEST_SCALE = 2.0**116  # what it is multiplied by is below 2⁹, so that values stay finite
SCALE_BYTES = 4


@final
@dataclass(frozen=True)
class Eden(ValueKind):
    """Tiles of 4,096 values: all scales in single precision, then all codes.

    A tile is rotated, which makes its values nearly normal whatever they were; each is replaced by the nearest of the
    2^b levels that suit a normal distribution best, and the scale makes what comes back unbiased. The noise of a value
    has the same variance throughout the tile. Fewer than 512 values are not rotated but rounded with dither, by ⌊b⌋
    bits.

    Parameters
    ----------
    code : int
        Sixteenths of a bit per value, 16 to 128: where b is not whole, some values of a tile have a bit more.
    """

    code: int
    dtype: np.dtype[np.floating] = np.dtype("<f4")
    exact: ClassVar[bool] = False

    @property
    def name(self) -> str:  # type: ignore[override]
        """Such as "eden-3" or "eden-2.0625"."""
        return f"eden-{self.code / 16:g}"

    @property
    def few(self) -> Dithered:
        """How fewer values than can be rotated are rounded."""
        return Dithered(self.code, self.name, bits=self.code // 16)

    def size(self, count: int) -> int:
        """Bytes that ``count`` values take; never fewer for more of them."""
        if count < LEAST:
            return self.few.size(count)
        full, others = tile_sizes(count)
        scales = SCALE_BYTES * (full + len(others))
        return scales + full * codes_size(TILE, self.code) + sum(codes_size(size, self.code) for size in others)

    def omega(self, count: int) -> float:
        """D/(1 − D), as of ``theory.eden_error``; not of so few values that they are not rotated."""
        return eden_error(self.code / 16) if count >= LEAST else 0.0

    def pack(self, values: Floats, key: Key) -> bytes:
        """The values, as float32, as bytes; refuses magnitudes above 2¹¹²."""
        if values.size and not -LARGEST_VALUE <= values.min() <= values.max() <= LARGEST_VALUE:  # NaN compares as false
            raise InvalidInput(
                f"{self.name} takes values up to {LARGEST_VALUE:.3g}; rescale the vector, or use float32 or float64"
            )
        if values.size < LEAST:
            return self.few.pack(values, key)
        tiles = Tiles.of(values.size, self.code)
        scales, codes = np.empty(tiles.finer.size, "<f4"), np.empty(tiles.begins[-1], np.uint8)
        rotate_and_round(stream_of(key, LABEL), values.astype(np.float32, copy=False), tiles, scales, codes)
        return scales.tobytes() + codes.tobytes()

    def unpack(self, reader: Reader, count: int, key: Key) -> tuple[Floats, Levels]:
        """The next ``count`` values, and the variance of their noise, the same throughout a tile."""
        if count < LEAST:
            return self.few.unpack(reader, count, key)
        body = Reader(reader.take(self.size(count)))  # all of it is there before anything is allocated
        tiles = Tiles.of(count, self.code)
        scales = np.frombuffer(body.take(SCALE_BYTES * tiles.finer.size), "<f4").astype(np.float32)  # and so aligned
        codes = np.frombuffer(body.take(body.left), np.uint8)
        _check(scales, codes, tiles)
        values, energies = np.empty(count, self.dtype), np.empty(scales.size)
        rotate_back(stream_of(key, LABEL), scales, codes, tiles, values, energies)
        return values, _noise(scales.astype(np.float64), energies, tiles)


def _check(scales: Floats, codes: np.ndarray, tiles: Tiles) -> None:
    if not np.all(np.abs(scales) <= LARGEST_SCALE):
        raise NonFiniteValues(f"scales must be finite and at most {LARGEST_SCALE:.3g}; check the node's vector")
    if np.any(np.signbit(scales)):
        raise MalformedPayload("the scale of a tile is negative")
    for tile in np.flatnonzero(scales == 0.0).tolist():
        if np.any(codes[tiles.begins[tile] : tiles.begins[tile + 1]]):
            raise MalformedPayload("a tile of scale 0 has codes other than 0")
    # Tiles of 4,096 and 2,048 values fill their bytes, so only the last can have padding.
    check_padding(codes, int(tiles.starts[-1] - tiles.starts[-2] - tiles.finer[-1]) * tiles.width)


def _noise(scales: Doubles, energies: Doubles, tiles: Tiles) -> Levels:
    """D·‖x̂‖²/m, m being the values of a tile and D the distortion of its levels.

    With c = Σzq/m and e = Σq²/m, ‖x̂‖² = ‖x‖²·e/c², and D = 1 − c²/e: so the error is ‖x̂‖² − ‖x‖² = D·‖x̂‖².
    """
    sizes = np.diff(tiles.starts)
    variances = distortion(tiles.width + tiles.finer / sizes) * scales**2 * energies / sizes
    return Levels(np.repeat(variances, -(-sizes // (TILE // 2))), TILE // 2, int(tiles.starts[-1]))
