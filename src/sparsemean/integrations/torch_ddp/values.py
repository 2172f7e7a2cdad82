"""The value kinds of ``sparsemean.wire.values`` on tensors: the same bytes, and the same values from them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import pad

from sparsemean.integrations.torch_ddp.stream_words import Stream, uniforms
from sparsemean.sampling.plan import LARGEST_SCALE
from sparsemean.wire.values.dithered import GROUP

NAN = 0x7FC0  # bits of a bfloat16


class TensorValues(ABC):
    """Numbers → bytes, and the bytes of all ranks → numbers of type ``dtype``.

    A value beyond the format is sent as an infinity or NaN, so that every rank sees it: an overflow in training is for
    the optimiser's own guard (such as a GradScaler) to deal with.
    """

    dtype: torch.dtype

    @abstractmethod
    def size(self, count: int) -> int:
        """Bytes that ``count`` values take."""

    @abstractmethod
    def pack(self, values: Tensor, stream: Stream) -> Tensor:
        """(size,) bytes of (k,) values, rounded by the dither of the stream."""

    @abstractmethod
    def unpack(self, received: Tensor, count: int, streams: Sequence[Stream]) -> tuple[Tensor, Tensor]:
        """(n, k) values from (n, size) bytes, and the variance of the rounding noise in each, which broadcasts."""


@final
@dataclass(frozen=True)
class TensorExact(TensorValues):
    """The bytes of the numbers themselves."""

    dtype: torch.dtype

    def size(self, count: int) -> int:
        return int(count * self.dtype.itemsize)

    def pack(self, values: Tensor, stream: Stream) -> Tensor:
        return values.to(self.dtype).view(torch.uint8)

    def unpack(self, received: Tensor, count: int, streams: Sequence[Stream]) -> tuple[Tensor, Tensor]:
        return aligned(received).view(self.dtype), torch.zeros((), dtype=torch.float64, device=received.device)


@final
@dataclass(frozen=True)
class TensorRounded(TensorValues):
    """Numbers of 16 bits by stochastic rounding: y = u·⌊x/u + U⌋, u the spacing of the format at x."""

    format: torch.dtype
    dtype: torch.dtype = torch.float32

    def size(self, count: int) -> int:
        return 2 * count

    def pack(self, values: Tensor, stream: Stream) -> Tensor:
        wide = values.to(torch.float64)
        spacing = self._spacing(wide)
        uniform = uniforms([stream], values.numel(), values.device)[0]
        rounded = wide.div_(spacing).add_(uniform).floor_().mul_(spacing)
        return rounded.to(torch.float32).to(self.format).view(torch.uint8)

    def unpack(self, received: Tensor, count: int, streams: Sequence[Stream]) -> tuple[Tensor, Tensor]:
        values = aligned(received).view(self.format).to(self.dtype)
        return values, self._spacing(values.to(torch.float64)).square() / 6.0

    def _spacing(self, values: Tensor) -> Tensor:
        limits = torch.finfo(self.format)
        lowest, fraction = round(math.log2(limits.smallest_normal)), -round(math.log2(limits.eps))
        exponent = (values.view(torch.int64) >> 52 & 0x7FF) - 1023
        return (exponent.clamp_(min=lowest) - fraction + 1023 << 52).view(torch.float64)


@final
@dataclass(frozen=True)
class TensorDithered(TensorValues):
    """Integers of few bits by subtractive dither; groups of 256 share a scale, and all scales come first."""

    bits: int
    dtype: torch.dtype = torch.float32

    def size(self, count: int) -> int:
        return 2 * _groups(count) + -(-count * self.bits // 8)

    def pack(self, values: Tensor, stream: Stream) -> Tensor:
        count, levels = values.numel(), 1 << self.bits
        grouped = pad(values.to(torch.float32), (0, -count % GROUP)).view(-1, GROUP)
        scales = _bfloat16_above(grouped.abs().amax(dim=1))
        steps = _steps(scales, levels)
        nonzero = steps != 0.0
        dither = pad(uniforms([stream], count, values.device)[0] - 0.5, (0, -count % GROUP)).view(-1, GROUP)
        scaled = grouped.to(torch.float64) / torch.where(nonzero, steps, 1.0)[:, None]
        codes = (scaled.add_(levels / 2).add_(dither)).floor_().mul_(nonzero[:, None])
        stored = packed(codes.to(torch.uint8).view(-1)[:count], self.bits)
        return torch.cat([scales.view(torch.uint8), stored])

    def unpack(self, received: Tensor, count: int, streams: Sequence[Stream]) -> tuple[Tensor, Tensor]:
        levels, header = 1 << self.bits, 2 * _groups(count)
        steps = _steps(aligned(received[:, :header]).view(torch.bfloat16), levels)
        steps = steps.repeat_interleave(GROUP, dim=1, output_size=steps.shape[1] * GROUP)[:, :count]
        codes = unpacked(received[:, header:], count, self.bits).to(torch.float64)
        dither = uniforms(streams, count, received.device) - 0.5
        values = (codes.add_((1 - levels) / 2) - dither).mul_(steps)
        return values.to(self.dtype), steps.square() / 12.0


def _groups(count: int) -> int:
    return -(-count // GROUP)


def _steps(scales: Tensor, levels: int) -> Tensor:
    return scales.to(torch.float64) * 2.0 / (levels - 1)


def _bfloat16_above(values: Tensor) -> Tensor:
    """The smallest bfloat16 that is not below each value; NaN where that is above the largest scale."""
    bits = values.view(torch.int32) + 0xFFFF >> 16
    return torch.where(values <= LARGEST_SCALE, bits, NAN).to(torch.int16).view(torch.bfloat16)


def packed(codes: Tensor, width: int) -> Tensor:
    """Codes of 1 to 8 bits, those of the last dimension, in whole bytes: the first in the lowest bits."""
    if width == 8:
        return codes
    if 8 % width:
        single = codes[..., None] >> torch.arange(width, dtype=torch.uint8, device=codes.device) & 1
        return packed(single.flatten(-2), 1)
    each = 8 // width
    filled = pad(codes, (0, -codes.shape[-1] % each))
    stored = filled[..., ::each].clone()
    for place in range(1, each):
        stored |= filled[..., place::each] << place * width
    return stored


def unpacked(stored: Tensor, count: int, width: int) -> Tensor:
    """(…, count) codes from (…, size) bytes."""
    if width == 8:
        return stored
    if 8 % width:
        single = unpacked(stored, count * width, 1)
        return sum((single[..., place::width] << place for place in range(1, width)), single[..., ::width])
    shifts = torch.arange(0, 8, width, dtype=torch.uint8, device=stored.device)
    codes = stored[..., None] >> shifts & (1 << width) - 1
    return codes.flatten(-2)[..., :count]


def aligned(received: Tensor) -> Tensor:
    """A contiguous copy, which may be viewed as another type: payloads begin at any byte of what was received."""
    return received.clone(memory_format=torch.contiguous_format)
