"""CRC-32: zlib-ng's where it is installed, which is some ten times as fast as the one that comes with Python."""

from __future__ import annotations

try:
    from zlib_ng.zlib_ng import crc32
except ImportError:  # a node needs numpy alone
    from zlib import crc32

__all__ = ["crc32"]
