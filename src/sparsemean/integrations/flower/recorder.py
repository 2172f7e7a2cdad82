"""Your strategy as it is, and the nodes' updates of a few rounds in a file, to choose a scheme by."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from logging import getLogger

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from sparsemean._types import Floats
from sparsemean.errors import InvalidInput, SparseMeanError
from sparsemean.integrations.flower.arrays import WHOLE, Parted
from sparsemean.integrations.flower.strategy import SparseMean
from sparsemean.integrations.flower.wrapper import Wrapper

log = getLogger("flwr.sparsemean")


class Recorder(Wrapper):
    """Wraps a strategy and writes what each node changed, (rounds, nodes, weights), for ``sparsemean compare``.

    Nodes need no mod, and training goes on as without it. A round is left out where other nodes answered than in the
    first that was recorded, or an update cannot be read; the log says so.

    Parameters
    ----------
    inner
        The strategy that does the work.
    path
        A ``.npy`` file, written anew after each recorded round. Rows are in the order of node ids.
    rounds : int, default 5
        How many to record. They are kept in memory, 4 bytes for each weight and node.
    whole
        Patterns of array names that ``SparseMean`` would send whole; they are not recorded.
    """

    def __init__(
        self, inner: Strategy, path: str | os.PathLike[str], rounds: int = 5, whole: Sequence[str] = WHOLE
    ) -> None:
        if isinstance(inner, SparseMean):
            raise InvalidInput("Recorder records updates as nodes send them without SparseMean; wrap your own strategy")
        self.inner, self.path, self.rounds, self.whole = inner, path, rounds, tuple(whole)
        self._nodes: tuple[int, ...] = ()
        self._recorded: list[Floats] = []

    def summary(self) -> None:
        """Log the file, then the settings of the inner strategy."""
        log.info("\t├──> Recorder: the updates of %d rounds, into %s", self.rounds, self.path)
        self.inner.summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """As the inner strategy does."""
        self._parted = Parted(arrays, self.whole)
        return self.inner.configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """As the inner strategy does, after the replies are recorded."""
        came = list(replies)
        if len(self._recorded) < self.rounds:
            self._record(server_round, [reply for reply in came if not reply.has_error()])
        return self.inner.aggregate_train(server_round, came)

    def _record(self, server_round: int, replies: Sequence[Message]) -> None:
        answers = {reply.metadata.src_node_id: reply.content.array_records.values() for reply in replies}
        nodes = tuple(sorted(answers))
        if not nodes or self._nodes not in ((), nodes):
            log.warning("sparsemean: round %d is not recorded: other nodes answered than before", server_round)
            return
        try:
            updates = [self._parted.difference(next(iter(answers[node]))) for node in nodes]
        except (SparseMeanError, KeyError, StopIteration) as error:
            log.warning("sparsemean: round %d is not recorded: %s: %s", server_round, type(error).__name__, error)
            return
        self._nodes = nodes
        self._recorded.append(np.array(updates, np.float32))
        np.save(self.path, np.array(self._recorded))
