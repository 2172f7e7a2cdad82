"""Which schemes and models the hook supports, and what it refuses, with the remedy."""

from __future__ import annotations

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from sparsemean import (
    Hybrid,
    Identity,
    IncompatibleScheme,
    InvalidInput,
    Mean,
    PerNode,
    RandK,
    Scheme,
    SharedStable,
    Spatial,
)
from sparsemean.encoders import Stateful
from sparsemean.memory import Nothing
from sparsemean.wire.values import LONG, PEERS

SHARDED = (
    "is sharded by FSDP (FullyShardedDataParallel or fully_shard), whose ranks each keep a part of a gradient, while "
    "the hook averages whole ones; where the net fits on every rank use DistributedDataParallel(net), else FSDP "
    "without the hook and with gradients of 16 bits: mixed_precision=MixedPrecision(reduce_dtype=torch.bfloat16), or "
    "with fully_shard mp_policy=MixedPrecisionPolicy(reduce_dtype=torch.bfloat16); between groups of ranks, "
    "sparsemean.integrations.torch_outer averages fully_shard modules every few steps"
)
"""Why a model is refused, and what its users can do."""


def check_scheme(scheme: Scheme) -> None:
    """Raise IncompatibleScheme where the hook does not support a scheme.

    >>> from sparsemean import named
    >>> check_scheme(named("top-k", k=0.1))
    Traceback (most recent call last):
    ...
    sparsemean.errors.IncompatibleScheme: the DDP hook serves RandK and Identity, ... not TopK(k=0.1); use RandK
    >>> check_scheme(named("rand-k", k=0.1, values="qsgd-4"))
    Traceback (most recent call last):
    ...
    sparsemean.errors.IncompatibleScheme: the DDP hook has no qsgd-4 values; use eden-b, such as eden-3, or float32
    """
    if not isinstance(scheme, Scheme):
        raise InvalidInput(f'a State takes a Scheme, such as named("rand-k-spatial-avg", k=0.05), not {scheme!r}')
    if isinstance(scheme.encoder, Stateful):
        raise IncompatibleScheme(
            f"the DDP hook keeps no state of a rank's own, which {scheme.encoder!r} needs; "
            "use RandK with memory=PerNode(), which every rank keeps alike"
        )
    if type(scheme.encoder) not in (RandK, Identity):
        raise IncompatibleScheme(
            "the DDP hook serves RandK and Identity, whose coordinates every rank can draw again, "
            f"not {scheme.encoder!r}; use RandK"
        )
    if scheme.values in (*PEERS, *LONG):
        raise IncompatibleScheme(f"the DDP hook has no {scheme.values} values; use eden-b, such as eden-3, or float32")
    if scheme.encoder.facts.epochs:
        raise IncompatibleScheme(
            "the DDP hook has no server to plan epochs; use RandK(k, draw=Balanced()), whose slots are the ranks"
        )
    if type(scheme.decoder) not in (Mean, Spatial):
        raise IncompatibleScheme(f"the DDP hook decodes with Mean or Spatial, not {scheme.decoder!r}")
    if isinstance(scheme.decoder, Spatial) and callable(scheme.decoder.weighting):
        raise IncompatibleScheme("a checkpoint cannot tell one function from another; give Spatial(table=…)")
    if type(scheme.memory) not in (Nothing, PerNode, Hybrid, SharedStable):
        raise IncompatibleScheme(
            f"the DDP hook remembers with PerNode, Hybrid or SharedStable, not {scheme.memory!r}; use SharedStable()"
        )
    if isinstance(scheme.memory, PerNode | Hybrid) and scheme.memory.forget_after is not None:
        raise IncompatibleScheme("ranks are never absent, so the DDP hook does not forget; drop forget_after")


def check_model(model: nn.Module) -> DistributedDataParallel:
    """Return the model, or raise InvalidInput where the hook cannot be registered with it.

    >>> check_model(nn.Linear(2, 3))
    Traceback (most recent call last):
    ...
    sparsemean.errors.InvalidInput: a State takes the DistributedDataParallel model that the hook is registered with,
    itself and not what is in it or around it, got Linear; use State(scheme, DistributedDataParallel(net))
    """
    sharded = isinstance(model, nn.Module) and any(map(_is_sharded, model.modules()))
    if sharded:
        raise InvalidInput(f"the model {SHARDED}")
    if not isinstance(model, DistributedDataParallel):
        raise InvalidInput(
            "a State takes the DistributedDataParallel model that the hook is registered with, itself and not what is "
            f"in it or around it, got {type(model).__name__}; use State(scheme, DistributedDataParallel(net))"
        )
    ignored = set(model.parameters_to_ignore)
    for name, part in model.module.named_modules():
        weight = f"{name}.weight" if name else "weight"
        if isinstance(part, nn.Embedding | nn.EmbeddingBag) and part.sparse and weight not in ignored:
            raise InvalidInput(
                f"the gradient of {weight!r} is sparse, with other rows on every rank, and the hook averages dense "
                "ones; make the embedding with sparse=False"
            )
    return model


def _is_sharded(part: nn.Module) -> bool:
    """Whether FSDP shards a module; by the names of its classes, since older versions of torch lack one of them."""
    return any(base.__name__ in ("FullyShardedDataParallel", "FSDPModule") for base in type(part).__mro__)


def sum_is_enough(scheme: Scheme) -> bool:
    """Whether the mean follows from the sum of what ranks send, so that an all-reduce will do."""
    shared = isinstance(scheme.encoder, RandK) and scheme.encoder.shared
    return shared and isinstance(scheme.memory, Nothing) and scheme.values in ("float32", "float64")


def sent_whole(scheme: Scheme, size: int, small: int) -> bool:
    """Whether a tensor of ``size`` entries is not compressed: it has fewer than ``small``, or all would be sent anyway.

    >>> from sparsemean import named
    >>> sent_whole(named("rand-k", k=0.1), 1000, 1024), sent_whole(named("rand-k", k=2000), 2000, 1024)
    (True, True)
    """
    k = scheme.encoder.k if isinstance(scheme.encoder, RandK) else 0.0
    return size < small or (isinstance(k, int) and k >= size)
