"""Advice in one sentence: which scheme to use for these vectors, and why."""

from __future__ import annotations

import math

from sparsemean.lab.compare.comparison import Comparison
from sparsemean.lab.compare.correlation import VectorCorrelation
from sparsemean.lab.compare.playing import Result
from sparsemean.schemes import AUTO, SIZELESS, names

ORACLE = "rand-k-spatial-opt"
OTHER_USE = ("-ratio", "-shrunk")
"""Endings of names of schemes that are made for something else: unequal weights, and monitoring alone."""
EXACT_ENOUGH = 1e-10
SIMILAR = 0.1
"""R2/R1 over n from which on vectors have something in common."""
RESTLESS = 0.5
"""Change per round, relative to the vectors, from which on a memory does not help."""


def advice(comparison: Comparison) -> str:
    """The scheme to use on vectors like these, with the reason; an unbiased one beside it where the best is biased.

    Schemes are judged by the exact error where there is a formula, because a few seeds can mislead. Of those that
    come to the same, as many do in a single round, the simplest is taken.
    """
    able = sorted((r for r in comparison.results if _is_choice(r, comparison)), key=_rank)
    auto = next((result for result in comparison.results if result.scheme == AUTO), None)
    if not able and auto is not None:
        return f"auto measured {auto.nmse:.3g} at {auto.bytes_per_node:.0f} bytes per node, beside no fixed scheme."
    if not able:
        return "Nothing here compresses these vectors within the budget; send them whole, or give a larger budget."
    best = able[0]
    if _judged(best) < EXACT_ENOUGH:
        return f"The budget is large enough for everything these vectors hold: {best.scheme} and others are exact."
    baseline = " ".join(["rand-k", *best.scheme.split(" ")[1:]])  # with the same kind of values
    plain = next((result for result in able if result.scheme == baseline), None)
    less = f"{_judged(plain) / _judged(best):.3g}" if plain else "1"
    gain = f", {less} times less than {baseline}" if less != "1" else ""
    reason = _reason(best.scheme, comparison.correlation)
    sentence = (
        f"Use {best.scheme}: relative error {_judged(best):.3g} at {best.bytes_per_node:.0f} bytes per node{gain}"
    )
    sentence += f", because {reason}." if reason else "."
    unbiased = next((result for result in able if result.unbiased), None)
    if not best.unbiased and unbiased:
        sentence += f" It is biased; the best unbiased one is {unbiased.scheme} ({_judged(unbiased):.3g})."
    if auto is not None:
        better = auto.nmse < best.nmse
        sentence += (
            f" auto, which chooses anew in every round and needs plans, measured {auto.nmse:.3g} from the same budget: "
            + (f"{best.nmse / auto.nmse:.3g} times less." if better and auto.nmse > 0 else "not less.")
        )
    if _judged(best) >= 1.0:
        sentence += " Even so the error is larger than the vectors themselves: raise the budget."
    return sentence


def percent(share: float) -> str:
    """Whole percents, and two digits of what is less than one.

    >>> percent(1.37), percent(0.02), percent(0.0004), percent(1e-9), percent(0.0)
    ('137%', '2%', '0.04%', 'under 0.001%', '0%')
    """
    if share >= 0.01 or share == 0.0:
        return f"{share:.0%}"
    return f"{100 * share:.2g}%" if share >= 1e-5 else "under 0.001%"


def _judged(result: Result) -> float:
    return result.nmse if result.exact is None else result.exact


def _rank(result: Result) -> tuple[float, int]:
    """The error to six digits; then the place among the names, which go from simple to composed."""
    return float(f"{_judged(result):.6g}"), names().index(result.scheme.partition(" ")[0])


def _is_choice(result: Result, comparison: Comparison) -> bool:
    """Not the one told the true correlation, nor auto, nor one for another use, that diverges or is over the budget.

    Whole vectors compress only where bytes are counted.
    """
    name = result.scheme.partition(" ")[0]
    whole = name in SIZELESS and comparison.budget.bytes is None
    if (
        whole
        or name in (AUTO, ORACLE)
        or name.endswith(OTHER_USE)
        or result.diverges
        or not math.isfinite(_judged(result))
    ):
        return False
    return not result.over_budget


def _reason(scheme: str, correlation: VectorCorrelation) -> str:
    space = f"R2/R1 is {correlation.ratio:.3g} of at most {correlation.nodes - 1}"
    change = correlation.change
    scheme = scheme.partition(" ")[0]
    if scheme == "identity":
        return "the budget takes whole vectors in these values"
    if scheme.startswith(("rand-k-balanced", "rand-k-epochs")):
        return _balanced_reason(space, correlation, change if scheme.endswith("hybrid") else None)
    if scheme == "rand-k-hybrid" and change is not None:
        return f"it fits how alike nodes are ({space}) and how little they change ({percent(change)} a round)"
    if "spatial" in scheme:
        restless = (
            ""
            if change is None or change < RESTLESS
            else f"; a memory would not help, they change by {percent(change)} a round"
        )
        return f"the nodes' vectors are alike ({space}){restless}"
    if change is not None and any(word in scheme for word in ("temporal", "diana")):
        return f"vectors change by only {percent(change)} from round to round"
    if scheme == "wangni":
        return "it prefers large entries and sends most values as one bit"
    if scheme == "error-feedback-sign":
        return "entries are of similar size, so that signs tell most of each vector"
    if scheme in ("top-k", "rtop-k", "induced") or "feedback" in scheme:
        return "a few large entries carry most of each vector"
    return (
        f"the nodes' vectors have little in common ({space})" if correlation.ratio < SIMILAR * correlation.nodes else ""
    )


def _balanced_reason(space: str, correlation: VectorCorrelation, change: float | None) -> str:
    """Only what the vectors show: that nodes are similar, and, for a memory, that they change little."""
    reasons = []
    if correlation.ratio >= SIMILAR * correlation.nodes:
        reasons.append(f"balanced draws spread the coordinates evenly over nodes that are similar ({space})")
    if change is not None and change < RESTLESS:
        reasons.append(f"vectors change by only {percent(change)} from round to round")
    return " and ".join(reasons)
