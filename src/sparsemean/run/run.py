"""Run: what nodes and server agree on before the first round."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sparsemean import sampling
from sparsemean._names import SchemeName, ValueName
from sparsemean._types import Ints
from sparsemean.decoding import Mean
from sparsemean.encoders import Auto, Difference, Encoder, RandK, Remembered
from sparsemean.encoders.size import largest_within
from sparsemean.errors import InvalidInput, SparseMeanError
from sparsemean.inputs import node_name
from sparsemean.kernels import Sample
from sparsemean.kernels.eden import LEAST
from sparsemean.kernels.tiled import Tiled
from sparsemean.payload import Layout
from sparsemean.payload.blocks import Blocks
from sparsemean.run.text import describe, digest_of, known_members, parsed, rebuild
from sparsemean.sampling.plan import MAX_SLOTS, plan_of
from sparsemean.schemes import AUTO, SIZELESS, Scheme, named
from sparsemean.theory.arguments import shown, whole
from sparsemean.wire import compact, frame, parts
from sparsemean.wire.compact import Compact
from sparsemean.wire.values import ValueKind, value_kind
from sparsemean.wire.values.modulo import Modulo

LARGEST_DIM, LARGEST_SEED = 1 << 40, (1 << 64) - 1
FULL = "full"


@dataclass(frozen=True, init=False)
class Run:
    """A scheme for vectors of one dimension, with a seed: everything both sides derive coordinates and sizes from.

    Parameters
    ----------
    scheme : Scheme
        How vectors become bytes and bytes become a mean.
    dim : int
        Length of the vectors, up to 2**40.
    seed : int, default 0
        All random draws derive from it, the round and the node's name; below 2**64.
    blocks : sequence of int, optional
        Sizes of consecutive ranges (layers, cluster centres) that have a weight, a correlation and fitted coefficients
        of their own; they sum to ``dim``. By default there is one block.
    nodes : sequence of str, optional
        The names of all nodes, where they are known: each has its slot in a balanced draw then, without a plan. It is
        not part of the digest, so that a node may join or leave by a new list on both sides; not for other draws. With
        ``Epochs()``, every round for which nodes have no plan begins an epoch.
    frame : str, default "full"
        "compact" leaves the header of 64 bytes out of every payload, but for five bytes of it: for radios. The
        transport must say who sends; a ``secret=`` of client and server proves it. "compact-8" has a tag of 8 bytes
        in place of 4, up to 16.

    >>> from sparsemean.schemes import named
    >>> run = Run(named("rand-k", k=0.01), dim=10**6, seed=7)
    >>> run.payload_bytes
    40064
    >>> Run.from_json(run.to_json()) == run
    True
    """

    scheme: Scheme
    dim: int
    seed: int
    blocks: tuple[int, ...]
    nodes: tuple[str, ...]
    frame: str

    def __init__(
        self,
        scheme: Scheme,
        dim: int,
        seed: int = 0,
        blocks: Sequence[int] | None = None,
        nodes: Sequence[str] | None = None,
        frame: str = FULL,
    ) -> None:
        if not isinstance(scheme, Scheme):
            raise InvalidInput(f'a Run takes a Scheme, such as named("rand-k", k=0.1), not {scheme!r}')
        dim, seed = whole(dim, "dim", 1), whole(seed, "seed", 0)
        if dim > LARGEST_DIM or seed > LARGEST_SEED:
            given = f"{shown(dim)} and {shown(seed)}"
            raise InvalidInput(f"dim goes up to {LARGEST_DIM} and seed up to {LARGEST_SEED}, got {given}")
        if blocks is not None and not isinstance(blocks, Iterable):
            raise InvalidInput(f"blocks is a list of sizes, got {blocks!r}")
        sizes = (dim,) if blocks is None else tuple(whole(block, "the size of a block", 1) for block in blocks)
        if sum(sizes) != dim:
            raise InvalidInput(f"the sizes of the blocks sum to dim = {dim}, got a sum of {shown(sum(sizes))}")
        object.__setattr__(self, "scheme", scheme)
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "seed", seed)
        object.__setattr__(self, "blocks", sizes)
        object.__setattr__(self, "frame", frame if frame == FULL else compact.named(compact.tag_bytes_of(frame)))
        object.__setattr__(self, "nodes", () if nodes is None else self._roster(nodes))
        _ = self.layouts  # refuses a k that does not fit the dimension
        draws = {each[0].draw for each in self.layouts}
        if self.epochs is not None and len(draws) > 1:
            raise InvalidInput(f"all encoders of a run have one clock, and so one draw; got {draws!r}")
        if self.planned and len(set(self.shares)) < len(self.shares):
            # Nodes of one k share one draw, and would be counted as of two that are independent.
            raise InvalidInput(
                f"encoders of {scheme.encoder!r} send the same number of {dim} coordinates; with a balanced draw, give "
                "each another k, or leave one out"
            )

    @staticmethod
    def for_bytes(
        name: SchemeName,
        dim: int,
        bytes: int,
        seed: int = 0,
        blocks: Sequence[int] | None = None,
        nodes: Sequence[str] | None = None,
        *,
        values: ValueName = "float32",
        frame: str = FULL,
        **options: float | str,
    ) -> Run:
        """The run of a named scheme with the largest k whose payloads never have more than so many bytes.

        Parameters
        ----------
        name : str
            One of ``names()``. ``identity``, ``error-feedback-sign`` and ``lag`` send whole vectors: they fit, or are
            refused.
        dim, seed, blocks, nodes
            Those of the run.
        bytes : int
            The most that a payload may have, header included. Where its length depends on the vector, as of ``top-k``,
            it is the longest that counts; of values with a common scale, which a balanced draw has with one and two
            bits, that is a sixth more than the usual length, and up to two thirds where payloads are of 200 bytes.
        values : str, default "float32"
            How a value travels, as in ``Scheme``.
        frame : str, default "full"
            That of the run.
        **options
            Of the name, as in ``named``.

        >>> Run.for_bytes("rand-k-spatial-avg", dim=1000, bytes=200, values="int8").scheme.encoder
        RandK(k=134, shared=False)
        >>> Run.for_bytes("rand-k-spatial-avg", dim=1000, bytes=11, values="int4", frame="compact").payload_bytes
        11
        """
        bytes, dim = whole(bytes, "bytes", 1), whole(dim, "dim", 1)
        if not isinstance(name, str):
            raise InvalidInput(f'for_bytes takes the name of a scheme, such as "rand-k-hybrid", not {name!r:.100}')
        if "k" in options:
            raise InvalidInput("for_bytes finds the k that fits; leave k out")
        made: Callable[..., Scheme] = named
        if name == AUTO:
            return Run(made(name, None, values=values, bytes=bytes, **options), dim, seed, blocks, nodes, frame)

        def run_with(k: int) -> Run:
            scheme = made(name, None if name in SIZELESS else k, values=values, **options)
            return Run(scheme, dim, seed, blocks, nodes, frame)

        def fits(k: int) -> bool:
            return run_with(k).payload_bytes <= bytes

        least = run_with(1)
        k = largest_within(fits, 0, 1 if name in SIZELESS else dim)
        if k == 0:
            raise InvalidInput(
                f"{name} with {values} values takes at least {least.payload_bytes} bytes a payload, of which "
                f"{least.header_bytes} are the header, got bytes={bytes}; allow more, or use values of fewer bits"
                + (' or frame="compact"' if least.compact is None else "")
            )
        return run_with(k)

    def _roster(self, nodes: Sequence[str]) -> tuple[str, ...]:
        if not self.planned:
            raise InvalidInput(f"{self.scheme.encoder!r} has no slots to give to nodes; leave out nodes=")
        if isinstance(nodes, str) or not isinstance(nodes, Iterable):
            raise InvalidInput(f"nodes is a list of names, got {nodes!r:.100}")
        names = tuple(map(node_name, nodes))
        if not len(set(names)) == len(names) <= MAX_SLOTS:
            raise InvalidInput(f"nodes are up to {MAX_SLOTS} different names; a node has one slot")
        return names

    @property
    def auto(self) -> bool:
        """Whether plans choose what nodes encode with (``options``)."""
        return isinstance(self.scheme.encoder, Auto)

    @cached_property
    def options(self) -> tuple[Run, ...]:
        """The runs of single rounds that plans choose from, where the encoder is ``Auto``; else this one alone.

        Each is a run like any other, with the memory of this one; its payloads are bound to this one.
        """
        encoder, scheme = self.encoder, self.scheme
        if not isinstance(encoder, Auto):
            return (self,)
        found = []
        for each, values in encoder.options(self.dim):
            decoder = Mean() if each.facts.epochs else scheme.decoder
            option = Run(
                Scheme(each, decoder, scheme.memory, values), self.dim, self.seed, self.blocks, self.nodes, self.frame
            )
            object.__setattr__(option, "run_digest", self.run_digest)
            object.__setattr__(option, "compact", self.compact)
            found.append(option)
        return tuple(found)

    def followed(self, plan: sampling.Plan | None) -> Run:
        """The run that payloads of this plan go by: one of the ``options``, where the plan names one."""
        return self.options[plan.option] if self.auto and plan is not None and plan.option is not None else self

    @cached_property
    def planned(self) -> bool:
        """Whether nodes need a plan, or the list of all nodes, to draw their coordinates."""
        return self.scheme.encoder.facts.planned

    @cached_property
    def epochs(self) -> sampling.Epochs | None:
        """The draw, where it is one of epochs."""
        draw = self.layout[0].draw
        return draw if isinstance(draw, sampling.Epochs) else None

    @property
    def common_scale(self) -> bool:
        """Whether plans may have a scale, by which payloads then vary in length.

        Not where the decoder shrinks: that goes by R2, which noise that is not independent falsifies. Nor where nodes
        may go by the run's list, and so without a scale, and frames do not say which plan they follow.
        """
        if self.scheme.decoder.shrinks is not None or (self.compact is not None and self.nodes):
            return False
        return any(not parts.sized(layout, self.value_kind) for each in self.layouts for layout in each if layout.fixed)

    @property
    def frame_version(self) -> int:
        """The version of its frames."""
        return frame.PLANNED if self.planned else frame.PLAIN

    @cached_property
    def compact(self) -> Compact | None:
        """How its frames are laid out where they are compact; None where they are full."""
        if self.frame == FULL:
            return None
        return Compact(compact.tag_bytes_of(self.frame), self.in_step or self.relative)

    @property
    def header_bytes(self) -> int:
        """What a payload takes before its body."""
        return frame.HEADER_BYTES if self.compact is None else self.compact.header_bytes

    @cached_property
    def slots(self) -> dict[str, int]:
        """The slot of each of the ``nodes``."""
        return {node: slot for slot, node in enumerate(self.nodes)}

    def listed_plan(self, node: str, round: int) -> sampling.Plan:
        """The plan of a node by the list of ``nodes``; one that is not in it draws independently.

        Without the server's plans every round begins an epoch.
        """
        return plan_of(node, self.slots, None if self.epochs is None else round)

    @cached_property
    def encoder(self) -> Encoder:
        """That of the scheme, where a step that is left to us is the one that suits encoder and values.

        ``Auto`` reckons with a full header: it is given the bytes that a compact one leaves.
        """
        encoder = self.scheme.encoder
        if isinstance(encoder, Auto) and encoder.bytes is not None and self.compact is not None:
            return dataclasses.replace(encoder, bytes=encoder.bytes + frame.HEADER_BYTES - self.header_bytes)
        if isinstance(encoder, Remembered):
            return encoder.for_values(self._rounded(encoder))
        if not isinstance(encoder, Difference) or encoder.step is not None:
            return encoder
        rounded = self._rounded(encoder)
        return dataclasses.replace(encoder, step=encoder.step_in(self.dim) / (1.0 + rounded)) if rounded else encoder

    def _rounded(self, encoder: Encoder) -> float:
        """ω of the value kind, of the fewest values that a part has; 0 where it is not known."""
        return self.value_kind.omega(min(layout.count for layout in encoder.layout(self.dim)))

    @cached_property
    def encoders(self) -> tuple[Encoder, ...]:
        """What a node may encode with: one encoder, or those of a OneOf."""
        return self.encoder.choices

    def choice(self, encoder: Encoder) -> int:
        """Which of the ``encoders`` this one is; a RandK without a draw is the one of its size."""
        for known in (self.encoders, tuple(map(_undrawn, self.encoders))):
            if encoder in known:
                return known.index(encoder)
        raise InvalidInput(f"{encoder!r} is none of the run's encoders: {', '.join(map(repr, self.encoders))}")

    @cached_property
    def in_step(self) -> bool:
        """Whether the server must hold the very state that a node builds on."""
        return self.scheme.encoder.facts.in_step

    @cached_property
    def relative(self) -> bool:
        """Whether nodes may send differences to the last mean."""
        return self.scheme.encoder.facts.relative

    @cached_property
    def sketched(self) -> bool:
        """Whether nodes may send modulo values that the server reads by what it expects of them (``Server.sketch``).

        For a memory, and one stateless encoder of at least 512 values of x, at coordinates that follow from the key.
        """
        scheme, facts = self.scheme, self.scheme.encoder.facts
        alone = facts.raw and not (facts.planned or facts.relative or scheme.node_state)
        one = len(self.layouts) == len(self.layout) == 1 and self.layout[0].where in ("all", "seeded", "shared")
        many = self.layout[0].count >= LEAST
        return isinstance(self.value_kind, Modulo) and alone and one and many and scheme.memory.facts.needs_raw

    @cached_property
    def value_kind(self) -> ValueKind:
        """How a value travels."""
        return value_kind(self.scheme.values)

    @cached_property
    def layouts(self) -> tuple[tuple[Layout, ...], ...]:
        """How each part of a payload travels, for each of the encoders."""
        return tuple(encoder.layout(self.dim) for encoder in self.encoders)

    @property
    def layout(self) -> tuple[Layout, ...]:
        """How each part of a payload of the first encoder travels."""
        return self.layouts[0]

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """p = k/d of each encoder, where every coordinate is sent with exactly that probability; else empty.

        With epochs it is the probability in the first round of one.
        """
        facts = self.scheme.encoder.facts
        return tuple(parts[0].count / self.dim for parts in self.layouts) if facts.uniform or facts.epochs else ()

    @cached_property
    def class_shares(self) -> tuple[float, ...]:
        """The share of each class of nodes that totals are kept for.

        A class is an encoder; with a designed draw, an encoder's nodes that have a slot, and after these an encoder's
        nodes that have none. With epochs these are of first rounds; behind them are an encoder's nodes of later rounds,
        and the energies of what such nodes send of S.
        """
        return self.shares * (1 + self.planned + 2 * (self.epochs is not None))

    @property
    def share(self) -> float | None:
        """The one share that all nodes have; None where there is none, or several."""
        return self.shares[0] if len(self.shares) == 1 else None

    @cached_property
    def ranges(self) -> Blocks:
        """The blocks as ranges of coordinates."""
        return Blocks(self.blocks)

    @cached_property
    def payload_bytes(self) -> int:
        """Length of a payload: exact where ``payload_fixed``, else the most that any vector can need."""
        return max(self._most_bytes)

    @cached_property
    def _most_bytes(self) -> list[int]:
        if self.auto:
            return [option.payload_bytes for option in self.options]
        kind, fixed = self.value_kind, self.header_bytes + (len(self.encoders) > 1)
        return [fixed + sum(parts.most_bytes(layout, self.dim, kind) for layout in each) for each in self.layouts]

    @property
    def payload_fixed(self) -> bool:
        """Whether every payload has exactly ``payload_bytes`` bytes."""
        same = len(set(self._most_bytes)) == 1 and not self.scheme.encoder.facts.skips
        return same and all(parts.sized(layout, self.value_kind) for each in self.layouts for layout in each)

    def key(self, node: str, round: int, plan: sampling.Plan | None = None) -> sampling.Key:
        """The key from which this node's randomness in this round is derived, with its plan where it has one."""
        return sampling.Key(self.seed, round, node, plan=plan)

    def coordinates(
        self,
        node: str,
        round: int,
        lo: int = 0,
        hi: int | None = None,
        choice: int = 0,
        plan: sampling.Plan | None = None,
    ) -> tuple[Ints, int]:
        """The coordinates that a node draws in [lo, hi), and the place of the first among the values it sends.

        For encoders whose one part is drawn from the key.

        Parameters
        ----------
        node, round
            Whose draw, and in which round.
        lo, hi : int
            The range, by default all; multiples of ``sampling.tile_size(run.dim)``, or ``run.dim``.
        choice : int, default 0
            The payload's, where nodes choose their encoder.
        plan : Plan, optional
            The node's, where the draw needs one; by default that of the run's list of ``nodes``.

        >>> from sparsemean.schemes import named
        >>> drawn, first = Run(named("rand-k", k=6), dim=10_000).coordinates("a", 0, 4096, 8192)
        >>> len(drawn), first
        (3, 2)
        """
        if plan is not None and not isinstance(plan, sampling.Plan):
            raise InvalidInput(f"plan is a sparsemean.sampling.Plan, with the node's slot, not {plan!r:.100}")
        if plan is None and self.planned and not self.nodes:
            raise InvalidInput("the draw needs the node's slot; give plan=Plan(slot, slots), or Run(…, nodes=[…])")
        layout = self.layouts[choice][0]
        if len(self.layouts[choice]) > 1 or layout.where not in ("seeded", "shared"):
            raise InvalidInput(f"{self.scheme.encoder!r} does not draw its coordinates from the key")
        key = self.key(node, round, self.listed_plan(node, round) if plan is None and self.planned else plan)
        end, (first, *others) = self.dim if hi is None else hi, layout.drawn(key, self.dim)
        if isinstance(first.where, Sample):
            return sampling.sample_between(first.where, lo, end)
        if (lo, end) != (0, self.dim):
            raise InvalidInput("values of a range do not stand together in this round of an epoch; leave out lo and hi")
        every = (each.where.coordinates if isinstance(each.where, Tiled) else each.where for each in (first, *others))
        return np.concatenate([at for at in every if not isinstance(at, Sample)]), 0

    @cached_property
    def scheme_digest(self) -> bytes:
        """Eight bytes that change with the encoder, the value kind or a version of the formats."""
        versions = {"frame": self.frame_version, "sampling": sampling.VERSION}
        return digest_of({**versions, "encoder": describe(self.scheme.encoder), "values": self.scheme.values})

    @cached_property
    def run_digest(self) -> bytes:
        """Eight bytes that change with the scheme digest, the dimension, the blocks or the seed."""
        setting = {"dim": self.dim, "blocks": list(self.blocks), "seed": self.seed, **self._frame_member}
        return digest_of({"scheme": self.scheme_digest.hex(), **setting})

    @property
    def _frame_member(self) -> dict[str, str]:
        """The form of the frames in texts and digests, which do not have it where it is full."""
        return {} if self.frame == FULL else {"frame": self.frame}

    @property
    def digest(self) -> str:
        """What payloads are bound to; decoder and memory are the server's own business and not part of it."""
        return self.run_digest.hex()

    def to_json(self) -> str:
        """The run as text, for the other side or for keeping."""
        return json.dumps({**self.agreed(), **({"nodes": list(self.nodes)} if self.nodes else {})}, sort_keys=True)

    def agreed(self) -> dict[str, Any]:
        """What must stay as it is as long as the run goes on, as plain JSON: all but who takes part."""
        setting = {"dim": self.dim, "seed": self.seed, "blocks": list(self.blocks), **self._frame_member}
        agreed: dict[str, Any] = json.loads(json.dumps({"scheme": describe(self.scheme), **setting}, sort_keys=True))
        return agreed

    @staticmethod
    def from_json(text: str, members: Sequence[type] = ()) -> Run:
        """The run that ``to_json`` wrote; ``members`` are classes of your own that it uses."""
        known = {**known_members(), **{member.__name__: member for member in members}}
        try:
            fields = parsed(text)
            if set(fields) - {"nodes", "frame"} != {"scheme", "dim", "seed", "blocks"}:
                raise InvalidInput("this is not a run written by to_json, which has scheme, dim, seed and blocks")
            scheme = rebuild({"type": "Scheme", **fields["scheme"]}, {**known, "Scheme": Scheme})
            shape = fields["dim"], fields["seed"], fields["blocks"], fields.get("nodes")
            return Run(scheme, *shape, fields.get("frame", FULL))
        except SparseMeanError:
            raise
        # Constructors of members, also of the caller's own, meet whatever the text holds.
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise InvalidInput(f"this is not a run written by to_json: {str(error)[:200]}") from None


def _undrawn(encoder: Encoder) -> Encoder:
    return dataclasses.replace(encoder, draw=sampling.Independent()) if isinstance(encoder, RandK) else encoder
