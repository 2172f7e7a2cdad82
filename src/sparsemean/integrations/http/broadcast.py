"""The mean on its way back to the nodes: a frame of a run of its own, which sends whole vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsemean import codec
from sparsemean._names import ValueName
from sparsemean._types import Floats
from sparsemean.client import Client
from sparsemean.encoders import Identity
from sparsemean.errors import NonFiniteValues
from sparsemean.integrations.http.messages import Heard, etag_of
from sparsemean.results import Estimate
from sparsemean.run import Run
from sparsemean.schemes import Scheme

SENDER = "broadcast"


@dataclass(frozen=True, slots=True)
class Broadcast:
    """A frame, and the mean that whoever reads it finds: service and nodes have the same to the bit."""

    frame: bytes
    heard: Heard


def broadcast_run(run: Run, values: ValueName) -> Run:
    """The run of the frames in which means of this run travel, with values of this kind."""
    return Run(Scheme(Identity(), values=values), run.dim, run.seed)


def broadcast_of(run: Run, estimate: Estimate) -> Broadcast:
    """An estimate's mean as a frame of the broadcast's run. The same estimate gives the same bytes."""
    with np.errstate(over="ignore"):
        frame = Client(run, SENDER).encode(estimate.mean, estimate.round)
    return Broadcast(frame, heard_in(run, frame))


def heard_in(run: Run, frame: bytes) -> Heard:
    """The mean in a frame of the broadcast's run; ``PayloadError`` where it is none."""
    header, body = codec.open_frame(run, SENDER, frame)
    payload = codec.read_payload(run, SENDER, header, body)
    assert payload is not None  # only lazy nodes say "unchanged"
    mean: Floats = payload.parts[0].values.astype(np.float32)
    if not np.isfinite(mean).all():
        raise NonFiniteValues("the mean that was broadcast holds NaN or infinity")
    return Heard(header.round, mean, etag_of(frame))
