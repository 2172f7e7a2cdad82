"""A parameter tensor on the CPU: the kernels of the library read and write its gradient where it stands."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from sparsemean import Hybrid, Identity, InvalidInput, NonFiniteValues, PerNode, RandK, Run
from sparsemean._types import Floats
from sparsemean.decoding import Mean
from sparsemean.integrations.torch_ddp.exchange import Exchange, GatheredPayloads, packed
from sparsemean.integrations.torch_ddp.host_decoder import HostDecoder, Seen, moments_of
from sparsemean.integrations.torch_ddp.host_memory import HostMemory
from sparsemean.kernels import Sample, cores
from sparsemean.kernels.fold import WORTH_THREADS
from sparsemean.kernels.one_pass import Sent, one_pass
from sparsemean.memory import Nothing
from sparsemean.sampling import Key, Plan
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
            decoder.show(moments_of(found, noise), int(found.most[0]))
        T = decoder.T
        last = one_pass(sent, *decoder.factors(T), gradient.numpy(), None if found else powers, memory, threads)
        moments = moments_of(found or last, noise)
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


def _array(gradient: Tensor) -> Floats:
    """The gradient where it stands, or as float32, which holds all that shorter types do."""
    return (gradient if gradient.dtype in DIRECT else gradient.to(torch.float32)).numpy()
