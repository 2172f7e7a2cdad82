"""The sampler of ``sparsemean.sampling`` on tensors: words of a key are made on the CPU, coordinates on the device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sparsemean._types import Words
from sparsemean.kernels.sample import (
    RANKED,
    STRIDE,
    Sample,
    last_shuffle,
    places,
    run_starts,
    shuffle_words,
    stream_index,
    stream_word,
)


def coordinates(samples: Sequence[Sample], device: torch.device) -> Tensor:
    """(n, k): the coordinates of n samples of one size, each in the order of its values on the wire.

    Tiles give up to two different numbers of coordinates, so all are drawn at the larger one and the surplus is left
    out by a gather: no shape depends on what is on the device, and nothing has to be read back from it.

    >>> from sparsemean.sampling import Key, sample_of
    >>> coordinates([sample_of(Key(7, 0, "station-12"), 784, 5)], torch.device("cpu"))
    tensor([[ 39, 326,  17, 548,  62]])
    """
    n, (dim, k, size, _) = len(samples), samples[0].sizes
    full, rest = divmod(dim, size)
    at = np.stack([places(sample, 0, sample.tiles) for sample in samples])
    counts = np.diff(at)
    widths = np.full(counts.shape[1], counts[:, :full].max(initial=0))
    if rest:
        widths[-1] = counts[:, -1].max()
    ends = np.cumsum(widths)
    drawn = []
    if full and widths[0]:
        drawn.append(_from_full_tiles(samples, full, int(widths[0]), device))
    if rest and widths[-1]:
        drawn.append(_from_last_tile(samples, rest, int(widths[-1]), device) + full * size)
    padded = torch.cat(drawn, dim=1)
    if ends[-1] == k:
        return padded
    shift = torch.from_numpy((ends - widths - at[:, :-1]).ravel()).to(device)
    taken = torch.from_numpy(counts.ravel()).to(device)
    shifts = torch.repeat_interleave(shift, taken, output_size=n * k).view(n, k)
    return padded.gather(1, shifts.add_(torch.arange(k, device=device)))


def _from_full_tiles(samples: Sequence[Sample], full: int, width: int, device: torch.device) -> Tensor:
    """(n, full · width): the first ``width`` coordinates of every full tile, from where each sample's run starts."""
    size = samples[0].size
    rounds = shuffle_words(size)
    index = (np.arange(full) * STRIDE).astype(np.uint64)[:, None] + stream_index(0, rounds + 1)
    draws = np.stack([stream_word(sample, index) for sample in samples])
    starts = np.stack([run_starts(sample, np.arange(full)) for sample in samples]).astype(np.uint64)
    offset = _narrow(draws[..., rounds:] + starts[..., None] & np.uint64(size - 1), size, device)
    x = (torch.arange(width, dtype=offset.dtype, device=device) + offset).bitwise_and_(size - 1)
    found = _permuted(x, draws[..., :rounds], size).to(torch.int64)
    return found.add_(torch.arange(full, device=device)[:, None] * size).view(len(samples), -1)


def _from_last_tile(samples: Sequence[Sample], m: int, count: int, device: torch.device) -> Tensor:
    """(n, count): walk((i + o) mod m) for i < count, in the last tile, of m coordinates."""
    shuffles = [last_shuffle(sample) for sample in samples]
    draws = np.stack([words for words, _ in shuffles])
    offset = torch.tensor([[o] for _, o in shuffles], device=device)
    x = (torch.arange(count, device=device) + offset) % m
    if m <= RANKED:
        return torch.from_numpy(np.argsort(draws, axis=1, kind="stable")).to(device).gather(1, x)
    every = torch.arange(1 << (m - 1).bit_length(), dtype=_dtype(m), device=device)
    image = _permuted(every.repeat(len(samples), 1), draws, m).to(torch.int64)
    return _walked(image, m).gather(1, image.gather(1, x))


def _walked(image: Tensor, m: int) -> Tensor:
    """Where a walk along ``image`` first falls below m. Every pass doubles the steps, so the loop needs no data."""
    every = torch.arange(image.shape[1], device=image.device)
    walk = torch.where(every < m, every, image)
    for _ in range((image.shape[1] - m).bit_length()):
        walk = walk.gather(1, walk)
    return walk


def _permuted(x: Tensor, draws: Words, m: int) -> Tensor:
    """x after the keyed bijection of [0, 2**w), 2**w ≥ m, in place; draws[..., r] belong to round r."""
    w = (m - 1).bit_length()
    mask = (1 << w) - 1
    factors = _narrow(draws & np.uint64(mask) | np.uint64(1), m, x.device)
    summands = _narrow(draws >> np.uint64(32) & np.uint64(mask), m, x.device)
    for r in range(draws.shape[-1]):
        x.mul_(factors[..., r : r + 1]).add_(summands[..., r : r + 1]).bitwise_and_(mask)
        x.bitwise_xor_(x >> ((2 * w + 1) // 3 - r % 2))
    return x


def _dtype(m: int) -> torch.dtype:
    """The faster 32 bits where a product of two numbers below 2**w stays non-negative in them."""
    return torch.int32 if (m - 1).bit_length() <= 15 else torch.int64


def _narrow(words: Words, m: int, device: torch.device) -> Tensor:
    return torch.from_numpy(words.astype(np.int64)).to(device=device, dtype=_dtype(m))
