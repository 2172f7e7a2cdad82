"""Advice in a few sentences: which scheme to use for these vectors, what else there is, what more bytes would buy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from sparsemean.lab.compare.comparison import NOTHING, Comparison, precise
from sparsemean.lab.compare.result import WHOLE, Result
from sparsemean.lab.numbers import percent
from sparsemean.schemes import AUTO

WORTH_SAYING = ((1.1, 2.0), (16.0, 10.0))
"""Whole vectors are worth a sentence where, for at most so many times the bytes, they err so many times less."""
NEEDS: tuple[tuple[str, Callable[[Result], bool]], ...] = (
    ("plans", lambda result: result.planned),
    ("memory at the server", lambda result: result.server_memory),
    ("state at the nodes", lambda result: result.node_state),
)
DIFFERS = 1.1
"""Where errors in the steady state and over all rounds differ by this factor, that is said."""
LARGEST_ENTRIES = ("top-k", "rtop-k", "wangni", "induced", "error-feedback-top-k", "error-feedback-chunked-top-k")


def advice(comparison: Comparison) -> str:
    """What to use on vectors like these; every number in it was measured on them."""
    best = comparison.recommended
    if best is None:
        return " ".join(_nothing(comparison))
    if best.steady < NOTHING:
        return (
            "The budget is large enough for all that these vectors hold: "
            f"of the schemes with an error below {NOTHING:g}, {best.scheme} needs the least."
        )
    return " ".join(_sentences(comparison, best))


def _nothing(comparison: Comparison) -> Iterator[str]:
    if any(result.steady <= NOTHING for result in comparison.results) and comparison.steady_zero_error <= NOTHING:
        yield "The mean of these vectors is 0, so answering 0 is right and needs no bytes."
        return
    zero = f"answering 0 does ({comparison.steady_zero_error:.3g})"
    yield f"Nothing that compresses errs less than {zero}, within this budget."
    whole = [result for result in comparison.results if result.scheme in WHOLE]
    cheapest = min(whole, key=lambda each: each.bytes_per_node, default=None)
    yield f"Give a larger one, or send whole vectors{f': {_whole(cheapest)}' if cheapest else ''}."


def _sentences(comparison: Comparison, best: Result) -> Iterator[str]:
    spent = f"{best.bytes_per_node:.0f} bytes per node"
    yield f"Use {best.scheme}: error {best.steady:.3g} at {spent}{_gain(comparison, best)}."
    yield from _bias(comparison, best)
    yield from _others(comparison, best)
    yield from _auto(comparison, best)
    yield from _all_rounds(comparison, best)
    if best.name in LARGEST_ENTRIES:
        held = percent(comparison.concentration)
        yield f"The largest entries of a vector, as many as rand-k sends, hold {held} of its energy."
    yield from _trade(comparison, best)
    if not precise(best):
        known = f"± {percent(2 * best.steady_se / best.steady)}" if best.seeds > 1 else "from a single seed"
        yield f"The error of {best.scheme} is {known}: more seeds (--seeds) would tell schemes that are close apart."


def _gain(comparison: Comparison, best: Result) -> str:
    baseline = " ".join(["rand-k", *best.scheme.split(" ")[1:]])  # with the same kind of values
    plain = next((result for result in comparison.results if result.scheme == baseline), None)
    if plain is None or plain is best or not best.steady > 0.0:
        return ""
    less = _times(plain.steady / best.steady)
    return f", {less} less than {baseline}" if plain.steady > best.steady and less != "1 times" else ""


def _times(factor: float) -> str:
    if factor >= 1e6:
        return "over a million times"
    return f"{factor:,.0f} times" if factor >= 100 else f"{factor:.3g} times"


def _bias(comparison: Comparison, best: Result) -> Iterator[str]:
    if not best.unbiased:
        unbiased = comparison.best_of(result for result in comparison.choices if result.unbiased)
        told = (
            f"; the best unbiased one is {_named(unbiased)}" if unbiased else ", and no unbiased one beats answering 0"
        )
        yield f"It is biased, so its errors do not cancel over rounds{told}."


def _others(comparison: Comparison, best: Result) -> Iterator[str]:
    """The best that does without what the recommended one needs, and needs nothing that it does not."""
    without: dict[str, list[str]] = {}
    for what, needed in NEEDS:
        if needed(best):
            able = [
                each
                for each in comparison.choices
                if not needed(each)
                and (each.unbiased or not best.unbiased)
                and all(need(best) or not need(each) for _, need in NEEDS)
            ]
            other = comparison.best_of(able)
            without.setdefault(_named(other) if other else "nothing that was played beats answering 0", []).append(what)
    if without:
        told = (f"without {' or '.join(what)}, {other}" for other, what in without.items())
        yield f"If that cannot be had: {'; '.join(told)}."


def _auto(comparison: Comparison, best: Result) -> Iterator[str]:
    auto = next((result for result in comparison.results if result.scheme == AUTO), None)
    if auto is not None and auto is not best:
        yield f"auto, which chooses anew in every round and needs plans, has {auto.steady:.3g}."


def _all_rounds(comparison: Comparison, best: Result) -> Iterator[str]:
    """Whether the rounds of the steady state and all rounds differ, and who is ahead over all."""
    if not comparison.warmup:
        return
    other = comparison.best_over_all_rounds
    ahead = other is not None and other is not best and best.nmse > DIFFERS * other.nmse
    less, more = sorted((best.steady, best.nmse))
    if ahead or more > DIFFERS * less:
        yield (
            f"The error of {best.scheme} is that in rounds {comparison.warmup + 1} to {comparison.rounds}; over all of "
            f"them, the first ones included, it is {best.nmse:.3g}"
            + (f", and that of {other.scheme} {other.nmse:.3g}." if other and ahead else ".")
        )


def _trade(comparison: Comparison, best: Result) -> Iterator[str]:
    """What whole vectors would cost, and give."""
    for result in sorted(comparison.results, key=lambda each: each.bytes_per_node):
        more, less = result.bytes_per_node / best.bytes_per_node, best.steady / max(result.steady, 1e-300)
        if result.scheme in WHOLE and any(1.0 < more <= most and less >= least for most, least in WORTH_SAYING):
            kind = result.scheme.partition(" ")[2] or "float32"
            extra = math.ceil(result.bytes_per_node - best.bytes_per_node)
            cost = f"{more:.2g} times the bytes" if more > WORTH_SAYING[0][0] else f"{extra} bytes more"
            yield f"Whole vectors in {kind} cost {cost} and err {_times(less)} less."
            return


def _named(result: Result) -> str:
    return f"{result.scheme} ({result.steady:.3g})"


def _whole(result: Result) -> str:
    kind = result.scheme.partition(" ")[2] or "float32"
    return f"{kind} takes {math.ceil(result.bytes_per_node)} bytes per node and has an error of {result.steady:.3g}"
