"""OuterMean: every H local steps, a worker's movement through a link, and the mean applied to the broadcast."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from sparsemean._types import Floats
from sparsemean.errors import InvalidInput, NonFiniteValues
from sparsemean.integrations.torch_outer.link import Link, LinkBroken
from sparsemean.integrations.torch_outer.optimiser import OuterSGD, Position
from sparsemean.integrations.torch_outer.parameters import Parameters
from sparsemean.integrations.torch_outer.tensors import WRONG, array_in
from sparsemean.run import Run
from sparsemean.schemes import Scheme
from sparsemean.theory.arguments import whole

Result = TypeVar("Result")
DILOCO = OuterSGD()


class OuterMean:
    """Averages a model with those of other workers every H local steps (LocalSGD, DiLoCo).

    Make it after the module is wrapped or sharded, call ``join`` before training and ``step`` after every step of the
    local optimiser. The parameters that are trained are averaged; buffers and the local optimiser's state stay the
    worker's own. Where several ranks hold the module (DDP, ``fully_shard``), all of them make one and call the same
    methods: together they are one worker, whose first rank has the link.

    Parameters
    ----------
    module : torch.nn.Module
    link : Link or None
        To the other workers: ``GroupLink`` or ``HttpLink``. None at ranks that do not lead.
    every : int
        H. It may differ from worker to worker, where some are slower.
    optimiser : OuterSGD, default OuterSGD(0.7, 0.9)
        How the mean moves the broadcast.

    Attributes
    ----------
    position : Position
        The broadcast, the outer momentum, the round, and the local steps since; arrays are empty at ranks that do not
        lead.
    """

    def __init__(self, module: nn.Module, link: Link | None, every: int, optimiser: OuterSGD = DILOCO) -> None:
        if not isinstance(optimiser, OuterSGD):
            raise InvalidInput(
                f"the outer optimiser is an OuterSGD(rate, momentum), got {type(optimiser).__name__}; the one of the "
                "local steps stays yours, and is not given here"
            )
        self.every, self.optimiser = whole(every, "every", 1), optimiser
        self.parameters = Parameters(module)
        self.position = optimiser.start(self._checked(self.parameters.read()))
        self.joined = False
        self._link: Link | None = None
        if self.parameters.leads:
            if link is None:
                raise InvalidInput("the rank that leads the module needs a link: GroupLink(…) or HttpLink(…)")
            self._link = link
            link.open(
                self.position, _settings(self.parameters, optimiser), _seed(self.parameters, optimiser, self.position)
            )

    @property
    def link(self) -> Link:
        """The link of the rank that leads."""
        if self._link is None:
            raise InvalidInput("this rank does not lead the module, so it has no link")
        return self._link

    @property
    def round(self) -> int:
        """The exchange that comes next."""
        return self.position.round

    def join(self) -> bool:
        """Begin, or go on, where the others are; returns whether the parameters were set to what these have.

        Every worker calls it before its first step, and once more after ``load_state_dict`` or with another group. A
        worker whose broadcast is that of the others keeps its parameters, and so its local steps.
        """
        changed = self._led(lambda: self.link.join(self.position, self.optimiser))
        position = self.position
        found, position.round, position.step = self.parameters.tell(bool(changed), position.round, position.step)
        if found:
            self.parameters.write(position.at)
        self.joined = True
        return bool(found)

    def step(self) -> bool:
        """Count a local step, and exchange after every H of them; returns whether it did."""
        if not self.joined:
            raise InvalidInput("call join() before training, so that all workers begin with the same parameters")
        self.position.step += 1
        if self.position.step < self.every:
            return False
        self.exchange()
        return True

    def exchange(self) -> None:
        """Send how far the parameters moved since the broadcast, and set them to the new one.

        With NaN or infinity in the parameters this worker is left out of the round, and ``NonFiniteValues`` is raised:
        they stay as they are until ``reset``. With ``LinkBroken`` nothing has changed: connect anew, ``join``, and call
        it again.
        """
        parameters, position = self.parameters, self.position
        movement = parameters.read()
        wrong = ""
        if parameters.leads:
            movement -= parameters.rounded(position.at)
            finite = np.isfinite(movement)
            if not finite.all():
                wrong = parameters.name_at(int(np.argmin(finite)))
        given = None if wrong else movement
        means = self._led(lambda: self.link.exchange(position.round, given))
        for mean in means or ():
            self.optimiser.advance(position, mean)
        position.round, position.step, failed = parameters.tell(position.round, position.step, bool(wrong))
        if failed:
            raise NonFiniteValues(
                f"parameter {wrong or 'of this worker'!r} holds NaN or infinity, so the worker was left out of the "
                "round; reset() sets its parameters to the broadcast. Look at the local learning rate"
            )
        parameters.write(position.at)

    def reset(self) -> None:
        """Set the parameters to the broadcast: what was trained since is dropped."""
        self.parameters.write(self.position.at)
        self.position.step = 0

    def state_dict(self) -> dict[str, Any]:
        """What has to be kept beside the checkpoint of module and local optimiser, for training to go on to the bit.

        Each worker keeps its own; it is that of the link too, such as the server's state at rank 0 of a ``GroupLink``.
        """
        position = self.position
        return {
            "version": 1,
            "round": position.round,
            "step": position.step,
            "at": torch.from_numpy(position.at.copy()),
            "velocity": torch.from_numpy(position.velocity.copy()),
            "link": None if self._link is None else self._link.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what ``state_dict`` returned; the module's parameters come from the module's own checkpoint.

        Call ``join`` after it.
        """
        position = self.position
        try:
            version, round, step = (whole(state[name], name, 0) for name in ("version", "round", "step"))
            at, velocity = (array_in(state[name], getattr(position, name).size) for name in ("at", "velocity"))
            link = state["link"]
        except (KeyError, TypeError) as error:
            raise InvalidInput(f"{WRONG}: {error} is missing") from None
        if version != 1 or at is None or velocity is None or (link is None) != (self._link is None):
            raise InvalidInput(f"{WRONG} of this worker; each worker loads what it saved")
        if self._link is not None:
            self._link.load_state_dict(link)
        self.position = Position(round, step, at, velocity)
        self.joined = False

    def _checked(self, vector: Floats) -> Floats:
        if not np.isfinite(vector).all():
            name = self.parameters.name_at(int(np.argmin(np.isfinite(vector))))
            raise NonFiniteValues(f"parameter {name!r} holds NaN or infinity; begin with numbers")
        return vector

    def _led(self, work: Callable[[], Result]) -> Result | None:
        """Do this at the rank that leads; where it fails there, the others of its module raise too."""
        if not self.parameters.leads:
            if self.parameters.tell(0)[0]:
                raise LinkBroken("the rank that leads this module could not exchange; its own error says why")
            return None
        try:
            done = work()
        except BaseException:
            self.parameters.tell(1)
            raise
        self.parameters.tell(0)
        return done


def run_of(module: nn.Module, scheme: Scheme, optimiser: OuterSGD = DILOCO) -> Run:
    """The run of workers that begin with this module, for ``sparsemean serve``: its seed tells them from others.

    >>> import sparsemean as sm
    >>> run_of(nn.Linear(3, 2), sm.named("identity")).dim
    8
    """
    parameters = Parameters(module)
    at = parameters.read()
    if not parameters.leads:
        raise InvalidInput("the rank that leads the module makes the run")
    return Run(scheme, at.size, _seed(parameters, optimiser, optimiser.start(at)))


def _settings(parameters: Parameters, optimiser: OuterSGD) -> bytes:
    return hashlib.blake2b(f"{optimiser!r}\n{parameters.outline}".encode(), digest_size=8).digest()


def _seed(parameters: Parameters, optimiser: OuterSGD, start: Position) -> int:
    told = hashlib.blake2b(_settings(parameters, optimiser) + start.digest(), digest_size=8)
    return int.from_bytes(told.digest(), "little")
