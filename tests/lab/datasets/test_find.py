"""Files are found in the stated places, in the stated forms, and only if their content is right."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.entry import DatasetEntry
from sparsemean.lab.datasets.find import contents, places


def put(place: Path, entry: DatasetEntry, content: dict[str, bytes], suffix: str = "") -> None:
    folder = place / entry.folder
    folder.mkdir(parents=True)
    pack: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
    for name, data in content.items():
        (folder / (name + suffix)).write_bytes(pack[suffix](data))


def test_the_directory_comes_first_then_the_environment_then_the_shared_folder(tmp_path, nowhere, monkeypatch) -> None:
    shared = nowhere.parent / "shared" / "data"
    assert places() == (shared,)
    monkeypatch.setenv("SPARSEMEAN_DATA", str(tmp_path / "environment"))
    assert places(tmp_path / "named") == (tmp_path / "named", tmp_path / "environment", shared)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_a_file_may_be_compressed(entry, content, tmp_path, suffix: str) -> None:
    put(tmp_path, entry, content, suffix)
    assert contents(entry, [tmp_path]) == content


def test_the_order_is_that_of_the_entry(entry, content, tmp_path) -> None:
    put(tmp_path, entry, dict(reversed(content.items())))
    assert list(contents(entry, [tmp_path])) == [file.name for file in entry.files]


def test_files_may_be_spread_over_the_places(entry, content, tmp_path) -> None:
    put(tmp_path / "one", entry, {"b.txt": content["b.txt"]}, ".gz")
    put(tmp_path / "two", entry, {"a.txt": content["a.txt"]})
    assert contents(entry, [tmp_path / "one", tmp_path / "two"]) == content


def test_what_is_missing_is_told_with_places_source_and_hashes(entry, content, tmp_path) -> None:
    put(tmp_path / "one", entry, {"a.txt": content["a.txt"]})
    with pytest.raises(InvalidInput) as raised:
        contents(entry, [tmp_path / "one", tmp_path / "two"])
    missing = entry.files[1]
    assert str(raised.value) == (
        f"the data set tiny lacks 1 of its 2 files. Looked in {tmp_path / 'one' / 'tiny-folder'}, "
        f"{tmp_path / 'two' / 'tiny-folder'}. Get them from https://example.org/tiny into one of these folders, or "
        "name another place by directory= or SPARSEMEAN_DATA, or download them: "
        "sparsemean.lab.datasets.fetch('tiny', directory). Each may lie there as it is or as .gz or .xz. Missing, with "
        f"the sha256 of the decompressed content: b.txt ({missing.sha256})"
    )


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_another_content_is_named_with_both_hashes(entry, content, tmp_path, suffix: str) -> None:
    put(tmp_path, entry, {**content, "b.txt": b"other\n"}, suffix)
    with pytest.raises(InvalidInput, match="is not the expected file; delete it and get it again from") as raised:
        contents(entry, [tmp_path])
    message = str(raised.value)
    assert str(tmp_path / "tiny-folder" / f"b.txt{suffix}") in message
    assert f"expected 7 bytes, sha256 {entry.files[1].sha256}" in message
    assert "found    6 bytes, sha256 " in message


def test_more_than_expected_is_not_unpacked_further(entry, content, tmp_path) -> None:
    put(tmp_path, entry, {**content, "a.txt": bytes(10**8)}, ".gz")
    with pytest.raises(InvalidInput, match=r"a\.txt\.gz holds more than the expected 11 bytes"):
        contents(entry, [tmp_path])


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"garbage" + data, lambda data: b""])
def test_a_damaged_compression_is_named_with_the_hash(entry, content, tmp_path, suffix: str, damage) -> None:
    put(tmp_path, entry, content, suffix)
    path = tmp_path / "tiny-folder" / f"a.txt{suffix}"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InvalidInput) as raised:
        contents(entry, [tmp_path])
    assert str(path) in str(raised.value)
    assert entry.files[0].sha256 in str(raised.value)


def test_a_damaged_file_is_not_replaced_silently_by_one_from_the_next_place(entry, content, tmp_path) -> None:
    put(tmp_path / "one", entry, {**content, "a.txt": b"wrong"})
    put(tmp_path / "two", entry, content)
    with pytest.raises(InvalidInput, match="one"):
        contents(entry, [tmp_path / "one", tmp_path / "two"])
