"""The vectors that a command is about, and the schemes, kinds of values and weights that it plays on them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab import datasets
from sparsemean.lab.cli.output import plain
from sparsemean.lab.datasets.reading import Decimal, Missing
from sparsemean.schemes import AUTO, names, scheme_name
from sparsemean.wire.values import value_kind

DEFAULT = "weather"
"""What a command plays on that is given no file."""

PANEL = "How to read your file"


def _completed(incomplete: str) -> list[str]:
    """Completions of a list of names whose last one is incomplete."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in [*names(), AUTO] if name.startswith(last)]


Source = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE]...",
        help="Your vectors: a .npy, .npz, .csv, .tsv, .txt, .parquet, .pt or .safetensors file, one line per node; "
        "several files or a folder, each a node; or a set: weather, beijing, los-loop. Default: weather.",
        show_default=False,
    ),
]
Rounds = Annotated[int | None, typer.Option(min=1, help="Use only the first rounds.")]
Schemes = Annotated[
    str | None,
    typer.Option(
        help="Names separated by commas, of those that `sparsemean schemes` lists; all by default.",
        autocompletion=_completed,
    ),
]
Values = Annotated[
    str,
    typer.Option(
        help="How numbers travel, separated by commas: float32, float16, int8, int4, eden-3, …; `sparsemean schemes` "
        "lists all."
    ),
]
Weights = Annotated[Path | None, typer.Option(help="A .npy or .csv file with one weight per node.")]
Seeds = Annotated[int, typer.Option(min=1, help="How often to repeat with other random coordinates.")]

READ_AS_IS = datasets.Reading()


def _reading(
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether a text file begins with a line of names. Default: told by the line itself.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column that names the nodes, by its name or number (1 is the first). Default: node.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    round: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column with the number or date of the round. Default: round.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="The columns that count, separated by commas. Default: all others that hold numbers.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    transpose: Annotated[
        bool,
        typer.Option("--transpose", help="Columns are nodes, and lines coordinates or times.", rich_help_panel=PANEL),
    ] = False,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Cut each node's numbers into rounds of so many: 24 hours.", rich_help_panel=PANEL),
    ] = None,
    missing: Annotated[
        Missing,
        typer.Option(
            help="What to do where a number is missing: leave out its round or node, or fill in the mean of its "
            "coordinate, or what the node had there in the round before.",
            rich_help_panel=PANEL,
        ),
    ] = "refuse",
    decimal: Annotated[
        Decimal | None,
        typer.Option(help="The decimal mark of a text file. Default: told by the file.", rich_help_panel=PANEL),
    ] = None,
    array: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which array or entry of a .npz, .pt or .pth file.", rich_help_panel=PANEL),
    ] = None,
) -> datasets.Reading:
    chosen = tuple(name.strip() for name in columns.split(",")) if columns else ()
    return datasets.Reading(header, node, round, chosen, array, decimal, missing, transpose, steps)


def reads_vectors(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, in place of its argument ``reading``, an option for each way to read a file."""
    own = inspect.signature(command, eval_str=True).parameters
    options = inspect.signature(_reading, eval_str=True).parameters

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        told = {name: given.pop(name) for name in options}
        command(**given, reading=_reading(**told))

    taken: dict[str, inspect.Parameter] = {}
    for name, parameter in own.items():
        taken |= options if name == "reading" else {name: parameter}
    with_options.__signature__ = inspect.Signature(list(taken.values()))  # type: ignore[attr-defined]
    with_options.__annotations__ = {name: parameter.annotation for name, parameter in taken.items()}
    del with_options.__wrapped__
    return with_options


def vectors_of(source: Sequence[str] | None, reading: datasets.Reading = READ_AS_IS) -> tuple[Doubles, str, str]:
    """The vectors, where they come from, and what was guessed about the file.

    What was understood is said at once, before anything takes long; on standard error, where JSON may be on the other.
    """
    given = list(source or [DEFAULT])
    found = datasets.loaded(given, reading)
    told = ", ".join(given) if len(given) < 4 else f"{given[0]} and {len(given) - 1} more files"
    if isinstance(found, datasets.Images):
        raise InvalidInput(f"{told} holds images, not vectors of nodes; `sparsemean frontier` and `reproduce` use it")
    Console(stderr=True).print(plain(f"{told}: {found.understood}."), highlight=False, markup=False, soft_wrap=True)
    return found.vectors.astype(np.float64), found.attribution or told, found.note


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
            scheme_name(name)  # refuses it, and says which name is nearest
    return chosen


def kinds_of(text: str) -> Sequence[str]:
    """Names of kinds of values."""
    return [value_kind(kind.strip()).name for kind in text.split(",")]
