"""What a train reply has to carry before it may count: a payload, a weight, and metrics like the others'."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from flwr.app import Array, Message, MetricRecord, RecordDict

import sparsemean as sm
from sparsemean.integrations.flower.arrays import Arrays, Parted
from sparsemean.integrations.flower.mod import PAYLOAD, STYPE, WHOLE_PART

# What Flower's simulation puts before the words of every exception.
SIMULATED = "Exception ClientAppException occurred. Message: "


@dataclass(frozen=True)
class TrainReply:
    """One node's reply, read but not yet accepted."""

    node: str
    content: RecordDict
    blob: bytes
    weight: float
    whole: Arrays
    metrics: frozenset[tuple[str, int]]
    """Names of the metrics, and the lengths of those that are lists (−1 for a number)."""


def read_reply(reply: Message, parted: Parted, weighted_by_key: str) -> TrainReply:
    """The parts of a reply, or an error under SparseMeanError that says what is wrong with it."""
    arrays, metrics = reply.content.array_records, reply.content.metric_records
    if len(arrays) != 1 or len(metrics) != 1:
        raise sm.MalformedPayload(
            f"a train reply has one ArrayRecord and one MetricRecord, got {len(arrays)} and {len(metrics)}"
        )
    record, metric = next(iter(arrays.values())), next(iter(metrics.values()))
    _check_numbers(metric)
    weight = metric.get(weighted_by_key)
    if not isinstance(weight, int | float):
        raise sm.MalformedPayload(
            f"its MetricRecord lacks the number {weighted_by_key!r}, by which the mean is weighted"
        )
    whole = parted.read_whole(_bytes(record.get(WHOLE_PART))) if parted.whole else {}
    blob = _bytes(record.get(PAYLOAD))
    return TrainReply(str(reply.metadata.src_node_id), reply.content, blob, float(weight), whole, _shape(metric))


def failure(reason: str | None) -> str:
    """Why a node failed, in one line: of a traceback it is the last that tells.

    >>> failure("<class 'builtins.OSError'>:<'no such file'>")
    'OSError: no such file'
    >>> failure("Traceback (most recent call last):\\n  ...\\nZeroDivisionError: division by zero\\n")
    'ZeroDivisionError: division by zero'
    """
    # Flower writes an exception as its class and its words, which may be a whole traceback.
    words = re.sub(r"<class '(?:[^']*\.)?([^'.]+)'>:<'(.*)'>", r"\1: \2", reason or "", flags=re.DOTALL)
    lines = [line.strip(" :") for line in words.splitlines() if line.strip()]
    return lines[-1].removeprefix(SIMULATED)[:200] if lines else "no reason given"


def common_metrics(replies: Sequence[TrainReply]) -> frozenset[tuple[str, int]]:
    """The metrics that most replies have: what all need, to be averaged."""
    return Counter(reply.metrics for reply in replies).most_common(1)[0][0] if replies else frozenset()


def quality_of(estimate: sm.Estimate, accepted: Sequence[TrainReply], dense_bytes: int) -> dict[str, int | float]:
    """Bytes of the replies that count, how many times as many dense ones would have, and how good the mean is."""
    contents = [reply.content for reply in accepted]
    arrays = sum(record.count_bytes() for content in contents for record in content.array_records.values())
    metrics = sum(record.count_bytes() for content in contents for record in content.metric_records.values())
    found: dict[str, int | float | None] = {
        "bytes-up": arrays + metrics,
        "compression": (len(accepted) * dense_bytes + metrics) / (arrays + metrics),
        "ratio": None if estimate.correlation is None else estimate.correlation.ratio,
        "error": estimate.error,
        "error-se": estimate.error_se,
    }
    return {name: value for name, value in found.items() if value is not None}


def _check_numbers(metric: MetricRecord) -> None:
    """Refuse whole numbers that no float holds: all metrics are averaged, and Python's have no upper end."""
    for name, value in metric.items():
        try:
            for number in value if isinstance(value, list) else [value]:
                float(number)
        except OverflowError:
            raise sm.MalformedPayload(f"its metric {name!r} has a number too large for a float") from None


def _shape(metric: MetricRecord) -> frozenset[tuple[str, int]]:
    return frozenset((name, len(value) if isinstance(value, list) else -1) for name, value in metric.items())


def _bytes(array: Array | None) -> bytes:
    if array is None or array.stype != STYPE:
        raise sm.MalformedPayload("it carries no sparsemean payload; give its ClientApp mods=[sparsemean_mod]")
    return array.data
