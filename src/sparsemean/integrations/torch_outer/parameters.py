"""A module's trainable parameters as one vector: of a plain module, one in DDP, or one that FSDP2 has sharded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.tensor import DTensor, Replicate
from torch.nn.parallel import DistributedDataParallel

from sparsemean._types import Floats
from sparsemean.errors import InvalidInput

EXACT = (torch.float32, torch.float64)
"""Types that hold every float32."""


class _Place(NamedTuple):
    name: str
    shape: torch.Size
    start: int
    stop: int


class Parameters:
    """Where each trainable parameter stands in a vector of float32, in the order in which the module names them.

    A module that several ranks hold together (DDP, ``fully_shard``) is one worker: its first rank *leads*, and has the
    vector. Parameters are gathered and spread one at a time, so that no rank but that one ever holds more than one
    whole parameter of a sharded module. Buffers are left alone: they stay each worker's own.

    Parameters
    ----------
    module : torch.nn.Module

    Attributes
    ----------
    dim : int
        Length of the vector.
    group : ProcessGroup or None
        The ranks that hold the module together.
    leads : bool
        Whether this rank has the vector.
    """

    def __init__(self, module: nn.Module) -> None:
        if not isinstance(module, nn.Module):
            raise InvalidInput(f"OuterMean takes a torch.nn.Module, not {type(module).__name__}")
        if any(isinstance(each, FullyShardedDataParallel) for each in module.modules()):
            raise InvalidInput("FullyShardedDataParallel hides its parameters; shard with fully_shard instead")
        self._module = module
        self._places: list[_Place] = []
        self.dim, meshes = 0, []
        for name, parameter in self._named():
            if not parameter.dtype.is_floating_point or parameter.is_meta:
                raise InvalidInput(
                    f"parameter {name!r} is {parameter.dtype} on {parameter.device}; there is a mean of real floating "
                    "numbers alone, of parameters that have values: freeze it (requires_grad_(False)), or load it first"
                )
            self._places.append(_Place(name, parameter.shape, self.dim, self.dim + parameter.numel()))
            self.dim += parameter.numel()
            if isinstance(parameter, DTensor):
                meshes.append(parameter.device_mesh)
        if not self.dim:
            raise InvalidInput("the module has no parameter that is trained, so there is nothing to average")
        self.group = self._group(meshes)
        self.leads = self.group is None or dist.get_rank(self.group) == 0

    def _group(self, meshes: list[Any]) -> dist.ProcessGroup | None:
        if meshes:
            if any(mesh != meshes[0] for mesh in meshes) or meshes[0].ndim != 1:
                raise InvalidInput("parameters are sharded over one mesh of one dimension; others are not supported")
            group: dist.ProcessGroup = meshes[0].get_group()
            return group
        return self._module.process_group if isinstance(self._module, DistributedDataParallel) else None

    def _named(self) -> Iterator[tuple[str, nn.Parameter]]:
        module = self._module.module if isinstance(self._module, DistributedDataParallel) else self._module
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                yield name.replace("_orig_mod.", ""), parameter

    def _now(self) -> Iterator[tuple[_Place, nn.Parameter]]:
        """Each place with the parameter that the module has there by now."""
        named = dict(self._named())
        if [(name, each.shape) for name, each in named.items()] != [(at.name, at.shape) for at in self._places]:
            raise InvalidInput(
                "the module has other trainable parameters than OuterMean was made for; freeze or add them before, and "
                "make a new one"
            )
        return zip(self._places, named.values(), strict=True)

    @property
    def outline(self) -> str:
        """Names and shapes, which all workers have in common."""
        return "\n".join(f"{at.name} {tuple(at.shape)}" for at in self._places)

    def name_at(self, coordinate: int) -> str:
        """The parameter that a coordinate belongs to."""
        return next(at.name for at in self._places if coordinate < at.stop)

    @torch.no_grad()
    def read(self) -> Floats:
        """The parameters as they are; empty where this rank does not lead. A collective of the group."""
        vector: Floats = np.empty(self.dim if self.leads else 0, np.float32)
        into = torch.from_numpy(vector)
        for at, parameter in self._now():
            whole = parameter.full_tensor() if isinstance(parameter, DTensor) else parameter
            if self.leads:
                into[at.start : at.stop].view(at.shape).copy_(whole)
        return vector

    @torch.no_grad()
    def write(self, vector: Floats) -> None:
        """Set the parameters to the leading rank's vector. A collective of the group."""
        for at, parameter in self._now():
            whole = torch.from_numpy(vector[at.start : at.stop]).view(at.shape) if self.leads else None
            held = parameter.to_local() if isinstance(parameter, DTensor) else parameter
            held.copy_(self._mine(parameter, at, whole))

    def _mine(self, parameter: nn.Parameter, at: _Place, whole: Tensor | None) -> Tensor:
        """What this rank holds of a parameter, of which the leading rank has all."""
        if self.group is None:
            assert whole is not None
            return whole
        spread = torch.empty(at.shape, dtype=torch.float32, device=parameter.device)
        if whole is not None:
            spread.copy_(whole)
        dist.broadcast(spread, dist.get_global_rank(self.group, 0), group=self.group)
        if not isinstance(parameter, DTensor):
            return spread
        everywhere = DTensor.from_local(spread, parameter.device_mesh, [Replicate()], run_check=False)
        return everywhere.redistribute(placements=parameter.placements).to_local()

    def rounded(self, vector: Floats) -> Floats:
        """What the parameters hold once a vector is written: not all of it where they are of fewer bits."""
        coarse = [(at, parameter.dtype) for at, parameter in self._now() if parameter.dtype not in EXACT]
        if not coarse:
            return vector
        held = vector.copy()
        for at, dtype in coarse:
            here = torch.from_numpy(held[at.start : at.stop])
            here.copy_(here.to(dtype))
        return held

    def tell(self, *numbers: int) -> tuple[int, ...]:
        """The leading rank's numbers, at every rank of the group."""
        if self.group is None:
            return numbers
        told = torch.tensor(numbers, dtype=torch.int64, device=next(self._module.parameters()).device)
        dist.broadcast(told, dist.get_global_rank(self.group, 0), group=self.group)
        return tuple(told.tolist())
