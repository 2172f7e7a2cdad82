"""Hybrid memory: each node's last values and the average over nodes, mixed by least squares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from sparsemean._types import Array, Doubles, Floats, Ints
from sparsemean.kernels import Blend, Fit, Sample, fit_sums, threads_for
from sparsemean.kernels.at import Known, expected_at, fit_at
from sparsemean.kernels.fit_sums import products
from sparsemean.kernels.listed import ListedFit, fit_listed, threads_for_lists
from sparsemean.kernels.tiled import Tiled
from sparsemean.memory.base import Arrival, Memory, MemoryFacts, MemorySpec, MemoryState, Past
from sparsemean.memory.fit import hybrid_coefficients, hybrid_mean
from sparsemean.memory.per_node import LastValues, checked_age
from sparsemean.memory.rows import Row
from sparsemean.memory.table import RowTable
from sparsemean.payload import Part, Payload
from sparsemean.sampling import tile_size
from sparsemean.state_tree import Tree, array_in, branch

ROUNDING = 1e-9  # of running sums: B − c below this is 0, and says nothing of g


@dataclass(frozen=True)
class Hybrid(Memory):
    """b_ij = a·c_j + g·(B_ij − c_j) where node i was heard at j, and u·c_j where it was not.

    B_ij is what node i last sent at j, c_j the average of B_ij over the nodes heard there. (a, g, u) of each block is
    the least-squares fit of last round's values, weighted by w² (and by 1/π, where coordinates were sent with different
    probabilities), in [0, 1]; before there is one, (1, 0, 1). A node is heard where it sent with a weight above 0.

    Parameters
    ----------
    forget_after : int, optional
        Rounds after which a value that was not sent again counts as never sent.
    """

    forget_after: int | None = None

    def __post_init__(self) -> None:
        if self.forget_after is not None:
            object.__setattr__(self, "forget_after", checked_age(self.forget_after))

    @property
    def facts(self) -> MemoryFacts:
        forgets = self.forget_after is not None
        return MemoryFacts(needs_raw=True, per_node=True, recalls=not forgets, forgets=forgets)

    def start(self, spec: MemorySpec) -> MemoryState:
        return _Both(spec, self.forget_after)


class Heard(Row):
    """1 where the node was heard, else 0."""

    shown = "heard"

    def __init__(self, dim: int) -> None:
        super().__init__(heard=np.zeros(dim, np.uint8))

    def expected(self, coordinates: Ints) -> Floats:
        return self.values()[coordinates]

    def replaced_by(self, part: Part) -> Array:
        return _ones(part.values.size)

    def receive(self, at: Ints | slice, part: Part) -> None:
        self.arrays["heard"][at] = 1


@lru_cache(maxsize=2)  # in later rounds of an epoch of two sizes: of U and of S
def _ones(size: int) -> Array:
    return np.ones(size, np.uint8)


class _Both(MemoryState):
    def __init__(self, spec: MemorySpec, forget_after: int | None) -> None:
        self._blocks = spec.blocks
        self._shares = spec.shares
        self._in_step = spec.encoder.facts.in_step
        self._last = RowTable(spec, partial(LastValues, spec.dtype), forget_after, everyone=True, name="last")
        self._heard = RowTable(spec, Heard, forget_after, everyone=True, name="heard")
        self._common = np.zeros(spec.blocks.dim)
        self._base: Doubles | None = None  # c where nobody was heard; None for 0
        blocks = len(spec.blocks.sizes)
        self._coefficients = np.ones(blocks), np.zeros(blocks), np.ones(blocks)  # (a, g, u)
        self._clear()

    def _clear(self) -> None:
        """Sums for the fit, see ``fit_sums_numpy``, and the samples that are still to be counted in them."""
        self._sums = np.zeros((7, len(self._blocks.sizes)))
        self._unfitted: dict[tuple[int, ...], list[tuple[str, Doubles, Part]]] = {}

    def expected(self, node: str, coordinates: Ints) -> Doubles:
        known = self._known(node)
        if known is not None:
            return expected_at(known, np.stack(self._coefficients), coordinates)
        unheard = self._blocks.at(self._coefficients[2], coordinates)
        return unheard * self._common[coordinates]

    def _known(self, node: str) -> Known | None:
        """What is known of a node; None where it was never heard."""
        (last,), (heard,) = _arrays(self._last.rows([node])), _arrays(self._heard.rows([node]))
        return None if last is None or heard is None else Known(last, heard, self._common, self._blocks.starts)

    def last_heard(self, node: str, coordinates: Ints) -> tuple[Doubles, Doubles, Doubles]:
        known = self._known(node)
        if known is None:
            nothing = np.zeros(coordinates.size)
            return nothing, nothing, self._common[coordinates]
        heard = known.heard[coordinates].astype(np.float64)
        return heard, known.last[coordinates].astype(np.float64), self._common[coordinates]

    def rows(self, nodes: Sequence[str]) -> list[Floats | float]:
        return self._last.rows(nodes)

    def blend(self, nodes: Sequence[str]) -> Blend:
        on_common, own, unheard = self._coefficients
        factors = np.stack([unheard, on_common - own - unheard, own])
        return Blend(self._common, _arrays(self._heard.rows(nodes)), factors)

    def remembered(self, node: str) -> Doubles:
        self._last.check(node)
        self._heard.check(node)
        return self.expected(node, np.arange(self._blocks.dim))

    def mean(self, weights: Mapping[str, Doubles]) -> Doubles:
        on_common, own, unheard = self._coefficients
        unheard = unheard * (np.sum(list(weights.values()), axis=0) > 0)  # a block without any weight has the mean 0
        mean, last = self._heard.mean(weights), self._last.mean(weights)
        for here, *of_block in zip(self._blocks.slices, on_common, own, unheard, strict=True):
            hybrid_mean(self._common[here], last[here], mean[here], of_block)  # into ``mean``
        return mean

    def take(self, arrivals: Sequence[Arrival]) -> None:
        listed: list[tuple[str, Doubles, Part]] = []
        counted = [self._gathered(arrival, listed) for arrival in arrivals]
        self._fit_lists(listed)
        self._last.take(counted)
        self._heard.take(counted)

    def _gathered(self, arrival: Arrival, listed: list[tuple[str, Doubles, Part]]) -> Arrival:
        """What counts of it; its samples wait to be fitted to, all at once, and what is listed by tile goes there."""
        parts = tuple(
            self._counted(part, arrival.weight) for part in (arrival.payload.parts if arrival.payload else ())
        )
        for part in parts:
            if isinstance(part.where, Sample):
                self._unfitted.setdefault(part.where.sizes, []).append((arrival.node, arrival.weight, part))
                continue
            weighed = arrival.node, arrival.weight * self._by_probability(arrival, part), part
            if isinstance(part.where, Tiled):
                listed.append(weighed)
            else:
                self._fit_lists(listed)  # before what came later, so that sums do not depend on how it is listed
                self._fit(*weighed)
        split = arrival.payload is not None and arrival.payload.split
        return replace(arrival, payload=Payload(parts, split=split))

    def _by_probability(self, arrival: Arrival, part: Part) -> float:
        """√(p/π) for coordinates that were sent with probability π instead of p = k/d: sums are then as if with p."""
        if arrival.payload is None or not arrival.payload.split:
            return 1.0
        return math.sqrt(self._shares[arrival.payload.choice] * part.scale)

    def _counted(self, part: Part, weight: Doubles) -> Part:
        if self._in_step or np.all(weight > 0):  # a node that keeps its row as well has written all of it
            return part
        positive = np.broadcast_to(self._blocks.at(weight, part.coordinates), part.coordinates.shape) > 0
        kept = None if part.kept is None else part.kept[positive]
        return replace(part, where=part.coordinates[positive], values=part.values[positive], kept=kept)

    def _fit(self, node: str, weight: Doubles, part: Part) -> None:
        known, at = self._known(node), part.coordinates
        if known is not None:
            self._sums += fit_at(known, weight, at, part.values, ROUNDING)
        else:
            block, none = self._blocks.of(at), np.zeros(at.size)
            x, c = weight[block] * part.values, weight[block] * self._common[at]
            self._sums += products(block, weight.size, x, c, none, none, ROUNDING)

    def _fit_lists(self, listed: list[tuple[str, Doubles, Part]]) -> None:
        """Fit to lists of coordinates, and take them off."""
        if not listed:
            return
        nodes, weights, parts = zip(*listed, strict=True)
        where = [part.where for part in parts if isinstance(part.where, Tiled)]
        rows, flags = _arrays(self._last.rows(nodes)), _arrays(self._heard.rows(nodes))
        values = [part.values for part in parts]
        fit = ListedFit(where, values, rows, flags, np.stack(weights), self._blocks.starts, self._common, ROUNDING)
        for sums in fit_listed(fit, threads_for_lists(where)):
            self._sums += sums
        listed.clear()

    def _fit_of(self, same_size: Sequence[tuple[str, Doubles, Part]]) -> Doubles:
        nodes, weights, parts = zip(*same_size, strict=True)
        samples = [part.where for part in parts if isinstance(part.where, Sample)]
        rows, flags = _arrays(self._last.rows(nodes)), _arrays(self._heard.rows(nodes))
        values = [part.values for part in parts]
        fit = Fit(samples, values, rows, flags, np.stack(weights), self._blocks.starts, self._common, ROUNDING)
        return fit_sums(fit, threads_for(samples))

    @property
    def fits(self) -> Doubles:
        # All samples of the round at once, so that the sums do not depend on when payloads were folded; and nothing is
        # kept of it, since a round that could not be closed asks again.
        sums = self._sums
        for same_size in self._unfitted.values():
            sums = sums + self._fit_of(same_size)
        return sums

    def pool(self, fits: Doubles) -> None:
        self._sums, self._unfitted = fits, {}

    def learn(self, round: int, estimate: Doubles | None) -> None:
        # First the fit, to c and B as they were when the values came.
        self._coefficients = hybrid_coefficients(tuple(self.fits), self._coefficients)
        self._last.learn(round, estimate)
        self._heard.learn(round, estimate)
        self._average()
        self._clear()

    def begin_anew(self, round: int, estimate: Doubles | None, past: Past) -> None:
        on_common, own, unheard = hybrid_coefficients(tuple(self.fits), self._coefficients)
        if past == "faded":
            sent = {each.node: each.payload.parts for each in self._last.pending if each.payload is not None}
            self._last.take([self._faded(node, sent.get(node, ()), own) for node in self._last.nodes])
            self.learn(round, estimate)
            self._coefficients = on_common, np.ones_like(own), unheard
            return
        self._coefficients = on_common, np.ones_like(own), on_common  # values are worth what they are from now on
        self._base = self._common.copy() if estimate is None else estimate.copy()
        came = [self._shrunk(arrival, own) for arrival in self._last.pending] if past == "shrunk" else []
        for table in (self._last, self._heard):
            table.clear()
            table.take(came)
            table.learn(round, estimate)
        self._average()
        self._clear()

    def _faded(self, node: str, came: Sequence[Part], own: Doubles) -> Arrival:
        """c + g(B − c) in place of what a node sent before the round, where nothing came in the round."""
        known = self._known(node)
        assert known is not None  # it has a row
        old = known.heard.astype(bool)
        for part in came:
            old[part.coordinates] = False
        at = np.flatnonzero(old)
        c, last = self._common[at], known.last[at]
        values = (c + self._blocks.at(own, at) * (last - c)).astype(last.dtype)
        part = Part(Tiled.of(tile_size(self._blocks.dim), self._blocks.dim, at), values)
        return Arrival(node, np.ones(len(self._blocks.sizes)), Payload((part,), split=True))

    def _shrunk(self, arrival: Arrival, own: Doubles) -> Arrival:
        """The same with c + g(x − c) in place of x, which least squares then find worth 1; c is the base."""
        assert self._base is not None
        assert arrival.payload is not None  # as it was counted
        parts = []
        for part in arrival.payload.parts:
            base, factor = self._base[part.coordinates], self._blocks.at(own, part.coordinates)
            parts.append(replace(part, values=(base + factor * (part.values - base)).astype(part.values.dtype)))
        return replace(arrival, payload=replace(arrival.payload, parts=tuple(parts)))

    def settle(self) -> None:
        self._last.settle()
        self._heard.settle()

    def _average(self) -> None:
        number = self._heard.everyone()
        common = np.zeros(self._blocks.dim) if self._base is None else self._base.copy()
        self._common = np.divide(self._last.everyone(), number, out=common, where=number > 0)

    def begin_afresh(self, node: str) -> None:
        # The average stays until ``learn``, or it would matter who came, or was folded, before.
        self._last.forget(node)
        self._heard.forget(node)

    def forget(self, node: str) -> None:
        self.begin_afresh(node)
        if not self._heard.pending:  # what was subtracted from values in the open round has to be added again
            self._average()

    @property
    def node_bytes(self) -> int:
        return self._last.node_bytes + self._heard.node_bytes

    def changes(self) -> Tree:
        return {"last": self._last.changes(), "heard": self._heard.changes()}

    def replay(self, changes: Tree) -> None:
        self._last.replay(branch(changes, "last"))
        self._heard.replay(branch(changes, "heard"))

    def state(self) -> Tree:
        return {
            "last": self._last.state(),
            "heard": self._heard.state(),
            "coefficients": np.stack(self._coefficients),
            **({} if self._base is None else {"base": self._base}),
        }

    def restore(self, state: Tree) -> None:
        self._last.restore(branch(state, "last"))
        self._heard.restore(branch(state, "heard"))
        on_common, own, unheard = array_in(state, "coefficients")
        self._coefficients = on_common, own, unheard
        self._base = array_in(state, "base") if isinstance(state, dict) and "base" in state else None
        self._average()


def _arrays(rows: Sequence[Array | float]) -> list[Array | None]:
    """The rows that are arrays; None for a node never heard."""
    return [row if isinstance(row, np.ndarray) else None for row in rows]
