"""The communication hook. DDP reads its annotations, so no __future__ import may turn them into strings here."""

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

from sparsemean import InvalidInput
from sparsemean.integrations.torch_ddp.agreement import all_gather as _all_gather
from sparsemean.integrations.torch_ddp.compatibility import SHARDED
from sparsemean.integrations.torch_ddp.state import State
from sparsemean.kernels.parallel_map import at_most


def hook(
    state: State,
    bucket: dist.GradBucket,  # type: ignore[name-defined]
    *of_fsdp: Tensor,
) -> torch.futures.Future[torch.Tensor]:
    """Average a bucket of gradients over all ranks: one collective, then the decoding of what it brought.

    Before the very first bucket, ranks check that their settings agree. FSDP gives its hooks a tensor, and may give
    another; both are refused.
    """
    if of_fsdp or isinstance(bucket, Tensor):
        raise InvalidInput(f"the model that the hook is registered with {SHARDED}")
    whole: Tensor = bucket.buffer()
    if not state.agreed:
        state.check_agreement(whole.device)
    step, last = state.step, bucket.is_last()
    if step < state.start_iter:
        state.count(whole.nbytes, whole.nbytes, last)
        return allreduce_hook(state.process_group, bucket)  # type: ignore[arg-type]  # None is the default group
    gradients = [gradient.view(-1) for gradient in bucket.gradients()]
    exchanges = [state.exchange(parameter) for parameter in bucket.parameters()]
    with at_most(torch.get_num_threads()):
        parts = [exchange.sent(mine, state.rank, step) for exchange, mine in zip(exchanges, gradients, strict=True)]
    sent = torch.cat(parts)
    state.count(sent.nbytes, whole.nbytes, last)
    if state.reduces:
        received = sent
        work = dist.all_reduce(sent, group=state.process_group, async_op=True)
    else:
        received = sent.new_empty((state.ranks, sent.numel()))
        work = _all_gather(received.view(-1), sent, group=state.process_group, async_op=True)

    def decode(done: torch.futures.Future[list[Tensor]]) -> Tensor:
        done.value()  # raises what went wrong
        pieces = torch.split(received, [part.numel() for part in parts], dim=-1)
        with at_most(torch.get_num_threads()):
            for exchange, mine, piece in zip(exchanges, gradients, pieces, strict=True):
                exchange.write_mean(piece, step, mine)
        return whole

    averaged: torch.futures.Future[Tensor] = work.get_future().then(decode)
    return averaged
