"""Values "eden-b" on tensors: the rotation and rounding of ``sparsemean.kernels.eden``, for all ranks at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor
from torch.nn.functional import pad

from sparsemean.integrations.torch_ddp.stream_words import Stream, stream_words
from sparsemean.integrations.torch_ddp.values import TensorDithered, TensorValues, aligned, packed, unpacked
from sparsemean.kernels.eden import (
    LAYER,
    LEAST,
    NUDGE,
    ROOT_TWO,
    TILE,
    codes_size,
    finer_values,
    shrinkage,
    stages_of,
    tile_sizes,
)
from sparsemean.kernels.lloyd_max import centroids, distortion, thresholds
from sparsemean.wire.values.eden import LARGEST_VALUE, SCALE_BYTES, Eden


class Alike(NamedTuple):
    """Tiles of one size, in a row: their number, how many there are, and where their values and codes begin."""

    first: int
    tiles: int
    size: int
    start: int
    begin: int


@final
@dataclass(frozen=True)
class TensorEden(TensorValues):
    """Tiles of 4,096 values, rotated and rounded to the levels of a normal distribution; all scales come first."""

    kind: Eden
    dtype: torch.dtype = torch.float32

    @property
    def few(self) -> TensorDithered:
        """How fewer values than can be rotated are rounded."""
        return TensorDithered(self.kind.code // 16)

    def size(self, count: int) -> int:
        return self.kind.size(count)

    def pack(self, values: Tensor, stream: Stream) -> Tensor:
        values = torch.where(values.abs() <= LARGEST_VALUE, values, math.nan).to(torch.float32)
        count = values.numel()
        if count < LEAST:
            return self.few.pack(values, stream)
        signs = _signs([stream], count, values.device)
        scales, codes = [], []
        for alike in self._alike(count):
            x = values[alike.start :][: alike.tiles * alike.size].view(1, alike.tiles, alike.size)
            own, stored = self._rounded(x, _layers(signs, alike))
            scales.append(own.flatten().view(torch.uint8))
            codes.append(stored.flatten())
        return torch.cat([*scales, *codes])

    def unpack(self, received: Tensor, count: int, streams: Sequence[Stream]) -> tuple[Tensor, Tensor]:
        if count < LEAST:
            return self.few.unpack(received, count, streams)
        n, tiles = received.shape[0], sum(alike.tiles for alike in self._alike(count))
        signs = _signs(streams, count, received.device)
        all_scales = aligned(received[:, : SCALE_BYTES * tiles]).view(torch.float32)
        values, noise = [], []
        for alike in self._alike(count):
            scales = all_scales[:, alike.first :][:, : alike.tiles].to(torch.float64)
            begin, each = SCALE_BYTES * tiles + alike.begin, codes_size(alike.size, self.kind.code)
            stored = received[:, begin : begin + alike.tiles * each].reshape(n, alike.tiles, each)
            levels = self._levels(stored, alike.size)
            finer = finer_values(alike.size, self.kind.code) / alike.size
            lost = float(distortion(self.kind.code // 16 + finer))
            variance = lost * scales.square() * levels.to(torch.float64).square().sum(-1) / alike.size
            factor = (scales * shrinkage(alike.size))[..., None]
            back = _rotated_back(levels, _layers(signs, alike)).to(torch.float64) * factor
            values.append(torch.where(factor == 0.0, 0.0, back).to(self.dtype).flatten(1))
            noise.append(variance[..., None].expand_as(back).flatten(1))
        return torch.cat(values, dim=1), torch.cat(noise, dim=1)

    def _alike(self, count: int) -> Iterator[Alike]:
        full, others = tile_sizes(count)
        first = start = begin = 0
        for tiles, size in ([(full, TILE)] if full else []) + [(1, size) for size in others]:
            yield Alike(first, tiles, size, start, begin)
            first, start = first + tiles, start + tiles * size
            begin += tiles * codes_size(size, self.kind.code)

    def _parts(self, size: int) -> list[tuple[slice, int]]:
        """The values with a bit more, where there are any, and the others; of each the bits."""
        width, finer = self.kind.code // 16, finer_values(size, self.kind.code)
        return ([(slice(0, finer), width + 1)] if finer else []) + [(slice(finer, size), width)]

    def _rounded(self, x: Tensor, layers: Tensor) -> tuple[Tensor, Tensor]:
        """Scales and codes of (1, tiles, size) values."""
        size, wide = x.shape[-1], x.to(torch.float64)
        energy = _halved(wide.square())
        factor = (size / torch.where(energy == 0.0, 1.0, energy)).sqrt() * shrinkage(size)
        z = _rotated((wide * factor[..., None]).to(torch.float32), layers)
        near, codes, levels = z + float(NUDGE) * layers[-1], torch.empty_like(z, dtype=torch.uint8), torch.empty_like(z)
        for part, width in self._parts(size):
            found = torch.bucketize(near[..., part].contiguous(), _table(thresholds(width), z))
            codes[..., part], levels[..., part] = found.to(torch.uint8), _table(centroids(width), z)[found]
        product = _halved(z.to(torch.float64) * levels)
        scales = ((energy * size).sqrt() / torch.where(energy == 0.0, 1.0, product)).to(torch.float32)
        codes *= (scales != 0.0)[..., None]
        return scales, torch.cat([packed(codes[..., part], width) for part, width in self._parts(size)], dim=-1)

    def _levels(self, stored: Tensor, size: int) -> Tensor:
        """(n, tiles, size) levels of the codes in (n, tiles, bytes)."""
        found, at = [], 0
        for part, width in self._parts(size):
            count = part.stop - part.start
            end = at + -(-count * width // 8)
            codes = unpacked(stored[..., at:end], count, width).to(torch.int64)
            found.append(_table(centroids(width), stored)[codes])
            at = end
        return torch.cat(found, dim=-1)


def _table(levels: object, like: Tensor) -> Tensor:
    return torch.tensor(levels, dtype=torch.float32, device=like.device)


def _signs(streams: Sequence[Stream], count: int, device: torch.device) -> Tensor:
    """(n, layers, 4096): ±1 for each value of a tile."""
    full, others = tile_sizes(count)
    layers = 3 * (full + len(others)) + 1
    drawn = stream_words(streams, LAYER * layers, device).contiguous().view(torch.uint8)
    negative = unpacked(drawn, 8 * drawn.shape[1], 1).view(len(streams), layers, TILE)
    return 1.0 - 2.0 * negative.to(torch.float32)


def _layers(signs: Tensor, alike: Alike) -> Tensor:
    """(passes + 1, n, tiles, size): the signs of these tiles, layers 3t and on of tile t; the last are for nudges."""
    passes, begin = stages_of(alike.size)[0], 3 * alike.first
    end = begin + 3 * alike.tiles
    return torch.stack([signs[:, begin + each : end + each : 3, : alike.size] for each in range(passes + 1)])


def _rotated(values: Tensor, layers: Tensor) -> Tensor:
    half, odd = divmod(values.shape[-1], 2)
    for signs in layers[:-1]:
        values = values * signs
        for _ in range(stages_of(values.shape[-1])[1]):
            first, second = values[..., :half], values[..., half + odd :]
            middle = values[..., half : half + odd] * float(ROOT_TWO)
            values = torch.cat([torch.stack([first + second, first - second], dim=-1).flatten(-2), middle], dim=-1)
    return values


def _rotated_back(values: Tensor, layers: Tensor) -> Tensor:
    half = values.shape[-1] // 2
    for signs in layers[:-1].flip(0):
        for _ in range(stages_of(values.shape[-1])[1]):
            first, second = values[..., 0 : 2 * half : 2], values[..., 1 : 2 * half : 2]
            middle = values[..., 2 * half :] * float(ROOT_TWO)
            values = torch.cat([first + second, middle, first - second], dim=-1)
        values = values * signs
    return values


def _halved(numbers: Tensor) -> Tensor:
    """The sum over the last dimension, in the order of ``sparsemean.kernels.eden.halved``."""
    size = numbers.shape[-1]
    numbers = pad(numbers, (0, (1 << (size - 1).bit_length()) - size))
    while numbers.shape[-1] > 1:
        half = numbers.shape[-1] // 2
        numbers = numbers[..., :half] + numbers[..., half:]
    return numbers[..., 0]
