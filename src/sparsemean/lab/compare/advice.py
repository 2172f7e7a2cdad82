"""One sentence for people: which scheme, and why."""

from __future__ import annotations

import math

from sparsemean.lab.compare.budget import WHOLE_VECTORS
from sparsemean.lab.compare.comparison import Comparison, Result
from sparsemean.lab.compare.likeness import Likeness

ORACLE = "rand-k-spatial-opt"


def advice(comparison: Comparison) -> str:
    """The scheme to use on vectors like these, with the reason; an unbiased one beside it where the best is biased."""
    able = [result for result in comparison.results if _within(result, comparison) and math.isfinite(result.nmse)]
    if not able:
        return "Nothing here compresses these vectors within the budget; send them whole, or give a larger budget."
    best = able[0]
    plain = next((result for result in able if result.scheme == "rand-k"), None)
    gain = f", {plain.nmse / best.nmse:.3g} times less than rand-k" if plain and 0 < best.nmse < plain.nmse else ""
    sentence = f"Use {best.scheme}: relative error {best.nmse:.3g} at {best.bytes_per_node:.0f} bytes per node{gain}"
    sentence += f", because {_reason(best.scheme, comparison.likeness)}."
    if not best.unbiased:
        unbiased = next((result for result in able if result.unbiased), None)
        if unbiased:
            sentence += f" It is biased; the best unbiased one is {unbiased.scheme} ({unbiased.nmse:.3g})."
    if best.nmse >= 1.0:
        sentence += " Even so the error is larger than the vectors themselves: raise the budget."
    return sentence


def _within(result: Result, comparison: Comparison) -> bool:
    """Schemes that send whole vectors are no compression; the one that is told the true correlation is no choice."""
    if result.scheme in (*WHOLE_VECTORS, ORACLE):
        return False
    return comparison.budget.bytes is None or result.bytes_per_node <= comparison.budget.bytes


def _reason(scheme: str, likeness: Likeness) -> str:
    space = f"R2/R1 is {likeness.ratio:.3g} of at most {likeness.nodes - 1}"
    time = "" if likeness.change is None else f"vectors change by {likeness.change:.0%} from round to round"
    if "spatial" in scheme:
        restless = f" and {time}" if likeness.change is not None and likeness.change > 0.5 else ""
        return f"the nodes' vectors are alike ({space}){restless}"
    if any(word in scheme for word in ("temporal", "diana", "lag")):
        return f"{time or 'each node stays close to its past'} ({space})"
    if scheme == "wangni":
        return f"it prefers large entries and sends most values as one bit ({space})"
    if scheme in ("top-k", "rtop-k", "induced") or "feedback" in scheme:
        return f"a few large entries carry most of each vector ({space})"
    return f"the nodes' vectors have little in common ({space})"
