"""Check before the first step that all ranks have the same settings: each draws the coordinates of all from its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from sparsemean import InvalidInput

# The older name is deprecated since the newer one exists.
all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


@dataclass(frozen=True)
class Fact:
    """A setting that must be the same on all ranks.

    Parameters
    ----------
    value
        The setting as text. Ranks compare its digest; a message shows the text of the rank that it is raised on.
    remedy
        What the message advises where ranks differ.
    shown
        What the message shows instead of ``value`` where that is too long.
    """

    value: str
    remedy: str = "give State the same arguments on every rank"
    shown: str | None = None


def check_agreement(facts: Mapping[str, Fact], group: dist.ProcessGroup | None, device: torch.device) -> None:
    """Raise InvalidInput on every rank if any two ranks differ in a fact; one collective of 8 bytes per fact.

    Every rank calls it with facts of the same names, in the same order.
    """
    mine = torch.tensor([_digest(fact.value) for fact in facts.values()], device=device)
    everyone = mine.new_empty((dist.get_world_size(group), len(facts)))
    all_gather(everyone.view(-1), mine, group=group)
    others = (everyone != everyone[0]).cpu()
    found = [_difference(name, fact, others[:, at]) for at, (name, fact) in enumerate(facts.items())]
    differences = [difference for difference in found if difference]
    if differences:
        remedies = dict.fromkeys(fact.remedy for fact, told in zip(facts.values(), found, strict=True) if told)
        raise InvalidInput(
            f"the ranks would diverge: they differ in {', '.join(differences)}; {', and '.join(remedies)}"
        )


def _difference(name: str, fact: Fact, differ: Tensor) -> str:
    """Which ranks differ from rank 0 in a fact, and what it is here; empty where none does."""
    ranks = differ.nonzero().flatten().tolist()
    if not ranks:
        return ""
    who = "rank " + ", ".join(map(str, ranks[:8])) + (", …" if len(ranks) > 8 else "")
    return f"{name} (here {fact.value if fact.shown is None else fact.shown}; {who} unlike rank 0)"


def _digest(value: str) -> int:
    return int.from_bytes(hashlib.blake2b(value.encode(), digest_size=8).digest(), "little", signed=True)
