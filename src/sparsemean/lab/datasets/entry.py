"""The description of a data set: its files, their hashes, its source and its licence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """One file, by its content: on disk it may lie as it is, or compressed as ``.gz`` or ``.xz``."""

    name: str
    """Without the suffix of a compression."""
    size: int
    """Bytes of the decompressed content."""
    sha256: str
    """Of the decompressed content, so that compressing anew changes nothing."""


@dataclass(frozen=True)
class Download:
    """One file to download: ``base_url`` + name; a ``.tar.gz`` is unpacked."""

    name: str
    sha256: str
    """Of what the server sends."""


@dataclass(frozen=True)
class DatasetEntry:
    """A data set's place, content and origin."""

    name: str
    folder: str
    """Where its files lie within a data directory."""
    files: tuple[File, ...]
    page: str
    """The official source, for people."""
    licence: str
    attribution: str
    """Show this wherever the data, or a figure made from it, is published."""
    base_url: str
    downloads: tuple[Download, ...]
