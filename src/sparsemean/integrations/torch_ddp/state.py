"""The hook's settings, and all that it keeps between steps."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from sparsemean import InvalidInput, Run, Scheme
from sparsemean.integrations.torch_ddp.agreement import Fact, check_agreement
from sparsemean.integrations.torch_ddp.compatibility import check_model, check_scheme, sent_whole, sum_is_enough
from sparsemean.integrations.torch_ddp.exchange import (
    Exchange,
    GatheredPayloads,
    GatheredWhole,
    ReducedSample,
    ReducedWhole,
)
from sparsemean.integrations.torch_ddp.host import HostPayloads, serves
from sparsemean.integrations.torch_ddp.kinds import tensor_values
from sparsemean.kernels.twin import numba_installed

SMALL = 1024  # entries below which a tensor (a bias, a norm) is not worth compressing
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integer types by their size in bytes."""


class State:
    """Settings and memory of the hook: ``model.register_comm_hook(state, hook)``, with the same arguments on all ranks.

    In the first step after it was made, bound or loaded, ranks compare their arguments, parameters, step and memory,
    once, by a collective of 88 bytes. Where they differ, ``backward()`` raises InvalidInput on every rank.

    Parameters
    ----------
    scheme : Scheme
        RandK or Identity, with the decoders and memories that ``docs/torch-ddp.md`` lists.
    model : DistributedDataParallel
        The model that the hook is registered with. Its parameters are known by their names.
    seed : int, default 0
        Coordinates and dither of each tensor are drawn with a seed made from this and from its name.
    start_iter : int, default 2
        How many steps at the beginning are dense.
    small : int, default 1024
        Tensors of fewer entries are sent whole.
    process_group : ProcessGroup, optional
        Another group of the same ranks as the model's, by default the model's own.

    Attributes
    ----------
    step : int
        Number of steps synchronised so far, which is the round that coordinates are drawn for.
    bytes : int
        Size of all tensors that this rank handed to a collective in the last step. The comparison of ranks is not
        counted, here and below.
    dense_bytes : int
        What ``bytes`` would have been without compression.
    total_bytes : int
        The sum of ``bytes`` over all steps so far.
    """

    def __init__(
        self,
        scheme: Scheme,
        model: torch.nn.Module,
        *,
        seed: int = 0,
        start_iter: int = 2,
        small: int = SMALL,
        process_group: dist.ProcessGroup | None = None,
    ) -> None:
        check_scheme(scheme)
        for name, number in (("seed", seed), ("start_iter", start_iter), ("small", small)):
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise InvalidInput(f"{name} is a whole number, 0 or more, got {number!r}")
        self.scheme, self.seed, self.start_iter, self.small = scheme, seed, start_iter, small
        self.reduces = sum_is_enough(scheme)
        self.ranks = 0
        self.step = self.bytes = self.dense_bytes = self.total_bytes = 0
        self._open_bytes = self._open_dense = 0
        self._exchanges: dict[str, Exchange] = {}
        self.bind(model, process_group)

    def bind(self, model: torch.nn.Module, process_group: dist.ProcessGroup | None = None) -> None:
        """Use the parameters of this model, matched by name, from now on; an unpickled State has to be bound first."""
        if not dist.is_initialized():
            raise InvalidInput("there is no process group yet; call torch.distributed.init_process_group first")
        parallel = check_model(model)
        group = parallel.process_group if process_group is None else process_group
        if dist.get_process_group_ranks(group) != dist.get_process_group_ranks(parallel.process_group):
            raise InvalidInput("process_group has other ranks than the model's; leave it out, or give both the same")
        self.process_group: dist.ProcessGroup | None = group
        n = dist.get_world_size(group)
        if self._exchanges and n != self.ranks:
            raise InvalidInput(f"the State was made for {self.ranks} ranks, not {n}; make a new one")
        self.ranks, self.rank = n, dist.get_rank(group)
        self.agreed = False
        self._names: dict[int, str] = {}
        self._devices: dict[str, str] = {}
        self._parameters: list[str] = []
        for name, parameter in parallel.module.named_parameters():
            if parameter.requires_grad:
                self._devices[name] = parameter.device.type
                self._names[id(parameter)] = name
                self._parameters.append(f"{name} {tuple(parameter.shape)} {parameter.dtype} {parameter.device.type}")
                self._exchanges[name] = self._exchanges.get(name) or self._new_exchange(name, parameter)

    def _new_exchange(self, name: str, parameter: Tensor) -> Exchange:
        if sent_whole(self.scheme, parameter.numel(), self.small):
            summed_in = tensor_values(self.scheme.values).dtype
            return ReducedWhole(self.ranks, summed_in) if self.reduces else GatheredWhole(parameter.dtype)
        run = self._run(name, parameter.numel())
        if self.reduces:
            return ReducedSample(run, self.ranks, parameter.device)
        if parameter.device.type == "cpu" and serves(run):
            return HostPayloads(run, self.ranks)
        return GatheredPayloads(run, self.ranks, parameter.device)

    def _run(self, name: str, size: int) -> Run:
        seed = hashlib.blake2b(f"{self.seed} {name}".encode(), digest_size=8).digest()
        return Run(self.scheme, size, int.from_bytes(seed, "little"))

    def run(self, name: str) -> Run | None:
        """The Run that compresses the parameter of this name; None where it is sent whole."""
        exchange = self._exchanges.get(name)
        if exchange is None:
            raise InvalidInput(f"the model has no parameter {name!r} with a gradient")
        return exchange.run

    def exchange(self, parameter: Tensor) -> Exchange:
        """How the gradient of this parameter is sent and averaged."""
        name = self._names.get(id(parameter))
        if name is None:
            raise InvalidInput(
                "a bucket holds a parameter that the State does not know; make it as State(scheme, model) with the "
                "model the hook is registered with, and bind(model) a State that was unpickled"
            )
        if parameter.device.type != self._devices[name]:
            raise InvalidInput(
                f"{name!r} was on {self._devices[name]} when the State was made, and now is on "
                f"{parameter.device.type}; move the model first, then make DistributedDataParallel and State"
            )
        return self._exchanges[name]

    def count(self, sent: int, dense: int, last: bool) -> None:
        """Count the bytes of a bucket handed to a collective; the last bucket ends the step."""
        self._open_bytes += sent
        self._open_dense += dense
        if last:
            self.bytes, self.dense_bytes = self._open_bytes, self._open_dense
            self.total_bytes += self._open_bytes
            self._open_bytes = self._open_dense = 0
            self.step += 1

    def check_agreement(self, device: torch.device) -> None:
        """Raise InvalidInput where ranks differ in settings, parameters, step or memory; a collective of all ranks."""
        same_model, same_checkpoint = "make the same model on every rank", "load one checkpoint on every rank, or none"
        part_of = {name: Fact(repr(getattr(self.scheme, name))) for name in ("encoder", "decoder", "memory", "values")}
        numbers = {name: Fact(str(getattr(self, name))) for name in ("seed", "start_iter", "small")}
        parameters = Fact("\n".join(self._parameters), same_model, f"{len(self._parameters)} tensors")
        step = Fact(str(self.step), same_checkpoint)
        remembered = Fact(self._remembered(), same_checkpoint, f"that of step {self.step}")
        kernels = Fact("compiled" if numba_installed() else "of NumPy", "install numba on every rank, or on none")
        rest = {"parameters": parameters, "kernels": kernels, "step": step, "what is remembered": remembered}
        check_agreement({**part_of, **numbers, **rest}, self.process_group, device)
        self.agreed = True

    def _remembered(self) -> str:
        """A checksum of all memories; a sum of integers, which does not depend on the order of the terms."""
        if self.step == 0:
            return "nothing"
        states = {(name, key): tensor for name, each in self._exchanges.items() for key, tensor in each.state.items()}
        sums = {key: tensor.view(BITS[tensor.element_size()]).sum(dtype=torch.int64) for key, tensor in states.items()}
        return str({key: int(found) for key, found in sums.items()})

    def metrics(self) -> dict[str, float | None]:
        """Bytes, estimated error and correlation of the last step; reads a few numbers back from the device.

        ``error`` estimates E‖mean − truth‖² over all tensors, ``correlation`` R2/R1, between −1 and n − 1 up to chance.
        Both are None before the first compressed step, and where coordinates are shared, which does not reveal them.
        ``error_is_bound`` says that ``error`` estimates an upper bound, since of some tensor no two ranks send the same
        coordinate (a balanced draw with n·k ≤ d); ``correlation`` is then None.
        """
        known = [each.quality for each in self._exchanges.values() if each.quality is not None]
        bound = any(each.bound for each in self._exchanges.values() if each.quality is not None)
        error = correlation = None
        if known:
            error, r1, r2 = torch.stack(known).sum(dim=0).tolist()
            correlation = None if bound else r2 / r1 if r1 > 0 else 0.0
        return {
            "bytes": self.bytes,
            "dense_bytes": self.dense_bytes,
            "total_bytes": self.total_bytes,
            "error": error,
            "error_is_bound": bound,
            "correlation": correlation,
        }

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to resume bit for bit; the same on all ranks, so one may save it for all.

        Tensors are not copied, as in ``torch.nn.Module.state_dict``.
        """
        tensors = {name: each.state for name, each in self._exchanges.items() if each.state}
        return {
            "setting": self._setting(),
            "step": self.step,
            "total_bytes": self.total_bytes,
            "tensors": {name: dict(state) for name, state in tensors.items()},
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned, with the same scheme, model and number of ranks."""
        if saved.get("setting") != self._setting():
            raise InvalidInput(
                f"the checkpoint was made with {saved.get('setting')}, this State with {self._setting()}; "
                "make the State with the same arguments, or start afresh"
            )
        mine = {name: each.state for name, each in self._exchanges.items() if each.state}
        shapes, found = _shapes(mine), _shapes(saved["tensors"])
        of_cpus = {key for key in shapes.keys() ^ found.keys() if key[1] == "sums"}  # made anew, or not needed
        shapes, found = ({key: of[key] for key in of.keys() - of_cpus} for of in (shapes, found))
        if shapes != found:
            wrong = sorted(str(key) for key in shapes.items() ^ found.items())
            raise InvalidInput(
                f"the checkpoint is of another model or number of ranks ({wrong[0]}); restore it there, or start afresh"
            )
        for name in mine:
            self._exchanges[name].restore(saved["tensors"][name])
        self.step, self.total_bytes = int(saved["step"]), int(saved["total_bytes"])
        self.agreed = False

    def _setting(self) -> str:
        return f"{self.scheme!r}, seed={self.seed}, small={self.small}"

    def __getstate__(self) -> dict[str, Any]:
        """All attributes except those of this process: its group, its rank and the identities of its parameters."""
        own = ("process_group", "rank", "agreed", "_names", "_devices", "_parameters")
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.process_group, self.rank, self.agreed = None, -1, False
        self._names, self._devices, self._parameters = {}, {}, []


def _shapes(tensors: dict[str, dict[str, Tensor]]) -> dict[tuple[str, str], tuple[int, ...]]:
    return {(name, key): tuple(tensor.shape) for name, state in tensors.items() for key, tensor in state.items()}
