"""Find the files of a data set, and verify that they are the right ones.

Places, in this order: the directory the caller names, the one in the environment variable ``SPARSEMEAN_DATA``, and
``../shared/data`` seen from the current directory. A file that is found but damaged is an error; no other is tried.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, cast

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.entry import DatasetEntry, File

ENVIRONMENT = "SPARSEMEAN_DATA"
SHARED = Path("..", "shared", "data")
SUFFIXES = ("", ".gz", ".xz")

Directory = str | os.PathLike[str]


def places(directory: Directory | None = None) -> tuple[Path, ...]:
    """The directories that are searched, in order."""
    named = (directory, os.environ.get(ENVIRONMENT))
    return tuple(Path(place).resolve() for place in (*named, SHARED) if place)


def contents(entry: DatasetEntry, among: Sequence[Path]) -> dict[str, bytes]:
    """File name → its decompressed and verified content, in the order of the entry."""
    paths = located(entry, among)
    # Decompressing and hashing release the interpreter lock, so threads do help.
    with ThreadPoolExecutor() as pool:
        read = pool.map(lambda file, path: verified(entry, file, path), entry.files, paths)
        return {file.name: content for file, content in zip(entry.files, read, strict=True)}


def located(entry: DatasetEntry, among: Sequence[Path]) -> list[Path]:
    """The path of every file, in the order of the entry; all that are missing are named at once."""
    folders = [place / entry.folder for place in among]
    found: dict[File, Path] = {}
    for file in entry.files:
        candidates = (folder / (file.name + suffix) for folder in folders for suffix in SUFFIXES)
        path = next((path for path in candidates if path.is_file()), None)
        if path:
            found[file] = path
    if missing := [file for file in entry.files if file not in found]:
        raise InvalidInput(absence(entry, missing, folders))
    return list(found.values())


def absence(entry: DatasetEntry, missing: Sequence[File], folders: Sequence[Path]) -> str:
    """The message about missing files: which, where they were looked for, where to get them, and their hashes."""
    looked = ", ".join(map(str, folders))
    lacking = ", ".join(f"{file.name} ({file.sha256})" for file in missing)
    return (
        f"the data set {entry.name} lacks {len(missing)} of its {len(entry.files)} files. Looked in {looked}. "
        f"Get them from {entry.page} into one of these folders, or name another place by directory= or {ENVIRONMENT}, "
        f"or download them: sparsemean.lab.datasets.fetch({entry.name!r}, directory). Each may lie there as it is or "
        f"as .gz or .xz. Missing, with the sha256 of the decompressed content: {lacking}"
    )


def verified(entry: DatasetEntry, file: File, path: Path) -> bytes:
    """The decompressed content of one file, if it is the expected one."""
    remedy = f"delete it and get it again from {entry.page}"
    try:
        with opened(path) as stream:
            content = stream.read(file.size + 1)  # one more than wanted: a bomb is not unpacked, yet noticed
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise InvalidInput(f"{path} cannot be read ({error}); {remedy}. Expected sha256 {file.sha256}") from error
    if len(content) > file.size:
        raise InvalidInput(f"{path} holds more than the expected {file.size} bytes; {remedy}")
    if (found := hashlib.sha256(content).hexdigest()) != file.sha256:
        raise InvalidInput(
            f"{path} is not the expected file; {remedy}. Decompressed content:\n"
            f"  expected {file.size} bytes, sha256 {file.sha256}\n"
            f"  found    {len(content)} bytes, sha256 {found}"
        )
    return content


def opened(path: Path) -> BinaryIO:
    """The file as a stream of decompressed bytes."""
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(path))
    return path.open("rb")
