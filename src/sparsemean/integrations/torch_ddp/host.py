"""A parameter tensor on the CPU: the kernels of the library read and write its gradient where it stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparsemean import Hybrid, Identity, InvalidInput, NonFiniteValues, PerNode, RandK, Run, theory
from sparsemean._types import Doubles, Floats
from sparsemean.decoding import Mean
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.moment_sample import moment_sample
from sparsemean.integrations.torch_ddp.exchange import Exchange, GatheredPayloads, packed
from sparsemean.integrations.torch_ddp.innovations import quality
from sparsemean.kernels import Sample, cores
from sparsemean.kernels.fold import WORTH_THREADS
from sparsemean.kernels.one_pass import PassSums, Powers, Remembered, Sent, one_pass
from sparsemean.memory import Nothing
from sparsemean.memory.fit import hybrid_coefficients
from sparsemean.memory.hybrid import ROUNDING
from sparsemean.payload.blocks import Blocks
from sparsemean.sampling import Key, Plan
from sparsemean.theory.estimated import Moments, shrunk_correlation
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import value_kind

CPU = torch.device("cpu")
DIRECT = (torch.float32, torch.float64)
"""Types of gradients that the kernels read and write; others are converted on the way."""


def serves(run: Run) -> bool:
    """Whether the kernels do all that a run asks for; torch operations, which serve any device, do the rest.

    >>> from sparsemean import named
    >>> [serves(Run(named(name, k=0.1), 1000)) for name in ("rand-k", "rand-k-hybrid", "rand-k-temporal-shared-stable")]
    [True, True, False]
    """
    scheme = run.scheme
    if isinstance(scheme.encoder, Identity):
        return isinstance(scheme.memory, Nothing) and isinstance(scheme.decoder, Mean)
    known = type(scheme.memory) in (Nothing, PerNode, Hybrid)
    return isinstance(scheme.encoder, RandK) and known and not (scheme.decoder.adapts and run.share is None)


class HostPayloads(Exchange):
    """All-gather of the ranks' payloads, packed as ``Client`` does it and decoded as ``Server`` does, to the bit.

    One pass over the tensor folds the payloads, decodes them, and lets the memory learn. The state has the names of
    ``GatheredPayloads``, and beside them ``sums``, the running sum of the rows of a memory.

    A payload with a value that is no number, or too large for its format, is left to ``GatheredPayloads``: the mean is
    then no number either, on all ranks, and nothing is learnt.

    Parameters
    ----------
    run : Run
        That of the tensor, which ``serves``.
    n : int
        Number of ranks.
    """

    run: Run

    def __init__(self, run: Run, n: int) -> None:
        self.run, self._n = run, n
        self._decoder, self._memory = HostDecoder(run, n), HostMemory(run, n)
        self.bound = self._decoder.bound
        self._seen: Seen | Tensor | None = None

    @property
    def state(self) -> dict[str, Tensor]:  # type: ignore[override]
        return {**self._memory.state, **self._decoder.state}

    def restore(self, saved: Mapping[str, Tensor]) -> None:
        self._memory.restore(saved)
        for name, tensor in self._decoder.state.items():
            tensor.copy_(saved[name])

    @property
    def quality(self) -> Tensor | None:
        return self._seen.quality(self._decoder) if isinstance(self._seen, Seen) else self._seen

    def _key(self, rank: int, step: int) -> Key:
        return self.run.key(str(rank), step, Plan(rank, self._n) if self.run.planned else None)

    def sent(self, gradient: Tensor, rank: int, step: int) -> Tensor:
        (layout,), kind, key = self.run.layout, value_kind(self.run.scheme.values), self._key(rank, step)
        vector = _array(gradient)
        if layout.where != "all":
            ((_, vector),) = layout.gathered(key, vector)
        try:
            with np.errstate(over="ignore"):
                given = kind.pack(vector.astype(kind.dtype, copy=False), key)
        except InvalidInput:
            return packed(self.run, gradient, rank, self._n, step)
        sent = torch.empty(len(given), dtype=torch.uint8)
        sent.numpy()[:] = np.frombuffer(given, np.uint8)
        return sent

    def mean(self, received: Tensor, step: int) -> Tensor:
        mean = torch.empty(self.run.dim, dtype=torch.float64)
        self.write_mean(received, step, mean)
        return mean

    def write_mean(self, received: Tensor, step: int, gradient: Tensor) -> None:
        if gradient.dtype not in DIRECT:
            gradient.copy_(self.mean(received, step))
            return
        try:
            sent, noise = self._unpacked(received, step)
        except NonFiniteValues:
            gradient.copy_(self._by_torch(received, step))
            return
        threads = cores() if self._n * sent.values[0].size >= WORTH_THREADS else 1
        memory, decoder, powers = self._memory.remembered(), self._decoder, self._decoder.powers
        found = None
        if decoder.looks_first:
            found = one_pass(sent, np.zeros(self._n + 1), 0.0, None, powers, memory, threads)
            decoder.show(_moments(found, noise), int(found.most[0]))
        T = decoder.T
        last = one_pass(sent, *decoder.factors(T), gradient.numpy(), None if found else powers, memory, threads)
        moments = _moments(found or last, noise)
        if not decoder.looks_first:
            decoder.show(moments, int(last.most[0]))
        decoder.learn()
        self._memory.fit(last)
        self._seen = Seen(moments, T)

    def _unpacked(self, received: Tensor, step: int) -> tuple[Sent, float]:
        """What the ranks sent, and the variance that rounding adds to the innovations."""
        (layout,), kind = self.run.layout, value_kind(self.run.scheme.values)
        samples: list[Sample] = []
        values: list[Floats] = []
        variance = 0.0
        for rank, row in enumerate(received.numpy()):
            key = self._key(rank, step)
            found, noise = kind.unpack(Reader(memoryview(row)), layout.count, key)
            values.append(found)
            if not isinstance(noise, float):
                variance += layout.scale**2 * noise.sum()
            if layout.where != "all":
                ((where, *_),) = layout.drawn(key, self.run.dim)
                assert isinstance(where, Sample)  # a State refuses other draws
                samples.append(where)
        return Sent(samples or None, values, layout.scale, self.run.dim), variance

    def _by_torch(self, received: Tensor, step: int) -> Tensor:
        """The mean of values of which some are no numbers; the state stays as it is."""
        twin = GatheredPayloads(self.run, self._n, CPU)
        twin.restore(self.state)
        mean = twin.mean(received, step)
        self._seen = twin.quality
        return mean


class HostDecoder:
    """Factors for the sum of each coordinate by the number of ranks that sent it, as ``Decoder.innovation`` has them.

    Parameters
    ----------
    run : Run
        Of the tensor.
    n : int
        Number of ranks.

    Attributes
    ----------
    state : dict of str to Tensor
        ``likeness``: ρ/(n − 1) as the last round showed it, NaN before; empty where it does not adapt.
    bound : bool
        As in ``TensorDecoder``.
    powers : Powers
        Which power sums it needs: all where it adapts, else those for ``quality`` alone.
    """

    def __init__(self, run: Run, n: int) -> None:
        self._kind, self.n = run.scheme.decoder, n
        self.law = None if run.share is None else theory.CountLaw(n, run.share, n if run.planned else None)
        self.bound = self.law is not None and self.law.pair_factor == 0.0
        held = moment_sample(Blocks((run.dim,)))
        self._scale = float(held.scale[0])
        self.state = {"likeness": torch.full((), math.nan, dtype=torch.float64)} if self._kind.adapts else {}
        self.powers = Powers(held.begin if self._kind.adapts else np.full(held.begin.size, -1), held.size)
        self._now: float | None = None

    @property
    def looks_first(self) -> bool:
        """Whether it goes by what the round itself shows."""
        return self._kind.adapts and not self._kind.unbiased

    @property
    def T(self) -> theory.FixedWeighting:
        """The T of the round."""
        before = self.state["likeness"].item() if self.state else math.nan
        T = self._kind.T(Belief(None if math.isnan(before) else before, self._now), self.n)
        return "one" if T is None else T

    def factors(self, T: theory.FixedWeighting) -> tuple[Doubles, float]:
        """The factors for 0, …, n ranks, and what is added to each product (``one_pass``)."""
        if isinstance(self._kind, Mean):
            return np.full(self.n + 1, 1.0 / self.n), -0.0
        if self.law is None:
            return theory.fill_gains(T, self.n) / float(self.n), 0.0
        return theory.gains(T, self.n, self.law.share, slots=self.law.slots) / float(self.n), 0.0

    def show(self, moments: Moments, most: int) -> None:
        """What the round shows of the correlation; ``most`` ranks sent a coordinate."""
        if not self.state:
            return
        assert self.law is not None
        before, factor = self.state["likeness"].item(), np.array([self.law.pair_factor])
        s2, q, noise = (np.array([each]) for each in (moments.s2, moments.q, moments.noise))
        p4, sp3, q2, qs2 = (
            self._scale * np.array([each]) for each in (moments.p4, moments.sp3, moments.q2, moments.qs2)
        )
        scaled, energy = Moments(s2, q, p4, sp3, q2, qs2, noise), self.law.share * q
        with np.errstate(over="ignore", invalid="ignore"):
            shown = shrunk_correlation(scaled, energy, np.array([float(self.n)]), self.law.share, pair_factor=factor)
        known = most > 1 and self.law.pair_factor > 0.0
        now = float(np.asarray(shown)[0]) if known else math.nan
        self._now = before if math.isnan(now) else now

    def learn(self) -> None:
        """The round is over."""
        if self.state and self._now is not None:
            self.state["likeness"].fill_(self._now)
        self._now = None


class HostMemory:
    """The memories PerNode and Hybrid, as tensors that the kernels change where they stand.

    ``state`` has the names of ``TensorPerNode`` and ``TensorHybrid``, and ``sums``: Σ_i B_ij as ``memory.ColumnSums``
    keeps it, which a sum of the rows differs from in last digits. Checkpoints of before lack it.
    """

    def __init__(self, run: Run, n: int) -> None:
        self._hybrid = isinstance(run.scheme.memory, Hybrid)
        self._kept: dict[str, Tensor] = {}
        if isinstance(run.scheme.memory, Nothing):
            return
        dtype = torch.from_numpy(np.empty(0, value_kind(run.scheme.values).dtype)).dtype
        self._kept = {"last": torch.zeros(n, run.dim, dtype=dtype), "sums": torch.zeros(run.dim, dtype=torch.float64)}
        if self._hybrid:
            self._kept["heard"] = torch.zeros(n, run.dim, dtype=torch.bool)
            self._kept["factors"] = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)

    @property
    def state(self) -> dict[str, Tensor]:
        """All of it; the average of the rows is made anew."""
        known = self.remembered()
        return {**self._kept, **({"common": torch.from_numpy(known.common)} if known and self._hybrid else {})}

    def restore(self, saved: Mapping[str, Tensor]) -> None:
        """Take what ``state`` was."""
        for name, tensor in self._kept.items():
            if name in saved:
                tensor.copy_(saved[name])
            else:
                tensor.zero_()
                for row in self._kept["last"]:
                    tensor += row

    def remembered(self) -> Remembered | None:
        """What the kernels change."""
        if not self._kept:
            return None
        last, sums = self._kept["last"].numpy(), self._kept["sums"].numpy()
        if not self._hybrid:
            return Remembered(last, sums, np.empty((0, 0), np.uint8), np.zeros(3), ROUNDING)
        heard, factors = self._kept["heard"].numpy().view(np.uint8), self._kept["factors"].numpy()
        return Remembered(last, sums, heard, factors, ROUNDING)

    def fit(self, found: PassSums) -> None:
        """Go by the coefficients of this round from now on."""
        if self._hybrid:
            on_common, own, unheard = self._kept["factors"].numpy()[:, None]
            fitted = hybrid_coefficients(tuple(found.fits[:, None]), (on_common, own, unheard))
            self._kept["factors"].copy_(torch.from_numpy(np.concatenate(fitted)))


class Seen:
    """What tells the quality of the last mean, once somebody asks for it."""

    def __init__(self, moments: Moments, T: theory.FixedWeighting) -> None:
        self._moments, self._T = moments, T

    def quality(self, decoder: HostDecoder) -> Tensor | None:
        """``innovations.quality``; None where ranks share their coordinates."""
        law = decoder.law
        if law is None:
            return None
        sums: list[Any] = [torch.tensor(each, dtype=torch.float64) for each in vars(self._moments).values()]
        energies = Moments(*sums)
        own, cross = theory.error_coefficients(self._T, law.n, law.share, slots=law.slots)
        return quality(energies, law.n, own, cross, law.share, law.pair_factor)


def _moments(found: PassSums, noise: float) -> Moments:
    """Sums over the coordinates; node after node, as ``fold`` adds them."""
    q = p4 = 0.0
    for energy, fourth in zip(found.energy.tolist(), found.fourths.tolist(), strict=True):
        q, p4 = q + energy, p4 + fourth
    s2, sp3, q2, qs2 = found.powers.tolist()
    return Moments(s2, q, p4, sp3, q2, qs2, noise)


def _array(gradient: Tensor) -> Floats:
    """The gradient where it stands, or as float32, which holds all that shorter types do."""
    return (gradient if gradient.dtype in DIRECT else gradient.to(torch.float32)).numpy()
