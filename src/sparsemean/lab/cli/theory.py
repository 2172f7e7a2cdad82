"""``sparsemean theory``: exact errors without any data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console

from sparsemean import theory
from sparsemean.encoders.size import checked, count
from sparsemean.errors import InvalidInput
from sparsemean.lab.cli.output import print_json, print_table
from sparsemean.lab.numbers import terminal_number


def theory_command(
    nodes: Annotated[int, typer.Option("--nodes", "-n", help="How many nodes.")],
    dim: Annotated[int, typer.Option("--dim", "-d", help="Length of the vectors.")],
    k: Annotated[str, typer.Option("--k", "-k", help="Coordinates a node sends: 100, 0.1 or 10%.")],
    ratio: Annotated[
        float,
        typer.Option(help="How alike the vectors are: R2/R1, 0 where they have nothing in common, n - 1 where equal."),
    ] = 0.0,
    error: Annotated[
        float | None, typer.Option(help="An NMSE you want: adds the k that each scheme needs for it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Predict the error of rand-k and its spatial decoders by the paper's formulas, without any data.

    The error is relative to the vectors' mean squared length (NMSE), for vectors of one length. The temporal schemes
    have rand-k's error, times the share of each vector's squared length that changed since it was last sent.
    """
    low, high = theory.ratio_range(nodes)
    if not low <= ratio <= high:
        raise InvalidInput(f"the ratio R2/R1 of {nodes} vectors lies between {low:g} and {high:g}, got {ratio:g}")
    sent = _count(k, dim)
    families: dict[str, theory.FixedWeighting] = {
        "rand-k": "one",
        "rand-k-spatial-max": "max",
        "rand-k-spatial-avg": "avg",
        "rand-k-spatial-opt": ratio,
    }
    rows = [_row(name, T, nodes, dim, sent, ratio, error) for name, T in families.items()]
    if as_json:
        print_json({"nodes": nodes, "dim": dim, "k": sent, "ratio": ratio, "schemes": [asdict(row) for row in rows]})
        return
    columns = ["scheme", "NMSE", "feedback"] + ([] if error is None else [f"k for NMSE {error:g}"])
    cells = [
        [row.scheme, terminal_number(row.nmse), terminal_number(row.feedback), str(row.k_for_error)] for row in rows
    ]
    print_table(columns, [line[: len(columns)] for line in cells])
    Console().print(
        "Feedback: which part of its own error a memory that all nodes share takes over into the next round; from 1 on "
        "it diverges.",
        highlight=False,
    )


@dataclass(frozen=True)
class Prediction:
    """The exact error of one scheme, its feedback factor with a shared memory, and the k for the wanted error."""

    scheme: str
    nmse: float
    feedback: float
    k_for_error: int | None


def _row(
    name: str, T: theory.FixedWeighting, nodes: int, dim: int, sent: int, ratio: float, error: float | None
) -> Prediction:
    r1, r2, share = float(nodes), ratio * nodes, sent / dim
    needed = None if error is None else _needed(error, r1, r2, nodes, dim, T)
    return Prediction(
        name, theory.spatial_mse(r1, r2, nodes, share, T), theory.feedback_factor(T, nodes, share), needed
    )


def _count(k: str, dim: int) -> int:
    try:
        share = float(k.removesuffix("%")) / 100 if k.endswith("%") else float(k) if "." in k else None
        size: int | float = dim if share == 1.0 else int(k) if share is None else share
    except ValueError:
        raise InvalidInput(f"{k!r} is not a number of coordinates; write 100, 0.1 or 10%") from None
    return count(checked(size), dim)


def _needed(error: float, r1: float, r2: float, nodes: int, dim: int, T: theory.FixedWeighting) -> int:
    """The smallest k whose exact error is at most the wanted one; the share itself may lie between two of them."""
    k = min(dim, max(1, round(theory.share_for_error(error, r1, r2, nodes, T) * dim)))
    while k < dim and theory.spatial_mse(r1, r2, nodes, k / dim, T) > error:
        k += 1
    return k
