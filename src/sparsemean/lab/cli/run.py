"""``sparsemean run``: files that say what nodes and server agree on."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Annotated

import typer

from sparsemean.errors import InvalidInput
from sparsemean.lab.cli.output import print_table, yes
from sparsemean.lab.cli.sizes import bytes_of, count_of
from sparsemean.lab.tables import write_whole
from sparsemean.run import Run
from sparsemean.schemes import named, outline

run_app = typer.Typer(no_args_is_help=True, help="Write and read what nodes and server agree on: run.json.")


@run_app.command("new")
def new_command(
    file: Annotated[Path, typer.Argument(help="Where to write it, such as run.json.")],
    scheme: Annotated[str, typer.Option(help="A name of `sparsemean schemes`.")],
    dim: Annotated[str, typer.Option(help="Length of the vectors: 1000, 10k, 1e6.")],
    bytes: Annotated[str | None, typer.Option("--bytes", help="The most that a payload may have: 200, 4KB.")] = None,
    k: Annotated[str | None, typer.Option("--k", help="Or how many coordinates a node sends: 100, or 0.1.")] = None,
    values: Annotated[str, typer.Option(help="How a value travels: float32, int8, eden-2, …")] = "float32",
    ratio: Annotated[float | None, typer.Option(help="R2/R1, for schemes whose name ends with -opt.")] = None,
    node: Annotated[
        str | None, typer.Option(help="For auto: stateless, broadcast (hears the means) or stateful (keeps a state).")
    ] = None,
    blocks: Annotated[str | None, typer.Option(help="Sizes of layers, such as 600,400.")] = None,
    frame: Annotated[str, typer.Option(help="full, or compact for short payloads.")] = "full",
    seed: Annotated[int | None, typer.Option(help="Of all draws; by default at random.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a run: scheme, size, seed. Give it to server and nodes; `sparsemean serve` gives it to nodes itself."""
    if file.exists() and not force:
        raise InvalidInput(f"{file} is there already, and nodes may use it; choose another name, or --force")
    sizes = None if blocks is None else [count_of(size) for size in blocks.split(",")]
    given = secrets.randbits(63) if seed is None else seed
    options: dict[str, float | str] = {}
    if ratio is not None:
        options["ratio"] = ratio
    if node is not None:
        options["node"] = node
    length = count_of(dim)
    if bytes is not None and k is not None:
        raise InvalidInput("--bytes finds k; give one of the two")
    if bytes is not None:
        made = Run.for_bytes(
            scheme,  # type: ignore[arg-type]  # a wrong name is refused with a list
            length,
            bytes_of(bytes),
            given,
            sizes,
            values=values,  # type: ignore[arg-type]
            frame=frame,
            **options,  # type: ignore[arg-type]
        )
    else:
        size = None if k is None else _size(k)
        made = Run(named(scheme, size, values=values, **options), length, given, sizes, frame=frame)  # type: ignore[call-overload]
    write_whole(file, json.dumps(json.loads(made.to_json()), indent=1) + "\n")
    _show(made)


@run_app.command("show")
def show_command(file: Annotated[Path, typer.Argument(help="A file that `run new` wrote.")]) -> None:
    """Say what a run is, and what a payload of it takes."""
    _show(run_of(file))


def _show(run: Run) -> None:
    rows = {
        "scheme": outline(run.scheme),
        "dimension": f"{run.dim:,}",
        "bytes a payload": f"{'' if run.payload_fixed else 'up to '}{run.payload_bytes:,}",
        "of dense float32": f"{run.payload_bytes / (4 * run.dim):.3g}",
        "unbiased": yes(run.scheme.unbiased),
        "nodes keep a state": yes(run.scheme.node_state),
        "digest": run.digest,
    }
    print_table(("what", "is"), rows.items())


def _size(text: str) -> int | float:
    """A number of coordinates, or a share of them where it has a point."""
    if "." in text or text.endswith("%"):
        from sparsemean.lab.cli.sizes import share_of

        return share_of(text)
    return count_of(text)


def run_of(file: Path) -> Run:
    """The run in a file."""
    try:
        return Run.from_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the run cannot be read from {file}: {error}; write it with: sparsemean run new") from None
