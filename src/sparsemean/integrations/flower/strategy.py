"""The server's side: a strategy that decodes payloads and hands their mean to yours."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from inspect import signature
from logging import getLogger
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

import sparsemean as sm
from sparsemean.codec import reference_tag
from sparsemean.integrations.flower.arrays import WHOLE, Parted, record_of
from sparsemean.integrations.flower.heard import Singles, change, singles
from sparsemean.integrations.flower.inner import check_inner
from sparsemean.integrations.flower.mod import PLAN, REFERENCE, ROUND, RUN
from sparsemean.integrations.flower.mod import WHOLE as WHOLE_PATTERNS
from sparsemean.integrations.flower.privacy import check_no_clipping, check_not_wrapped
from sparsemean.integrations.flower.replies import TrainReply, common_metrics, failure, quality_of, read_reply
from sparsemean.integrations.flower.wrapper import Wrapper
from sparsemean.wire.values import bounded

log = getLogger("flwr.sparsemean")
OF_SERVER = tuple(name for name in signature(sm.Server).parameters if name != "run")


class SparseMean(Wrapper):
    """Wraps a strategy that averages: nodes send payloads, and it is handed one reply with their mean.

    ``whole`` are patterns of array names that are sent as they are, beside the payload. ``journal`` is a folder where
    all that is known of the nodes is kept, so that a new process goes on with it. Other settings are those of
    ``sm.Server``, such as ``clip=`` and ``memory_bytes=``.

    After a round, ``estimate`` is what the server made of it, ``refused`` tells which nodes failed or sent replies that
    it did not take, and why, ``missing`` which nodes were asked and did not answer.

    Flower's differential privacy strategies may neither be wrapped by this one nor wrap it; the former is refused here,
    the latter in ``configure_train``, before anything is sent.
    """

    inner: FedAvg

    def __init__(
        self,
        inner: FedAvg,
        scheme: sm.Scheme,
        *,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        whole: Sequence[str] = WHOLE,
        **settings: Any,
    ) -> None:
        for unknown in sorted(settings.keys() - set(OF_SERVER)):
            raise sm.InvalidInput(f"there is no setting {unknown!r}; known are seed, whole, {', '.join(OF_SERVER)}")
        if isinstance(whole, str):
            raise sm.InvalidInput(f"whole is a list of patterns of array names, such as [{whole!r}]")
        if not isinstance(scheme, sm.Scheme):
            raise sm.InvalidInput(f'scheme is a Scheme, such as named("auto", k=0.05), not {scheme!r}')
        if scheme.node_state:
            raise sm.IncompatibleScheme(
                f"{scheme.encoder!r} keeps state at the node, and Flower's nodes lose theirs when they restart; "
                'use auto with node="broadcast", or a scheme that remembers at the server, such as rand-k-hybrid'
            )
        self.inner = check_inner(inner)
        self.scheme, self.seed, self.journal, self.whole = scheme, seed, journal, tuple(whole)
        self._settings = settings if journal is None else {**settings, "journal": os.fspath(journal)}
        self.server: sm.Server | None = None
        self.estimate: sm.Estimate | None = None
        self.refused: dict[str, str] = {}
        self.missing: tuple[str, ...] = ()
        self._asked: set[str] = set()
        self._sent: tuple[int, Singles] | None = None  # the round and the model of the last messages

    def summary(self) -> None:
        """Log the settings, then those of the inner strategy."""
        log.info("\t├──> SparseMean: %s, seed %s, journal %s", self.scheme, self.seed, self.journal)
        self.inner.summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The inner strategy's messages, with what nodes need to encode their replies in the config.

        Raises InvalidInput where a differential privacy strategy of Flower wraps this one, or the config asks nodes to
        clip as such a one does.
        """
        check_not_wrapped()
        check_no_clipping(config)
        self._parted, self._dense_bytes = Parted(arrays, self.whole), arrays.count_bytes()
        server = self._open_server(self._parted)
        # Nodes need no decoder and no memory: payloads are bound to the encoder alone.
        at_nodes = sm.Scheme(self.scheme.encoder, values=self.scheme.values)
        run = sm.Run(at_nodes, server.run.dim, server.run.seed, server.run.blocks)
        request: dict[str, Any] = {RUN: run.to_json(), ROUND: server.round, WHOLE_PATTERNS: list(self.whole)}
        model = singles(self._parted) if run.relative else None
        if model is not None:
            self._refer(server, model)
            reference = server.reference  # a node that has another one, or none, sends without it
            request[REFERENCE] = 0 if reference is None else reference_tag(reference)
        asked = ConfigRecord({**config, **request})
        messages = list(self.inner.configure_train(server_round, arrays, asked, grid))
        for message in messages:
            if any(record is not arrays and record != arrays for record in message.content.array_records.values()):
                raise sm.InvalidInput(
                    f"{type(self.inner).__name__} sends nodes other arrays than the strategy's; "
                    "a mean of differences needs one model that all start from"
                )
        self._asked = {str(message.metadata.dst_node_id) for message in messages}
        if model is not None and messages:
            self._sent = server.round, model
        return self._with_plans(messages, server)

    def _refer(self, server: sm.Server, model: Singles) -> None:
        """Make what the model changed by since the last round the reference of the open one.

        Left as it is where this process sent no model in the last round, or has sent one in this round already.
        """
        if self._sent is not None and self._sent[0] == server.round - 1:
            reference = change(model, self._sent[1])
            if bounded(reference):
                server.refer_to(reference)

    def _with_plans(self, messages: list[Message], server: sm.Server) -> list[Message]:
        """The messages, each with the plan of its node, where the scheme needs plans."""
        if server.run.planned and messages:  # where nobody is asked, the round is still to be dealt
            plans = server.plans(sorted(self._asked))
            for message in messages:  # which all have the same content: each gets records of its own
                plan = plans[str(message.metadata.dst_node_id)]
                records = message.content.config_records
                own = {name: ConfigRecord({**record, PLAN: plan}) for name, record in records.items() if RUN in record}
                message.content = RecordDict({**message.content, **own})
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The inner strategy's arrays after the estimated mean; None, so that they stay, where no reply could count."""
        if self.server is None or not self._asked:
            return self.inner.aggregate_train(server_round, replies)
        accepted = self._take(list(replies), self.server)
        metrics: dict[str, int | float] = {
            "round": self.server.round,
            "nodes": len(accepted),
            "refused": len(self.refused),
            "missing": len(self.missing),
        }
        try:
            self.estimate = estimate = self.server.close_round()
        except sm.TooFewNodes:
            self.estimate = None
            self.server.skip_round()
            why = f"all replies have {self.inner.weighted_by_key} 0" if accepted else "no reply counts, see above why"
            log.warning("sparsemean: the arrays stay as they were in round %d: %s", server_round, why)
            return None, _prefixed(metrics)
        arrays, averaged = self._through_inner(server_round, accepted, estimate)
        if arrays is not None and self.server.run.relative:  # already, so that a process that goes on here has it
            self._refer(self.server, singles(Parted(arrays, self.whole)))
        metrics.update(quality_of(estimate, accepted, self._dense_bytes))
        log.info("sparsemean: %s", ", ".join(f"{name} {value:.6g}" for name, value in metrics.items()))
        return arrays, MetricRecord({**(averaged or {}), **_prefixed(metrics)})

    def close(self) -> None:
        """Close the journal, so that another process may go on with it."""
        if self.server is not None:
            self.server.close()

    def _open_server(self, parted: Parted) -> sm.Server:
        """The one server of this strategy, made when the model is first seen."""
        run = sm.Run(self.scheme, parted.layers.dim, self.seed, parted.layers.blocks)
        if self.server is None:
            self.server = sm.Server(run, **self._settings)
            with suppress(sm.TooFewNodes):
                # Of a process that died: nodes will train anew, so what they had sent is learnt, and the round is over.
                self.server.close_round()
        elif self.server.run != run:
            raise sm.InvalidInput("the model's arrays changed their shapes or types; use a new SparseMean for it")
        return self.server

    def _take(self, replies: Sequence[Message], server: sm.Server) -> list[TrainReply]:
        """The replies that count; the others are logged with their node, and the round goes on without them."""
        self.refused = {}
        answered: set[str] = set()
        read: list[TrainReply] = []
        for reply in replies:
            node = str(reply.metadata.src_node_id)
            if reply.has_error():
                answered.add(node)
                self._take_failure(node, failure(reply.error.reason))
                continue
            try:
                if node not in self._asked - answered:
                    raise sm.ForeignPayload("it was not asked in this round, or answered twice")
                answered.add(node)
                read.append(read_reply(reply, self._parted, self.inner.weighted_by_key))
            except sm.PayloadError as error:
                self._refuse(node, f"{type(error).__name__}: {error}")
        common, accepted = common_metrics(read), list[TrainReply]()
        for one in read:
            try:
                if one.metrics != common:
                    raise sm.MalformedPayload("its metrics are not those that most nodes sent")
                server.accept(one.node, one.blob, one.weight)
                accepted.append(one)
            except (sm.PayloadError, sm.InvalidInput) as error:
                self._refuse(one.node, f"{type(error).__name__}: {error}")
        self.missing = tuple(sorted(self._asked - answered))
        if self.missing:
            log.warning("sparsemean: no answer from %s", ", ".join(self.missing))
        return accepted

    def _take_failure(self, source: str, why: str) -> None:
        if source in self._asked:
            self._refuse(source, f"failed: {why}")
        else:  # Of a node that is gone Flower's SuperLink tells, without naming it; it is among the missing.
            log.warning("sparsemean: instead of a reply: %s", why)

    def _refuse(self, node: str, why: str) -> None:
        self.refused[node] = why
        log.warning("sparsemean: refused the reply of node %s: %s", node, why)

    def _through_inner(
        self, server_round: int, accepted: Sequence[TrainReply], estimate: sm.Estimate
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """What the inner strategy makes of one reply that carries the mean, and of the metrics of all."""
        inner, parted = self.inner, self._parted
        weights = [reply.weight for reply in accepted]
        whole = parted.mean_of_whole([reply.whole for reply in accepted], weights)
        content = RecordDict(
            {
                inner.arrayrecord_key: record_of(parted.moved(estimate.mean, whole)),
                "metrics": MetricRecord({inner.weighted_by_key: sum(weights)}),
            }
        )
        average, contents = inner.train_metrics_aggr_fn, [reply.content for reply in accepted]
        inner.train_metrics_aggr_fn = lambda _, key: average(contents, key)  # which shall see every node's metrics
        try:
            arrays, metrics = inner.aggregate_train(server_round, [Message(content, 0, MessageType.TRAIN)])
        finally:
            inner.train_metrics_aggr_fn = average
        if arrays is None:
            return None, metrics
        counters = {name: array for name, array in whole.items() if array.dtype.kind != "f"}
        made = {name: array.numpy() for name, array in arrays.items()}
        return record_of(parted.typed({**made, **counters})), metrics


def _prefixed(metrics: dict[str, int | float]) -> MetricRecord:
    return MetricRecord({f"sparsemean-{name}": value for name, value in metrics.items()})
