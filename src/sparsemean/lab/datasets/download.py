"""Download of a data set, verified by its hashes; needs pooch."""

from __future__ import annotations

import tarfile
from pathlib import Path

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.entry import DatasetEntry, Download
from sparsemean.lab.datasets.find import Directory, contents, located
from sparsemean.lab.optional_modules import optional


def download(entry: DatasetEntry, directory: Directory, base_url: str | None = None) -> tuple[Path, ...]:
    """The paths of the set's files within the directory, downloaded where they were not there already.

    Another ``base_url`` may be a mirror: the hashes decide what is accepted, not the address.
    """
    place = Path(directory).resolve()
    if not is_whole(entry, place):
        for item in entry.downloads:
            path = retrieve(entry, item, place / entry.folder, base_url or entry.base_url)
            if item.name.endswith(".tar.gz"):
                unpack(entry, path)
        contents(entry, [place])
    return tuple(located(entry, [place]))


def is_whole(entry: DatasetEntry, place: Path) -> bool:
    """Whether every file is there and right."""
    try:
        contents(entry, [place])
    except InvalidInput:
        return False
    return True


def retrieve(entry: DatasetEntry, item: Download, folder: Path, base_url: str) -> Path:
    """The path of one downloaded file whose hash is right; a damaged one that lies there is replaced."""
    pooch = optional("pooch", "downloading", "lab")
    url = f"{base_url.rstrip('/')}/{item.name}"
    try:
        return Path(pooch.retrieve(url, f"sha256:{item.sha256}", fname=item.name, path=folder))
    except (OSError, ValueError) as error:  # pooch: ValueError is a wrong hash, OSError includes all of HTTP
        raise InvalidInput(
            f"downloading {url} into {folder} failed ({error}); try again, or get it by hand from {entry.page}. "
            f"Expected sha256 {item.sha256}"
        ) from error


def unpack(entry: DatasetEntry, archive: Path) -> None:
    """Put the set's files beside the archive, whatever folder they have in it, and delete the archive."""
    wanted = {file.name: file for file in entry.files}
    with tarfile.open(archive, "r:gz") as members:
        for member in members:
            file = wanted.get(Path(member.name).name)
            stream = members.extractfile(member) if file else None
            if file and stream:
                (archive.parent / file.name).write_bytes(stream.read(file.size))
    archive.unlink()
