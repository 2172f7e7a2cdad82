"""Counters of the open round, which are no part of a server's state, and the report made from them."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping

from sparsemean.errors import SparseMeanError
from sparsemean.results import Estimate
from sparsemean.server.reports import RoundReport
from sparsemean.server.roster import Acceptance

log = logging.getLogger("sparsemean.server")


class Counters:
    """Duplicates and refusals by error class since the round opened."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self.repeated = 0
        self._refused: Counter[str] = Counter()
        self._since = time.monotonic()

    def refuse(self, error: SparseMeanError) -> None:
        log.debug("refused: %s", error)
        with self._lock:
            self._refused[type(error).__name__] += 1

    def report(
        self, round: int, came: Mapping[str, Acceptance], forgotten: int, estimate: Estimate | None, unresolved: int = 0
    ) -> RoundReport:
        """The report of the round that ended; the counters begin anew."""
        with self._lock:
            report = RoundReport(
                round=round,
                skipped=estimate is None,
                nodes=len(came),
                repeated=self.repeated,
                refused=dict(self._refused),
                forgotten=forgotten,
                bytes=sum(accepted.bytes for accepted in came.values()),
                seconds=time.monotonic() - self._since,
                error=estimate.error if estimate else None,
                error_se=estimate.error_se if estimate else None,
                ratio=estimate.correlation.ratio if estimate and estimate.correlation else None,
                unresolved=unresolved,
            )
            self._begin()
            return report
