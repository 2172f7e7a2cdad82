"""Real data by name, and a user's own files by path. ``docs/data.md`` lists the sets and formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets import beijing, cifar10, digits, fashion_mnist, los_loop, splits, vectors, weather
from sparsemean.lab.datasets.download import download
from sparsemean.lab.datasets.entry import DatasetEntry
from sparsemean.lab.datasets.find import ENVIRONMENT, Directory
from sparsemean.lab.datasets.images import Images
from sparsemean.lab.datasets.reading import Decimal, Missing, Reading
from sparsemean.lab.datasets.stream import Stream

__all__ = [
    "ENTRIES",
    "PICTURES",
    "DatasetEntry",
    "Images",
    "Reading",
    "Stream",
    "download",
    "fetch",
    "load",
    "loaded",
    "names",
    "splits",
]

LOADERS: dict[str, Callable[[Directory | None], Images | Stream]] = {
    "fashion-mnist": fashion_mnist.load,
    "cifar-10": cifar10.load,
    "digits": digits.load,
    "weather": weather.load,
    "beijing": beijing.load,
    "los-loop": los_loop.load,
}

PICTURES: dict[str, int] = {
    fashion_mnist.ENTRY.name: fashion_mnist.PIXELS,
    cifar10.ENTRY.name: cifar10.PIXELS,
    digits.NAME: digits.PIXELS,
}
"""The sets of pictures, with how many numbers one has."""

ENTRIES: dict[str, DatasetEntry] = {
    entry.name: entry for entry in (fashion_mnist.ENTRY, cifar10.ENTRY, beijing.ENTRY, los_loop.ENTRY)
}
"""The sets that lie in files outside of Python packages."""


def names() -> tuple[str, ...]:
    """The names that ``load`` knows.

    >>> names()
    ('fashion-mnist', 'cifar-10', 'digits', 'weather', 'beijing', 'los-loop')
    """
    return tuple(LOADERS)


def load(
    name_or_path: Directory | Sequence[Directory],
    directory: Directory | None = None,
    header: bool | None = None,
    *,
    node: str | None = None,
    round: str | None = None,
    columns: Sequence[str] = (),
    array: str | None = None,
    decimal: Decimal | None = None,
    missing: Missing = "refuse",
    transpose: bool = False,
    steps: int | None = None,
) -> Images | Stream:
    """Load a data set by name, or vectors from files.

    Parameters
    ----------
    name_or_path
        One of ``names()``, or the path of a file; several paths, or a folder, of which each file is a node. Write
        ``./`` before a file that has the name of a set.
    directory
        Where to look for the files of a set first; then in the folder that ``SPARSEMEAN_DATA`` names, then in
        ``../shared/data``.
    header, node, round, columns, array, decimal, missing, transpose, steps
        What a file of your own does not say, as in ``Reading`` (``docs/data.md``).

    Examples
    --------
    >>> weather = load("weather")
    >>> weather.vectors.shape, weather.nodes[0]
    ((31, 37, 89), '22016001')
    """
    reading = Reading(header, node, round, columns, array, decimal, missing, transpose, steps)
    return loaded(name_or_path, reading, directory)


def loaded(
    name_or_path: Directory | Sequence[Directory], reading: Reading, directory: Directory | None = None
) -> Images | Stream:
    """The same, with what the file does not say as one value."""
    given = [name_or_path] if isinstance(name_or_path, str | os.PathLike) else name_or_path
    if hasattr(given, "shape") or any(hasattr(path, "shape") for path in given):
        raise InvalidInput(
            f"load reads files and data sets, and was given a {type(given).__name__}; arrays and tables go straight "
            "into sm.estimate_mean, sm.simulate and sparsemean.lab.compare.compare"
        )
    paths = [os.fspath(path) for path in given]
    if len(paths) == 1 and paths[0] in LOADERS:
        if reading.given:
            raise InvalidInput(f"{paths[0]} is a data set; {reading.given[0]}= is for a file of your own")
        return LOADERS[paths[0]](directory)
    for path in paths:
        if not Path(path).exists():
            raise InvalidInput(f"{path!r} is neither a file nor a data set; known sets are {', '.join(LOADERS)}")
    return vectors.load(paths, reading)


def fetch(name: str, directory: Directory | None = None, base_url: str | None = None) -> tuple[Path, ...]:
    """The paths of the named set's files in the directory (else ``SPARSEMEAN_DATA``), downloaded where needed.

    Sets that come with a package have no files to fetch.

    >>> fetch("weather")
    ()
    """
    if name not in LOADERS:
        raise InvalidInput(f"{name!r} is no data set; known sets are {', '.join(LOADERS)}")
    if name not in ENTRIES:
        return ()
    place = directory or os.environ.get(ENVIRONMENT)
    if not place:
        raise InvalidInput(f"say where {name} shall go: name a directory, or set {ENVIRONMENT} to one")
    return download(ENTRIES[name], place, base_url)
