"""The sampler of ``sparsemean.sampling`` on tensors: words of a key are made on the CPU, coordinates on the device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sparsemean._types import Ints, Words
from sparsemean.kernels.hands import Hands, hands_of, runs
from sparsemean.kernels.sample import RANKED, STRIDE, Sample, places, shuffle, shuffle_words
from sparsemean.kernels.stream import stream_index, stream_word


def coordinates(samples: Sequence[Sample], device: torch.device) -> Tensor:
    """(n, k): the coordinates of n samples of one size, each in the order of its values on the wire.

    Tiles, or the hands of a balanced draw, give up to two different numbers of coordinates, so all are drawn at the
    larger one and the surplus is left out by a gather: no shape depends on what is on the device, and nothing has to be
    read back from it.

    >>> from sparsemean.sampling import Key, sample_of
    >>> coordinates([sample_of(Key(7, 0, "station-12"), 784, 5)], torch.device("cpu"))
    tensor([[ 39, 326,  17, 548,  62]])
    """
    n, (dim, k, size, _, hand) = len(samples), samples[0].sizes
    full, rest = divmod(dim, size)
    at = np.stack([places(sample, 0, sample.tiles) for sample in samples])
    counts = np.diff(at)
    widths = np.full(counts.shape[1], counts[:, :full].max(initial=0))
    if rest:
        widths[-1] = counts[:, -1].max()
    ends = np.cumsum(widths)
    x = _dealt(samples, at, widths, device) if hand else _turned(samples, widths, device)
    drawn = []
    if full and widths[0]:
        drawn.append(_from_full_tiles(samples, x[:, : full * int(widths[0])].view(n, full, -1)))
    if rest and widths[-1]:
        drawn.append(_from_last_tile(samples, x[:, -int(widths[-1]) :], rest) + full * size)
    padded = torch.cat(drawn, dim=1)
    if ends[-1] == k:
        return padded
    shift = torch.from_numpy((ends - widths - at[:, :-1]).ravel()).to(device)
    taken = torch.from_numpy(counts.ravel()).to(device)
    shifts = torch.repeat_interleave(shift, taken, output_size=n * k).view(n, k)
    return padded.gather(1, shifts.add_(torch.arange(k, device=device)))


def _turned(samples: Sequence[Sample], widths: Ints, device: torch.device) -> Tensor:
    """(n, Σ widths): (i + o) mod m for i < widths[b], in each tile b of m, of samples that stand alone."""
    n, (dim, _, size, *_) = len(samples), samples[0].sizes
    full, m = divmod(dim, size)
    index = (np.arange(full) * STRIDE + shuffle_words(size)).astype(np.uint64)
    o = np.stack([stream_word(sample, index) for sample in samples]) & np.uint64(size - 1)
    x = torch.arange(int(widths[0]), dtype=_dtype(size), device=device) + _narrow(o, size, device)[..., None]
    x = x.bitwise_and_(size - 1).view(n, full * x.shape[2])
    if not m:
        return x
    last = torch.tensor([[shuffle(sample, full * STRIDE, m)[1]] for sample in samples], device=device)
    return torch.cat([x, (torch.arange(int(widths[-1]), device=device) + last) % m], dim=1)


def _dealt(samples: Sequence[Sample], at: Ints, widths: Ints, device: torch.device) -> Tensor:
    """(n, Σ widths): the first widths[b] places that each slot takes in tile b of a balanced draw."""
    n, k, slots = len(samples), samples[0].k, samples[0].slots
    draws = {sample._replace(slot=0): _all_hands(sample) for sample in samples}  # most often all are slots of one
    rows = draws.values() if len(draws) == 1 else [draws[sample._replace(slot=0)] for sample in samples]
    hands = Hands(*(torch.from_numpy(np.stack(field)).to(device) for field in zip(*rows, strict=True)))
    slot = torch.tensor([[sample.slot] for sample in samples], device=device)
    counts, starts = runs(hands, slot, slots)
    # For every place the number of its hand, among those of all samples.
    hand = torch.arange(counts.numel(), device=device).repeat_interleave(counts.view(-1), output_size=n * k)
    begin, width, first = (
        field.expand(counts.shape).reshape(-1)[hand].view(n, k)
        for field in (hands.begin, hands.width, starts - counts.cumsum(1) + counts)
    )
    found: Tensor = begin + (first + torch.arange(k, device=device)) % width
    # What is beyond the count of a tile is of the next one, and left out in the end.
    full, tiles = samples[0].dim // samples[0].size, torch.from_numpy(at[:, :-1]).to(device)
    among, last = (torch.arange(int(width), device=device) for width in widths[[0, -1]])
    index = (tiles[:, :full, None] + among).view(n, full * len(among)), (tiles[:, full:, None] + last).squeeze(1)
    return found.gather(1, torch.cat(index[: len(widths) - full + 1], dim=1).clamp_(max=k - 1))


def _all_hands(sample: Sample) -> list[Ints]:
    """The fields of ``hands_of`` for all tiles, each in one row."""
    full, m = divmod(sample.dim, sample.size)
    parts = [hands_of(sample, np.arange(full), sample.size)] if full else []
    parts += [hands_of(sample, np.array([full]), m)] if m else []
    return [np.concatenate([field.ravel() for field in fields]) for fields in zip(*parts, strict=True)]


def _from_full_tiles(samples: Sequence[Sample], x: Tensor) -> Tensor:
    """(n, full · width): start + walk(x) for x of shape (n, full, width)."""
    size, full = samples[0].size, x.shape[1]
    index = (np.arange(full) * STRIDE).astype(np.uint64)[:, None] + stream_index(0, shuffle_words(size))
    draws = np.stack([stream_word(sample, index) for sample in samples])
    found = _permuted(x.to(_dtype(size)), draws, size).to(torch.int64)
    return found.add_(torch.arange(full, device=x.device)[:, None] * size).view(len(samples), -1)


def _from_last_tile(samples: Sequence[Sample], x: Tensor, m: int) -> Tensor:
    """(n, width): walk(x) in the last tile, of m coordinates."""
    full = samples[0].dim // samples[0].size
    draws = np.stack([shuffle(sample, full * STRIDE, m)[0] for sample in samples])
    x = x.to(torch.int64).clamp_(max=m - 1)  # where a slot has no places left, one of another tile may stand here
    if m <= RANKED:
        return torch.from_numpy(np.argsort(draws, axis=1, kind="stable")).to(x.device).gather(1, x)
    every = torch.arange(1 << (m - 1).bit_length(), dtype=_dtype(m), device=x.device)
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
