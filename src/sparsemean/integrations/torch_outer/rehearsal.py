"""All workers in one process, one after the other: what a scheme does to training, before any machine is rented."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from sparsemean._types import Floats
from sparsemean.errors import InvalidInput
from sparsemean.integrations.torch_outer.hub import Hub, Member, down_run
from sparsemean.integrations.torch_outer.optimiser import OuterSGD
from sparsemean.integrations.torch_outer.parameters import Parameters
from sparsemean.run import Run
from sparsemean.schemes import Scheme

DILOCO = OuterSGD()


class Rehearsal:
    """Rounds of workers whose modules are all here; the bits are those of as many processes with a ``GroupLink``.

    Parameters
    ----------
    modules : sequence of torch.nn.Module
        A worker's each; all are set to the parameters of the first.
    scheme, down, minimum, seed
        As in ``GroupLink``.
    optimiser : OuterSGD, default OuterSGD(0.7, 0.9)

    Attributes
    ----------
    position : Position
        The broadcast, the outer momentum and the round.
    hub : Hub
        The server's side; ``hub.estimate`` is the last round's.
    sent, received : int
        Bytes of payloads and of means so far, over all workers.

    >>> import sparsemean as sm
    >>> rehearsal = Rehearsal([nn.Linear(3, 2), nn.Linear(3, 2)], sm.named("identity"))
    >>> rehearsal.exchange()
    >>> rehearsal.position.round, rehearsal.sent
    (1, 192)
    """

    def __init__(
        self,
        modules: Sequence[nn.Module],
        scheme: Scheme,
        down: Scheme | None = None,
        optimiser: OuterSGD = DILOCO,
        minimum: int = 1,
        seed: int = 0,
    ) -> None:
        if not modules:
            raise InvalidInput("a rehearsal takes the module of each worker, at least one")
        self.parameters = [Parameters(module) for module in modules]
        self.optimiser = optimiser
        self.position = optimiser.start(self.parameters[0].read())
        run = Run(scheme, self.parameters[0].dim, seed)
        down_again = down_run(run, down)
        self.hub = Hub(run, down_again, minimum)
        self.members = [Member(run, down_again, str(i)) for i in range(len(modules))]
        self.sent = self.received = 0
        for each in self.parameters:
            each.write(self.position.at)

    def exchange(self, absent: Sequence[int] = ()) -> None:
        """Average what all workers did since the last exchange; those who are ``absent`` only hear of it."""
        hub, position, round = self.hub, self.position, self.hub.round
        calls = hub.call([each.client.node for each in self.members])
        for i, (member, parameters) in enumerate(zip(self.members, self.parameters, strict=True)):
            if i not in absent:
                movement: Floats = parameters.read() - parameters.rounded(position.at)
                blob = member.encode(movement, calls[member.client.node])
                member.answered(round, hub.accept(member.client.node, blob))
                self.sent += len(blob)
        frame, _ = hub.close()
        means = [member.hear(round, frame) for member in self.members]
        self.received += len(frame) * len(means)
        self.optimiser.advance(position, means[0])
        for parameters in self.parameters:
            parameters.write(position.at)
