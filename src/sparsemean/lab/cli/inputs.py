"""The vectors that a command is about, and the schemes, kinds of values and weights that it plays on them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab import datasets
from sparsemean.schemes import AUTO, named, names
from sparsemean.wire.values import NAMES, value_kind


def _completed(incomplete: str) -> list[str]:
    """Completions of a list of names whose last one is incomplete."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in [*names(), AUTO] if name.startswith(last)]


Source = Annotated[
    str,
    typer.Argument(
        metavar="[FILE]",
        help="A .npy, .npz, .csv or .parquet file, (n, d) or (rounds, n, d); or weather, beijing, los-loop.",
    ),
]
Rounds = Annotated[int | None, typer.Option(min=1, help="Use only the first rounds.")]
Schemes = Annotated[
    str | None, typer.Option(help="Names separated by commas; all by default.", autocompletion=_completed)
]
Values = Annotated[str, typer.Option(help=f"Kinds of values, separated by commas: {NAMES}.")]
Weights = Annotated[Path | None, typer.Option(help="A .npy or .csv file with one weight per node.")]
Seeds = Annotated[int, typer.Option(min=1, help="How often to repeat with other random coordinates.")]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether a .csv file begins with a line of names. Default: told by the line itself.",
        show_default=False,
    ),
]


def vectors_of(source: str, header: bool | None) -> tuple[Doubles, str, str]:
    """The vectors, where they come from, and what was guessed about the file."""
    found = datasets.load(source, header=header)
    if isinstance(found, datasets.Images):
        raise InvalidInput(f"{source} holds images, not vectors of nodes; `sparsemean reproduce` uses it")
    return found.vectors.astype(np.float64), found.attribution or source, found.note


def weights_of(path: Path | None) -> Doubles | None:
    """The weights in a file, one per node; None without a file."""
    if path is None:
        return None
    try:
        given = np.load(path, allow_pickle=False) if path.suffix == ".npy" else np.loadtxt(path, delimiter=",")
        return np.asarray(given, np.float64).ravel()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path}: not a .npy or .csv file with one weight per node ({error})") from None


def schemes_of(text: str | None, peers: Sequence[str] = ()) -> Sequence[str]:
    """Names of schemes, and of ``peers``; all where none is given."""
    known = [*names(), AUTO, *peers]
    chosen = [name.strip() for name in text.split(",")] if text else known
    for name in chosen:
        if name not in known:
            named(name)  # refuses it, and says which name is nearest
    return chosen


def kinds_of(text: str) -> Sequence[str]:
    """Names of kinds of values."""
    return [value_kind(kind.strip()).name for kind in text.split(",")]
