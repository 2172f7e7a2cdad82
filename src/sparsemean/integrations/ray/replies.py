"""What a shard may answer: each reply is checked here before the coordinator uses it.

A shard that computes wrong numbers of the right form cannot be told from one that is right; anything else can, and must
not become part of a mean. Each check returns the reply, or raises ValueError with what was found in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.decoding.summary import Summary
from sparsemean.integrations.ray.calls import MOST, check_acceptance
from sparsemean.integrations.ray.round_end import RoundEnd, Status, check_summary, is_whole
from sparsemean.integrations.ray.usage import Usage
from sparsemean.memory import Nothing
from sparsemean.sampling import Dealt, check_dealt
from sparsemean.server.roster import Acceptance
from sparsemean.state_tree import Tree

NO_OVERFLOW = 1e70  # sums of squares below it have fourth powers that are finite, too, and squares of these


def bounded(run: sm.Run) -> bool:
    """Whether sums and means of this run are always finite, since accepted values and weights are bounded.

    ``Shared`` feeds its own estimate back, which may diverge; functions and members of your own may do anything.
    """
    decoder, memory = run.scheme.decoder, run.scheme.memory
    known = (Nothing, sm.SharedStable, sm.PerNode, sm.Window, sm.Hybrid, sm.Offset)
    if type(memory) not in known or type(decoder) not in (sm.Mean, sm.Spatial):
        return False
    return not callable(getattr(decoder, "weighting", None))


def nothing(reply: object) -> None:
    """The answer to a change."""
    if reply is not None:
        raise ValueError(f"{_named(reply)}, not None")


def sequence_from(least: int) -> Callable[[int, object], int]:
    """Check of the number of the last record in a shard, which is this one or a later one."""

    def check(_: int, reply: object) -> int:
        if not is_whole(reply, least, MOST):
            raise ValueError(f"{_named(reply)}, no record from {least} on")
        return int(reply)  # type: ignore[call-overload, no-any-return]

    return check


def status(reply: object) -> Status:
    """Where the shard stands, as far as that is possible at all."""
    if not isinstance(reply, Status):
        raise ValueError(f"{_named(reply)}, no Status")
    possible = is_whole(reply.round, 0, MOST) and is_whole(reply.sequence, -1, MOST)
    if not (possible and is_whole(reply.before, -1, reply.sequence) and is_whole(reply.node_bytes, 0, MOST)):
        raise ValueError(f"{reply!r:.200}, where no shard can stand")
    return reply


def summary(reply: object, like: Summary, accepted: Mapping[str, Acceptance], finite: bool) -> Summary:
    """What a range adds to the round in which these were accepted."""
    found = check_summary(reply, like)
    weights = np.array([each.weight for each in accepted.values()]).reshape(len(accepted), like.weight.size)
    if not np.array_equal(found.nodes, np.count_nonzero(weights > 0, axis=0)) or np.any(found.class_nodes < 0):
        raise ValueError("a Summary of other nodes than the round has")
    if not np.allclose(found.weight, weights.sum(axis=0), rtol=1e-9, atol=0.0):
        raise ValueError("a Summary of other weights than the nodes of the round have")
    if np.any(found.most < 0) or np.any(found.by_count.counts > len(accepted)):
        raise ValueError("a Summary with negative counts, or of more nodes than came")
    if finite:
        _check_finite(found)
    return found


def _check_finite(found: Summary) -> None:
    energies = np.concatenate([each.ravel() for each in (found.class_squares, found.class_noise, found.repeats)])
    if not np.all(np.isfinite(energies) & (energies >= 0.0)):
        raise ValueError("a Summary whose sums of squares are negative or not finite")
    if not all(np.all(np.isfinite(sums)) for sums in (found.fits, found.products, found.by_count.sums[:2])):
        raise ValueError("a Summary whose sums are not finite")
    moments = [] if found.moments is None else list(vars(found.moments).values())
    small = np.max(energies, initial=0.0) < NO_OVERFLOW
    if small and not (np.all(np.isfinite(moments)) and np.all(np.isfinite(found.by_count.sums))):
        raise ValueError("a Summary whose moments are not finite")


def vector(reply: object, size: int, finite: bool) -> Doubles:
    """One number for each coordinate of a range."""
    if not isinstance(reply, np.ndarray):
        raise ValueError(f"{_named(reply)}, no array")
    if reply.dtype != np.float64 or reply.shape != (size,):
        raise ValueError(f"{_named(reply)}, not float64 ({size},)")
    if finite and not np.all(np.isfinite(reply)):
        raise ValueError("numbers that are not finite")
    return reply


def estimate(reply: object, round: int, nodes: tuple[str, ...], size: int, most: int, finite: bool) -> sm.Estimate:
    """The estimate that a round with these nodes ended with, of a range; ``most`` bounds its counts."""
    if not isinstance(reply, sm.Estimate):
        raise ValueError(f"{_named(reply)}, no Estimate")
    if reply.round != round or reply.nodes != nodes or not is_whole(reply.bytes, 0, MOST):
        raise ValueError(f"an Estimate of other nodes, or of round {reply.round!r}, not {round}")
    vector(reply.mean, size, finite)
    counts = reply.counts
    if not isinstance(counts, np.ndarray) or counts.dtype != np.int32 or counts.shape != (size,):
        raise ValueError(f"an Estimate whose counts are {_named(counts)}, not int32 ({size},)")
    if not np.all((counts >= 0) & (counts <= most)):
        raise ValueError(f"an Estimate whose counts leave 0 to {most}")
    numbers = (reply.error, reply.error_se, reply.rounding, reply.actual_error, *(reply.actual_error_interval or ()))
    if not all(number is None or isinstance(number, float) for number in numbers):
        raise ValueError("an Estimate whose errors are no numbers")
    if reply.correlation is not None and not isinstance(reply.correlation, sm.Correlation):
        raise ValueError(f"an Estimate whose correlation is {_named(reply.correlation)}")
    return reply


def last_estimate(
    reply: object, round: int, nodes: tuple[str, ...], size: int, most: int, finite: bool
) -> sm.Estimate | None:
    """The same, or None after a round that was skipped."""
    return None if reply is None else estimate(reply, round, nodes, size, most, finite)


def ending(reply: object, like: Summary) -> RoundEnd | None:
    """How the last round ended; None before the first."""
    if reply is None:
        return None
    if not isinstance(reply, RoundEnd) or reply.kind not in ("close", "skip"):
        raise ValueError(f"{_named(reply)}, no RoundEnd")
    if not is_whole(reply.after, -1, MOST) or not is_whole(reply.most_nodes, 1, MOST):
        raise ValueError(f"a RoundEnd after record {reply.after!r} with {reply.most_nodes!r} nodes at most")
    check_summary(reply.summary, like)
    return reply


def roll(reply: object, round: int, blocks: int) -> tuple[Tree, list[Acceptance], Dealt | None]:
    """All that is known but for coordinates, who came in the open round, and its terms, if these are fixed."""
    if not isinstance(reply, tuple) or len(reply) != 3 or not isinstance(reply[1], list):
        raise ValueError(f"{_named(reply)}, no roll")
    state, accepted, dealt = reply
    if dealt is not None:
        check_dealt(dealt)
    if not isinstance(state, dict) or state.get("round") != round or isinstance(state["round"], bool):
        raise ValueError(f"a roll that is not of round {round}")
    for each in accepted:
        try:
            check_acceptance(each, round, blocks)
        except sm.PayloadError as wrong:
            raise ValueError(f"a roll with an entry that is none: {wrong}") from None
    if len({each.receipt.node for each in accepted}) < len(accepted):
        raise ValueError("a roll that names a node twice")
    _check_state(state, blocks)
    return state, accepted, dealt


def _check_state(state: dict[str, Any], blocks: int) -> None:
    """The shapes that ``Roster.restore`` and ``Assessment.restore`` takes for granted."""
    known, basis, closed = (state.get(name) for name in ("known", "basis", "closed"))
    if not (isinstance(known, dict) and isinstance(basis, dict) and isinstance(closed, dict)):
        raise ValueError("a roll without what is known of nodes")
    due: list[tuple[Any, type[np.generic], tuple[int, ...]]] = [
        (known.get("weights"), np.float64, (len(known["nodes"]), blocks)),
        (basis.get("numbers"), np.int64, (len(basis["nodes"]),)),
        (closed.get("weights"), np.float64, (len(closed["nodes"]), blocks)),
    ]
    likeness = state.get("likeness")
    if not isinstance(likeness, np.ndarray) or likeness.dtype != np.float64 or likeness.shape != (blocks,):
        raise ValueError(f"a roll with {_named(likeness)} in place of a correlation of each block")
    if np.any(np.isinf(likeness)):  # NaN: not known yet
        raise ValueError("a roll with numbers that are not finite")
    digests = closed.get("digests")
    if not isinstance(digests, list) or len(digests) != len(closed["nodes"]):
        raise ValueError("a roll without the digest of each payload of the last round")
    if closed["nodes"]:
        due.append((closed.get("numbers"), np.int64, (len(closed["nodes"]), 2)))
    for array, kind, shape in due:
        if not isinstance(array, np.ndarray) or array.dtype != kind or array.shape != shape:
            raise ValueError(f"a roll with {_named(array)} in place of {np.dtype(kind)} {shape}")
        if not np.all(np.isfinite(array)):
            raise ValueError("a roll with numbers that are not finite")
    for held in (known, basis, closed):
        if not all(isinstance(node, str) for node in held["nodes"]) or len(set(held["nodes"])) < len(held["nodes"]):
            raise ValueError("a roll whose nodes have no names, or have one twice")


def digest(reply: object) -> str:
    """A digest: some letters."""
    if not isinstance(reply, str) or not reply:
        raise ValueError(f"{_named(reply)}, no digest")
    return reply


def usage(reply: object, lo: int, hi: int) -> Usage:
    """What a shard of [lo, hi) takes."""
    if not isinstance(reply, Usage) or (reply.lo, reply.hi) != (lo, hi):
        raise ValueError(f"{_named(reply)}, no Usage of [{lo}, {hi})")
    if not all(is_whole(number, 0, MOST) for number in (reply.nodes, reply.arrays, reply.peak)):
        raise ValueError(f"{reply!r:.200}")
    return reply


def _named(reply: object) -> str:
    """What it is, in a few words however large it is."""
    if isinstance(reply, np.ndarray):
        return f"an array {reply.dtype} {reply.shape}"
    return "None" if reply is None else f"{type(reply).__name__} {reply!r:.60}"
