"""HttpNode: a node whose server is behind HTTP. It needs numpy and the standard library alone."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt

from sparsemean.client import Client
from sparsemean.encoders import Encoder
from sparsemean.errors import ForeignPayload, InvalidInput, MalformedPayload, OutOfStep, WrongPlan, WrongRound
from sparsemean.integrations.http.broadcast import heard_in
from sparsemean.integrations.http.files import replace_file
from sparsemean.integrations.http.link import Link
from sparsemean.integrations.http.messages import (
    LONGEST_WAIT,
    MEAN,
    PAYLOAD,
    ROUND,
    RUN,
    WEIGHT,
    Heard,
    OpenRound,
    receipt_of,
)
from sparsemean.results import Receipt
from sparsemean.run import Run

PAUSE = 1.0
"""Seconds between two questions to a service that answers at once, as while it is paused."""

log = logging.getLogger("sparsemean.http")


class HttpNode:
    """This node's vectors to a service, and the means back. Not for several threads at once.

    It waits for the service where that is away or busy, and goes on when it is back: with longer and longer pauses of
    random length, or after as long as the service asks for. Payloads may arrive twice without harm.

    Parameters
    ----------
    server : str
        Where the service is, such as "https://means.example:8443".
    token : str, optional
        What ``sparsemean token add`` printed. Without, a client certificate says who this is.
    encoder : Encoder, optional
        As in ``Client``.
    state : path, optional
        A file in which what an encoder keeps survives this process; it is made when there is something to keep.
    weight : float, optional
        Of this node's vectors, where the operator lets nodes say it.
    authority : path, optional
        Certificates in PEM of those who may sign the service's, by default those that the system trusts.
    certificate, key : path, optional
        This node's client certificate and its key, in PEM.
    patience : float, default 600
        Seconds without an answer after which ``Unreachable`` is raised.
    insecure : bool, default False
        Speak without TLS to a server that is not on this machine, where others can read the token.

    Attributes
    ----------
    sent_bytes, heard_bytes : int
        Of payloads that the service took, and of means that it sent, so far.
    """

    def __init__(
        self,
        server: str,
        token: str | None = None,
        encoder: Encoder | None = None,
        state: Path | str | None = None,
        weight: float | None = None,
        authority: Path | str | None = None,
        certificate: Path | str | None = None,
        key: Path | str | None = None,
        patience: float = 600.0,
        insecure: bool = False,
    ) -> None:
        self._link = Link(server, token, authority, certificate, key, patience, insecure)
        self._encoder = encoder
        self._state = None if state is None else Path(state)
        self._weight = weight
        self.sent_bytes = self.heard_bytes = 0
        self._heard: Heard | None = None
        self._sent: int | None = None  # the last round whose receipt came here

    def __repr__(self) -> str:
        return f"<HttpNode: {self._link.origin}>"

    def __enter__(self) -> HttpNode:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the next call makes a new one."""
        self._link.close()

    @cached_property
    def _told(self) -> tuple[str, Run, Run]:
        """What the service calls this node, its run, and the run of its broadcasts."""
        told = self._link.ask("GET", RUN).json()
        try:
            node, runs = told["node"], [Run.from_json(json.dumps(told[name])) for name in ("run", "broadcast")]
        except (KeyError, TypeError):
            raise MalformedPayload(f"{self._link.origin} is no service of ours; check the address") from None
        return str(node), runs[0], runs[1]

    @property
    def name(self) -> str:
        """What the service calls this node: what its credential is for."""
        return self._told[0]

    @property
    def run(self) -> Run:
        """What nodes and service agree on; it is asked for once."""
        return self._told[1]

    @cached_property
    def client(self) -> Client:
        """What makes the payloads; it goes on where the file ``state`` says."""
        if self._state is not None and self._state.exists():
            try:
                return Client.restore(self.run, self.name, self._state.read_bytes())
            except InvalidInput as wrong:
                raise InvalidInput(f"{self._state}: {wrong}; remove the file to begin afresh") from None
        return Client(self.run, self.name, self._encoder)

    def round(self, after: int | None = None) -> OpenRound:
        """The open round; waits while it is this one, and while the operator has paused rounds."""
        while True:
            began = time.monotonic()
            query = urlencode({"wait": LONGEST_WAIT, **({} if after is None else {"after": after})})
            answer = self._link.ask("GET", f"{ROUND}?{query}", seconds=LONGEST_WAIT + 30)
            told = OpenRound.from_json(answer.json())
            if told.run != self.run.digest:
                raise ForeignPayload("the service has another run now; start this node anew")
            if told.number != after and not told.paused:
                return told
            time.sleep(max(0.0, PAUSE - (time.monotonic() - began)))

    def rounds(self) -> Iterator[OpenRound]:
        """Each open round in which the service has nothing of this node yet, for ever; some may be missed."""
        after: int | None = None
        while True:
            told = self.round(after)
            after = told.number
            if not told.came:
                yield told

    def send(self, vector: npt.ArrayLike, round: int | None = None) -> Receipt:
        """Send a vector, and return the service's receipt for it.

        Parameters
        ----------
        vector : (d,) array
        round : int, optional
            The round that it is for: ``WrongRound`` is raised if that is over. By default the open one, or the next if
            the service has something of this node in that already.
        """
        after = None
        while True:
            told = self.round(after)
            if round is not None and told.number < round:
                after = told.number
            elif round is not None and told.number > round:
                raise WrongRound(f"round {round} is over; the open round is {told.number}")
            elif round is None and (told.came or told.number == self._sent):
                after = told.number
            else:
                try:
                    return self._send(vector, told)
                except (WrongRound, WrongPlan):  # it ended meanwhile, or a service without a journal began anew
                    log.info("round %d has gone on; asking again", told.number)
                except OutOfStep:  # one of the two lost what they shared: both begin afresh
                    log.warning("round %d: out of step with the service; this node's state begins anew", told.number)
                    self.client.reset()

    def _send(self, vector: npt.ArrayLike, told: OpenRound) -> Receipt:
        reference = None
        if told.reference:
            heard = self._mean()
            reference = heard.mean if heard is not None and heard.etag == told.reference else None
        plan = told.plan if self.run.planned else None
        blob = self.client.encode(vector, told.number, plan, reference, told.sketch)
        headers = {} if self._weight is None else {WEIGHT: repr(float(self._weight))}
        receipt = receipt_of(self._link.ask("PUT", PAYLOAD, blob, headers).json().get("receipt"))
        self.client.delivered(receipt)
        if self.run.scheme.node_state and self._state is not None:
            replace_file(self._state, self.client.save())
        self._sent = receipt.round
        self.sent_bytes += len(blob)
        return receipt

    def mean(self, round: int | None = None) -> Heard | None:
        """The last mean that the service broadcast; None before the first.

        Parameters
        ----------
        round : int, optional
            Wait until this round has ended. If it ended without a mean, what is returned is of an earlier one.
        """
        if round is not None:
            told = self.round()
            while told.number <= round:
                told = self.round(told.number)
        return self._mean()

    def _mean(self) -> Heard | None:
        held = self._heard
        headers = {} if held is None else {"If-None-Match": held.etag}
        answer = self._link.ask("GET", MEAN, headers=headers, also=(304, 404))
        if answer.status == 200:
            self._heard = self._read(answer.body)
        return None if answer.status == 404 else self._heard

    def mean_of(self, round: int) -> Heard | None:
        """The mean of a round that is over, as it was broadcast; None where it ended without one.

        For who adds means up, as training does, and missed some. The service keeps as many as it has room for
        (``serve --past-means``); ``NoLongerKept`` is raised for those before.
        """
        if self._heard is not None and self._heard.round == round:
            return self._heard
        answer = self._link.ask("GET", f"{MEAN}?{urlencode({'round': round})}", also=(204,))
        if answer.status == 204:
            return None
        heard = self._read(answer.body)
        if heard.round != round:
            raise MalformedPayload(f"the service sent the mean of round {heard.round} for that of round {round}")
        if self._heard is None or self._heard.round < round:
            self._heard = heard
        return heard

    def _read(self, frame: bytes) -> Heard:
        self.heard_bytes += len(frame)
        return heard_in(self._told[2], frame)

    def restore(self, saved: bytes) -> None:
        """Make payloads from what ``client.save()`` returned on: an encoder's state as it was then."""
        self.client = Client.restore(self.run, self.name, saved)

    def play(self, vectors: npt.ArrayLike, repeat: bool = False) -> Iterator[tuple[OpenRound, Receipt]]:
        """Send rows of an array as rounds open, and yield what was sent.

        Parameters
        ----------
        vectors : (d,) or (rounds, d) array
            Row t is for round t; rounds that this node misses are left out. One vector is for the open round.
        repeat : bool, default False
            With one vector: send it in every round, for ever.
        """
        rows = np.asarray(vectors)
        if rows.ndim not in (1, 2) or rows.shape[-1] != self.run.dim:
            raise InvalidInput(
                f"vectors are of {self.run.dim} coordinates, one or a row for each round, not {rows.shape}"
            )
        if rows.ndim == 1 and not repeat:
            receipt = self.send(rows)
            yield OpenRound(receipt.round, self.run.digest, came=True), receipt
            return
        if rows.ndim == 2 and repeat:
            raise InvalidInput("several rows are for several rounds; give one vector to repeat it")
        for told in self.rounds():
            if rows.ndim == 2 and told.number >= len(rows):
                return
            try:
                yield told, self.send(rows if rows.ndim == 1 else rows[told.number], told.number)
            except WrongRound:
                log.warning("round %d ended before this node's vector came", told.number)
            if rows.ndim == 2 and told.number == len(rows) - 1:
                return
