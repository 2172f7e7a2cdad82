"""Checksums are those of zlib, whoever computes them."""

from __future__ import annotations

import importlib
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.wire import checksum


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_the_checksum_is_zlib_s_and_can_be_gone_on_with(first: bytes, second: bytes) -> None:
    assert checksum.crc32(memoryview(second), checksum.crc32(first)) == zlib.crc32(first + second)


def test_long_bytes_too() -> None:
    data = bytes(range(256)) * 5_000
    assert checksum.crc32(data) == zlib.crc32(data)


def test_python_s_own_serves_where_zlib_ng_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checksum.crc32.__module__ == "zlib_ng.zlib_ng"
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "zlib_ng.zlib_ng", None)
        assert importlib.reload(checksum).crc32 is zlib.crc32
    assert importlib.reload(checksum).crc32.__module__ == "zlib_ng.zlib_ng"
