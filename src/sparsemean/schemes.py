"""Scheme: encoder, decoder and memory that fit together; and the paper's names for them."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, overload

from sparsemean._names import FixedScheme, Knowledge, SchemeName, ValueName
from sparsemean.decoding import Decoder, Mean, Ratio, Shrunk, Spatial
from sparsemean.encoders import (
    Auto,
    ChunkedTopK,
    Difference,
    Encoder,
    ErrorFeedback,
    Identity,
    Induced,
    Lazy,
    OneOf,
    RandK,
    RTopK,
    Sign,
    Stateful,
    TopK,
    Wangni,
)
from sparsemean.encoders.size import Half, Size
from sparsemean.errors import IncompatibleScheme, InvalidInput
from sparsemean.memory import Hybrid, Memory, Nothing, Offset, PerNode, Shared, SharedStable, Window
from sparsemean.sampling import Balanced, Draw, Epochs, Independent
from sparsemean.wire.values import value_kind
from sparsemean.wire.values.modulo import Modulo


@dataclass(frozen=True, init=False)
class Scheme:
    """How vectors become bytes and bytes become a mean.

    Parameters
    ----------
    encoder : Encoder
        What a node sends of its vector.
    decoder : Decoder, optional
        How the server turns what came into a mean; by default ``Mean()``.
    memory : Memory, optional
        What the server expects of a node before it hears from it; by default 0.
    values : str, default "float32"
        How a value travels: "float64", "float32", "float16", "bfloat16", "int8", "int4", "2-bit", "1-bit"; or rotated,
        with b bits from 1 to 8 in sixteenths, "eden-b", such as "eden-3" or "eden-1.5". To compare with there are the
        quantisers "terngrad", "natural", "qsgd-2" to "qsgd-8" and "rotated-1" to "rotated-8".

    Members that cannot be right together are refused:

    >>> Scheme(RandK(0.1), Spatial("avg")).unbiased
    True
    >>> Scheme(Wangni(0.1), Spatial("avg"))
    Traceback (most recent call last):
    ...
    sparsemean.errors.IncompatibleScheme: Spatial needs samples of x itself; use RandK or TopK, or decode with Mean
    """

    encoder: Encoder
    decoder: Decoder
    memory: Memory
    values: ValueName

    def __init__(
        self,
        encoder: Encoder,
        decoder: Decoder | None = None,
        memory: Memory | None = None,
        values: ValueName = "float32",
    ) -> None:
        object.__setattr__(self, "encoder", encoder)
        object.__setattr__(self, "decoder", Mean() if decoder is None else decoder)
        object.__setattr__(self, "memory", Nothing() if memory is None else memory)
        object.__setattr__(self, "values", value_kind(values).name)
        self._check()

    def _check(self) -> None:
        """What fits what: it follows from the declared facts alone."""
        for member, kind in ((self.encoder, Encoder), (self.decoder, Decoder), (self.memory, Memory)):
            if not isinstance(member, kind):
                raise InvalidInput(f"a Scheme takes a {kind.__name__} here, not {member!r}")
        if any(isinstance(inner, Auto) for inner in vars(self.encoder).values()):
            raise IncompatibleScheme(
                f'{self.encoder!r} wraps Auto, whose nodes encode as plans say; use Auto alone, with node="broadcast" '
                "where nodes hear the last mean"
            )
        if isinstance(self.encoder, Auto) and self.values != "float32":
            raise IncompatibleScheme("Auto chooses how values travel as well; leave out values=")
        sends, remembers = self.encoder.facts, self.memory.facts
        decoder = type(self.decoder).__name__
        if self.decoder.reweights and not sends.raw:
            raise IncompatibleScheme(f"{decoder} needs samples of x itself; use RandK or TopK, or decode with Mean")
        if self.decoder.reweights and sends.epochs:
            raise IncompatibleScheme(
                f"{decoder} needs the law of how many nodes send a coordinate, which with Epochs differs from one to "
                "the next by who has sent it already; decode with Mean, or draw with Balanced()"
            )
        if self.decoder.reweights and sends.unbiased and not sends.uniform:
            raise IncompatibleScheme(
                f"{decoder} needs nodes that sample independently; drop shared=True, or decode with Mean"
            )
        if self.decoder.adapts and not sends.uniform:
            raise IncompatibleScheme(
                "a decoder that learns the correlation needs nodes that sample uniformly; use RandK, or a fixed ratio"
            )
        if self.decoder.shrinks is not None and remembers.feedback > 0:
            raise IncompatibleScheme(
                f"{self.memory!r} remembers the estimate, which {decoder} makes smaller; use memory=SharedStable()"
            )
        if self.decoder.reweights and sends.skips:
            raise IncompatibleScheme(
                f"{decoder} counts who sent a coordinate, and Lazy nodes may skip; decode with Mean"
            )
        if remembers.needs_raw and not sends.raw:
            raise IncompatibleScheme(
                f"{self.memory!r} subtracts what it remembers from values of x, which {self.encoder!r} does not send; "
                "use RandK, TopK or RTopK, or drop the memory"
            )
        if sends.offset != remembers.adds_offset:
            raise IncompatibleScheme("Difference and the Offset memory go together: use both or neither")
        if sends.remembered and not remembers.recalls:
            raise IncompatibleScheme(
                f"{self.encoder!r} needs a memory that holds what each node sent last, and forgets none of it; use "
                "memory=Hybrid()"
            )
        if sends.remembered and self.values == "float64":
            raise IncompatibleScheme("Remembered nodes keep float32, so float64 values are lost on them; use float32")
        if sends.skips and not (remembers.per_node and remembers.verbatim and not remembers.forgets):
            raise IncompatibleScheme("Lazy needs a memory that keeps what each node last sent; use memory=PerNode()")

    @property
    def unbiased(self) -> bool:
        """Whether the expectation of the estimate is the mean, whatever the vectors.

        Modulo values that a memory reads are biased a little: now and then some cannot be read (docs/beyond.md).
        """
        modulo = isinstance(value_kind(self.values), Modulo) and self.memory.facts.needs_raw
        return self.encoder.facts.unbiased and self.decoder.unbiased and not modulo

    @property
    def node_state(self) -> bool:
        """Whether a node has to remember something from round to round."""
        return isinstance(self.encoder, Stateful) or self.encoder.facts.in_step


def outline(scheme: Scheme) -> str:
    """The members of a scheme on one line, for people; long ones are cut.

    >>> outline(named("rand-k-temporal", k=5, values="int8"))
    'RandK(k=5, shared=False), Mean(), PerNode(forget_after=None), int8 values'
    """
    members = [scheme.encoder, scheme.decoder, *([] if isinstance(scheme.memory, Nothing) else [scheme.memory])]
    return ", ".join([*(shortened(repr(member)) for member in members), f"{scheme.values} values"])


def shortened(text: str, most: int = 80) -> str:
    """The text, cut where it is long.

    >>> shortened("a" * 9, most=5)
    'aaaa…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


INDEPENDENT = Independent()


def _sample(k: Any, draw: Draw = INDEPENDENT) -> Encoder:
    sizes = k if isinstance(k, tuple | list) else (k,)
    return RandK(sizes[0], draw=draw) if len(sizes) == 1 else OneOf(tuple(RandK(each, draw=draw) for each in sizes))


_NAMED: dict[FixedScheme, Callable[..., Scheme]] = {
    "identity": lambda k, values: Scheme(Identity(), values=values),
    "rand-k": lambda k, values: Scheme(_sample(k), values=values),
    "rand-k-spatial-max": lambda k, values: Scheme(_sample(k), Spatial("max"), values=values),
    "rand-k-spatial-avg": lambda k, values: Scheme(_sample(k), Spatial("avg"), values=values),
    "rand-k-spatial-opt": lambda k, values, ratio: Scheme(_sample(k), Spatial(ratio), values=values),
    "rand-k-spatial-adaptive": lambda k, values: Scheme(_sample(k), Spatial("estimated"), values=values),
    "rand-k-spatial-adaptive-unbiased": lambda k, values: Scheme(_sample(k), Spatial("learned"), values=values),
    "rand-k-temporal": lambda k, values: Scheme(_sample(k), memory=PerNode(), values=values),
    "rand-k-temporal-shared": lambda k, values: Scheme(_sample(k), memory=Shared(), values=values),
    "rand-k-temporal-window": lambda k, values, size=3: Scheme(_sample(k), memory=Window(size), values=values),
    "rand-k-temporal-stale": lambda k, values, forget_after=10: Scheme(
        _sample(k), memory=PerNode(forget_after), values=values
    ),
    "rand-k-temporal-shared-stable": lambda k, values: Scheme(
        _sample(k), Spatial("learned"), SharedStable(), values=values
    ),
    "rand-k-hybrid": lambda k, values: Scheme(_sample(k), Spatial("learned"), Hybrid(), values=values),
    "rand-k-balanced": lambda k, values: Scheme(_sample(k, Balanced()), Spatial("learned"), values=values),
    "rand-k-balanced-hybrid": lambda k, values: Scheme(
        _sample(k, Balanced()), Spatial("learned"), Hybrid(), values=values
    ),
    "rand-k-epochs-hybrid": lambda k, values: Scheme(_sample(k, Epochs()), memory=Hybrid(), values=values),
    "rand-k-hybrid-shrunk": lambda k, values: Scheme(_sample(k), Shrunk(Spatial("learned")), Hybrid(), values=values),
    "rand-k-balanced-hybrid-shrunk": lambda k, values: Scheme(
        _sample(k, Balanced()), Shrunk(Spatial("learned")), Hybrid(), values=values
    ),
    "rand-k-ratio": lambda k, values: Scheme(_sample(k), Ratio(), values=values),
    "rand-k-balanced-ratio": lambda k, values: Scheme(_sample(k, Balanced()), Ratio(), values=values),
    "top-k": lambda k, values: Scheme(TopK(k), values=values),
    "top-k-spatial": lambda k, values: Scheme(TopK(k), Spatial("avg"), values=values),
    "top-k-temporal": lambda k, values: Scheme(TopK(k), memory=PerNode(), values=values),
    "rtop-k": lambda k, values, over=2.0: Scheme(RTopK(k, over), values=values),
    "wangni": lambda k, values: Scheme(Wangni(k), values=values),
    "induced": lambda k, values: Scheme(Induced(TopK(Half(k)), RandK(Half(k, larger=True))), values=values),
    "error-feedback-top-k": lambda k, values: Scheme(ErrorFeedback(TopK(k)), values=values),
    "error-feedback-rand-k": lambda k, values: Scheme(ErrorFeedback(RandK(k)), values=values),
    "error-feedback-chunked-top-k": lambda k, values, chunk=4096, decay=1.0: Scheme(
        ErrorFeedback(ChunkedTopK(k, chunk), decay), values=values
    ),
    "error-feedback-sign": lambda k, values: Scheme(ErrorFeedback(Sign()), values=values),
    "diana": lambda k, values: Scheme(Difference(RandK(k)), memory=Offset(), values=values),
    "lag": lambda k, values, moved=0.1: Scheme(Lazy(Identity(), moved), memory=PerNode(), values=values),
}


SIZELESS: tuple[FixedScheme, ...] = ("identity", "error-feedback-sign", "lag")
"""Names of schemes that send whole vectors, and so need no k."""


AUTO: Literal["auto"] = "auto"


def _auto(k: Any, values: ValueName, bytes: Any = None, node: Any = "stateless") -> Scheme:
    return Scheme(Auto(k, bytes, node), Spatial("learned"), Hybrid(), values)


def names() -> list[FixedScheme]:
    """Every name that ``named`` knows and that stands for one scheme: all but "auto", which chooses in every round.

    >>> "rand-k-spatial-avg" in names()
    True
    """
    return list(_NAMED)


def scheme_name(text: str) -> SchemeName:
    """The text, if it is a name that ``named`` knows: for names that come from outside the program."""
    known: list[SchemeName] = [*_NAMED, AUTO]
    if text not in known:
        near = difflib.get_close_matches(str(text), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"
        raise InvalidInput(f"there is no scheme named {text!r}; {hint}")
    return text


@overload
def named(
    name: Literal["auto"],
    k: Size | None = None,
    *,
    values: ValueName = "float32",
    bytes: int = ...,
    node: Knowledge = "stateless",
) -> Scheme: ...


@overload
def named(
    name: SchemeName, k: Size | Sequence[Size] | None = None, *, values: ValueName = "float32", **options: float
) -> Scheme: ...


def named(
    name: SchemeName,
    k: Size | Sequence[Size] | None = None,
    *,
    values: ValueName = "float32",
    **options: float | str,
) -> Scheme:
    """The scheme of that name.

    Parameters
    ----------
    name : str
        One of ``names()``, or "auto".
    k : int or float, or a sequence of them
        How many coordinates a payload has: a count, or a share of the dimension strictly between 0 and 1. Schemes that
        begin with ``rand-k`` take several, from which each node's ``Client`` chooses (``OneOf``). ``identity``,
        ``error-feedback-sign`` and ``lag`` send whole vectors and need none. ``auto`` takes the bytes that so
        many float32 values would have.
    values : str, default "float32"
        How a value travels, as in ``Scheme``.
    **options
        ``ratio=`` (rand-k-spatial-opt), ``size=`` (rand-k-temporal-window), ``forget_after=`` (rand-k-temporal-stale),
        ``over=`` (rtop-k), ``chunk=`` and ``decay=`` (error-feedback-chunked-top-k), ``moved=`` (lag), ``bytes=``
        (auto, instead of k) and ``node=`` (auto).

    >>> named("rand-k-temporal", k=0.1) == Scheme(RandK(0.1), memory=PerNode())
    True
    """
    make = _auto if scheme_name(name) == AUTO else _NAMED[cast(FixedScheme, name)]
    if k is None and name not in (AUTO, *SIZELESS):
        raise InvalidInput(f"{name} needs k: a count such as 50, or a share such as 0.1")
    takes = [f"{option}=" for option in inspect.signature(make).parameters if option not in ("k", "values")]
    for option in options:
        if f"{option}=" not in takes:
            raise InvalidInput(f"{name} has no option {option}=; it takes {', '.join(['k=', 'values=', *takes])}")
    try:
        return make(k, values, **options)
    except TypeError as error:
        if name == "rand-k-spatial-opt" and "ratio" not in options:
            raise InvalidInput(
                "rand-k-spatial-opt needs ratio=, the R2/R1 of the weighted vectors (theory.correlation)"
            ) from None
        raise InvalidInput(f"{name}: {error}") from None
