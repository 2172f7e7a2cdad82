"""State: what the hook knows between steps."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from sparsemean import InvalidInput, Run, Scheme
from sparsemean.integrations.torch_ddp import served
from sparsemean.integrations.torch_ddp.agreement import Fact, check_agreement
from sparsemean.integrations.torch_ddp.tensors import Gathered, GatheredWhole, Summed, SummedWhole, Travelling
from sparsemean.integrations.torch_ddp.values import KINDS

SMALL = 1024  # entries below which a tensor (a bias, a norm) is not worth compressing
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Whole numbers by the size of what has the same bits."""


class State:
    """What ``hook`` is registered with, ``model.register_comm_hook(state, hook)``: made alike on all ranks.

    ``step`` counts the steps that were synchronised and is the round that coordinates are drawn for. ``bytes`` is the
    size of all tensors that this rank handed to a collective in the last step, ``dense_bytes`` what it would have been
    without compression, and ``total_bytes`` the sum of all steps so far; the comparison of ranks below is not counted.

    In the first step after it was made, bound or loaded, ranks compare their arguments, parameters, step and memory,
    once, by a collective of 80 bytes. Where they differ, ``backward()`` raises InvalidInput on every rank.

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
        Tensors of fewer entries go whole.
    process_group : ProcessGroup, optional
        Another group of the same ranks as the model's, by default the model's own.
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
        served.check(scheme)
        for name, number in (("seed", seed), ("start_iter", start_iter), ("small", small)):
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise InvalidInput(f"{name} is a whole number, 0 or more, got {number!r}")
        self.scheme, self.seed, self.start_iter, self.small = scheme, seed, start_iter, small
        self.reduces = served.sum_is_enough(scheme)
        self.ranks = 0
        self.step = self.bytes = self.dense_bytes = self.total_bytes = 0
        self._open_bytes = self._open_dense = 0
        self._tensors: dict[str, Travelling] = {}
        self.bind(model, process_group)

    def bind(self, model: torch.nn.Module, process_group: dist.ProcessGroup | None = None) -> None:
        """Take the parameters of this model for those of the same names; a State that was unpickled needs it."""
        if not dist.is_initialized():
            raise InvalidInput("there is no process group yet; call torch.distributed.init_process_group first")
        parallel = served.check_model(model)
        group = parallel.process_group if process_group is None else process_group
        if dist.get_process_group_ranks(group) != dist.get_process_group_ranks(parallel.process_group):
            raise InvalidInput("process_group has other ranks than the model's; leave it out, or give both the same")
        self.process_group: dist.ProcessGroup | None = group
        n = dist.get_world_size(group)
        if self._tensors and n != self.ranks:
            raise InvalidInput(f"the State was made for {self.ranks} ranks, not {n}; make a new one")
        self.ranks, self.rank = n, dist.get_rank(group)
        self.agreed = False
        self._names: dict[int, str] = {}
        self._parameters: list[str] = []
        for name, parameter in parallel.module.named_parameters():
            if parameter.requires_grad:
                self._names[id(parameter)] = name
                self._parameters.append(f"{name} {tuple(parameter.shape)} {parameter.dtype}")
                self._tensors[name] = self._tensors.get(name) or self._travelling(name, parameter)

    def _travelling(self, name: str, parameter: Tensor) -> Travelling:
        if served.goes_whole(self.scheme, parameter.numel(), self.small):
            summed_in = KINDS[self.scheme.values].dtype
            return SummedWhole(self.ranks, summed_in) if self.reduces else GatheredWhole(parameter.dtype)
        run = self._run(name, parameter.numel())
        kind = Summed if self.reduces else Gathered
        return kind(run, self.ranks, parameter.device)

    def _run(self, name: str, size: int) -> Run:
        seed = hashlib.blake2b(f"{self.seed} {name}".encode(), digest_size=8).digest()
        return Run(self.scheme, size, int.from_bytes(seed, "little"))

    def run(self, name: str) -> Run | None:
        """The Run by which the parameter of this name travels; None where it goes whole."""
        tensor = self._tensors.get(name)
        if tensor is None:
            raise InvalidInput(f"the model has no parameter {name!r} with a gradient")
        return tensor.run

    def travelling(self, parameter: Tensor) -> Travelling:
        """How this parameter travels."""
        name = self._names.get(id(parameter))
        if name is None:
            raise InvalidInput(
                "a bucket holds a parameter that the State does not know; make it as State(scheme, model) with the "
                "model the hook is registered with, and bind(model) a State that was unpickled"
            )
        return self._tensors[name]

    def count(self, sent: int, dense: int, last: bool) -> None:
        """Note the bytes handed to a collective; the last bucket ends the step."""
        self._open_bytes += sent
        self._open_dense += dense
        if last:
            self.bytes, self.dense_bytes = self._open_bytes, self._open_dense
            self.total_bytes += self._open_bytes
            self._open_bytes = self._open_dense = 0
            self.step += 1

    def check_agreement(self, device: torch.device) -> None:
        """Raise InvalidInput where ranks differ in what they must have alike; every rank calls it in the same step."""
        same_model, same_checkpoint = "make the same model on every rank", "load one checkpoint on every rank, or none"
        part_of = {name: Fact(repr(getattr(self.scheme, name))) for name in ("encoder", "decoder", "memory", "values")}
        numbers = {name: Fact(str(getattr(self, name))) for name in ("seed", "start_iter", "small")}
        parameters = Fact("\n".join(self._parameters), same_model, f"{len(self._parameters)} tensors")
        step = Fact(str(self.step), same_checkpoint)
        remembered = Fact(self._remembered(), same_checkpoint, f"that of step {self.step}")
        rest = {"parameters": parameters, "step": step, "what is remembered": remembered}
        check_agreement({**part_of, **numbers, **rest}, self.process_group, device)
        self.agreed = True

    def _remembered(self) -> str:
        """A checksum of all memories; a sum of whole numbers, which does not depend on the order of the terms."""
        if self.step == 0:
            return "nothing"
        states = {(name, key): kept for name, tensor in self._tensors.items() for key, kept in tensor.state.items()}
        sums = {key: kept.view(BITS[kept.element_size()]).sum(dtype=torch.int64) for key, kept in states.items()}
        return str({key: int(found) for key, found in sums.items()})

    def metrics(self) -> dict[str, float | None]:
        """What is known of the last step; reads a few numbers back from the device.

        ``error`` estimates E‖mean − truth‖² over all tensors, ``correlation`` R2/R1, between −1 and n − 1 up to chance.
        Both are None where no compressed step was, or where the scheme does not tell (shared coordinates).
        """
        known = [tensor.quality for tensor in self._tensors.values() if tensor.quality is not None]
        error = correlation = None
        if known:
            error, r1, r2 = torch.stack(known).sum(dim=0).tolist()
            correlation = r2 / r1 if r1 > 0 else 0.0
        return {
            "bytes": self.bytes,
            "dense_bytes": self.dense_bytes,
            "total_bytes": self.total_bytes,
            "error": error,
            "correlation": correlation,
        }

    def state_dict(self) -> dict[str, Any]:
        """All that a later run needs to go on bit for bit; the same on all ranks, so one may write it for all.

        Tensors are not copied, as in ``torch.nn.Module.state_dict``.
        """
        tensors = {name: tensor.state for name, tensor in self._tensors.items() if tensor.state}
        return {
            "setting": self._setting(),
            "step": self.step,
            "total_bytes": self.total_bytes,
            "tensors": {name: dict(state) for name, state in tensors.items()},
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on from where ``state_dict`` was taken, with the same scheme, model and number of ranks."""
        if saved.get("setting") != self._setting():
            raise InvalidInput(
                f"the checkpoint was made with {saved.get('setting')}, this State with {self._setting()}; "
                "make the State with the same arguments, or start afresh"
            )
        mine = {name: tensor.state for name, tensor in self._tensors.items() if tensor.state}
        shapes, found = _shapes(mine), _shapes(saved["tensors"])
        if shapes != found:
            wrong = sorted(str(key) for key in shapes.items() ^ found.items())
            raise InvalidInput(
                f"the checkpoint is of another model or number of ranks ({wrong[0]}); restore it there, or start afresh"
            )
        for name, state in mine.items():
            for key, tensor in state.items():
                tensor.copy_(saved["tensors"][name][key])
        self.step, self.total_bytes = int(saved["step"]), int(saved["total_bytes"])
        self.agreed = False

    def _setting(self) -> str:
        return f"{self.scheme!r}, seed={self.seed}, small={self.small}"

    def __getstate__(self) -> dict[str, Any]:
        """All but what belongs to this process: its group, its rank, and the identities of its parameters."""
        own = ("process_group", "rank", "agreed", "_names", "_parameters")
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.process_group, self.rank, self.agreed, self._names, self._parameters = None, -1, False, {}, []


def _shapes(tensors: dict[str, dict[str, Tensor]]) -> dict[tuple[str, str], tuple[int, ...]]:
    return {(name, key): tuple(tensor.shape) for name, state in tensors.items() for key, tensor in state.items()}
