"""Downloads from a server on this machine: verified, repeatable, and clear about what went wrong."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab import datasets
from sparsemean.lab.datasets import download, fetch
from sparsemean.lab.datasets.entry import Download


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder and remembers what was asked for."""

    asked: list[str]

    def __init__(self, *args: Any, asked: list[str], **kwargs: Any) -> None:
        self.asked = asked
        super().__init__(*args, **kwargs)

    def do_GET(self) -> None:
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Site:
    """A folder, its address, and the paths that were asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, list[str]()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder, asked=self.asked))
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    site = Site(folder)
    thread = threading.Thread(target=site.server.serve_forever)
    thread.start()
    yield site
    site.server.shutdown()
    thread.join()
    site.server.server_close()


@pytest.fixture
def served(site: Site, content: dict[str, bytes]) -> Site:
    """The site with the files of the tiny set."""
    for name, data in content.items():
        (site.folder / name).write_bytes(data)
    return site


def test_the_files_arrive_in_the_folder_of_the_set(entry, content, served, tmp_path) -> None:
    paths = download(entry, tmp_path / "data", served.url)
    assert paths == tuple(tmp_path / "data" / "tiny-folder" / name for name in content)
    assert [path.read_bytes() for path in paths] == list(content.values())


def test_the_entrys_own_address_serves_unless_another_is_given(entry, content, served, tmp_path) -> None:
    download(replace(entry, base_url=served.url + "/"), tmp_path / "data")
    assert served.asked == [f"/{name}" for name in content]


def test_what_is_there_is_not_downloaded_again(entry, served, tmp_path) -> None:
    first = download(entry, tmp_path / "data", served.url)
    served.asked.clear()
    assert download(entry, tmp_path / "data", served.url) == first
    assert served.asked == []


def test_a_damaged_file_is_replaced(entry, content, served, tmp_path) -> None:
    path = download(entry, tmp_path / "data", served.url)[0]
    path.write_bytes(b"damaged")
    served.asked.clear()
    download(entry, tmp_path / "data", served.url)
    assert path.read_bytes() == content["a.txt"]
    assert served.asked == ["/a.txt"]


def test_other_bytes_than_expected_are_refused_and_not_kept(entry, served, tmp_path) -> None:
    (served.folder / "b.txt").write_bytes(b"forged\n")
    with pytest.raises(InvalidInput) as raised:
        download(entry, tmp_path / "data", served.url)
    for told in (f"{served.url}/b.txt", "https://example.org/tiny", entry.downloads[1].sha256, sha256(b"forged\n")):
        assert told in str(raised.value)
    assert not (tmp_path / "data" / "tiny-folder" / "b.txt").exists()


def test_a_file_that_is_not_there_is_named(entry, site, tmp_path) -> None:
    with pytest.raises(InvalidInput, match=r"downloading http.*a\.txt into .* failed .*404.*by hand from https://exam"):
        download(entry, tmp_path / "data", site.url)


def test_a_server_that_does_not_answer_is_named(entry, site, tmp_path) -> None:
    site.server.socket.close()
    with pytest.raises(InvalidInput, match=f"downloading {site.url}/a.txt into .* failed"):
        download(entry, tmp_path / "data", site.url)


def archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def test_an_archive_is_unpacked_and_removed_and_only_wanted_members_are_written(entry, content, site, tmp_path) -> None:
    members = {f"../outside/{name}": data for name, data in content.items()} | {"../../evil.txt": b"evil"}
    packed = archive(members)
    (site.folder / "all.tar.gz").write_bytes(packed)
    packed_entry = replace(entry, downloads=(Download("all.tar.gz", sha256(packed)),))
    for _ in range(2):
        paths = download(packed_entry, tmp_path / "data", site.url)
        assert [path.read_bytes() for path in paths] == list(content.values())
    assert site.asked == ["/all.tar.gz"]
    assert sorted(path.name for path in (tmp_path / "data").rglob("*")) == ["a.txt", "b.txt", "tiny-folder"]
    assert not list(tmp_path.rglob("evil.txt"))


def test_an_archive_without_a_wanted_member_is_noticed(entry, content, site, tmp_path) -> None:
    packed = archive({"a.txt": content["a.txt"]})
    (site.folder / "all.tar.gz").write_bytes(packed)
    with pytest.raises(InvalidInput, match="lacks 1 of its 2 files"):
        download(replace(entry, downloads=(Download("all.tar.gz", sha256(packed)),)), tmp_path / "data", site.url)


def test_fetch_takes_a_name_and_the_environments_directory(entry, content, served, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(datasets.LOADERS, "tiny", lambda directory: pytest.fail("not to be loaded"))
    monkeypatch.setitem(datasets.ENTRIES, "tiny", entry)
    with pytest.raises(InvalidInput, match="say where tiny shall go: name a directory, or set SPARSEMEAN_DATA to one"):
        fetch("tiny", base_url=served.url)
    monkeypatch.setenv("SPARSEMEAN_DATA", str(tmp_path / "data"))
    assert [path.read_bytes() for path in fetch("tiny", base_url=served.url)] == list(content.values())


def test_fetch_has_nothing_to_do_for_sets_that_come_with_a_package() -> None:
    assert fetch("weather") == fetch("digits") == ()


def test_fetch_names_the_known_sets() -> None:
    with pytest.raises(InvalidInput, match="'mnist' is no data set; known sets are fashion-mnist, cifar-10, "):
        fetch("mnist")


def test_without_pooch_the_extra_is_named(entry, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(InvalidInput, match=r"downloading needs pooch: pip install 'sparsemean\[lab\]'"):
        download(entry, tmp_path)


def test_every_set_can_be_downloaded_over_https_and_is_fully_described() -> None:
    for entry in datasets.ENTRIES.values():
        assert entry.base_url.startswith("https://")
        assert entry.page.startswith("https://")
        assert entry.files
        assert entry.downloads
        assert entry.licence
        assert entry.attribution
        for hash in [file.sha256 for file in entry.files] + [item.sha256 for item in entry.downloads]:
            assert len(bytes.fromhex(hash)) == 32
