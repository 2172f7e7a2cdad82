"""Parsers of sizes as people write them: shares, bytes, counts, and speeds of links."""

from __future__ import annotations

import re

from sparsemean.errors import InvalidInput

_UNITS = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_TIMES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


def share_of(text: str) -> float:
    """``10%`` or ``0.1`` as a share.

    >>> share_of("10%"), share_of("0.25")
    (0.1, 0.25)
    """
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise InvalidInput(f"{text!r} is not a share; write 10% or 0.1") from None
    if not 0.0 < share <= 1.0:
        raise InvalidInput(f"a share lies above 0 and not above 100 %, got {text!r}")
    return share


def bytes_of(text: str) -> int:
    """``4KB``, ``4KiB`` or ``4000`` as a number of bytes.

    >>> bytes_of("4KB"), bytes_of("1.5 KiB")
    (4000, 1536)
    """
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-zA-Z]*)\s*", text)
    if not found or found[2].lower() not in _UNITS:
        raise InvalidInput(f"{text!r} is not a size in bytes; write 4000, 4KB or 4KiB")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def count_of(text: str) -> int:
    """``10000``, ``10k``, ``1e6``, ``1.5M`` or ``2^22`` as a whole number from 1 on.

    >>> count_of("10k"), count_of("1e6"), count_of("2^22")
    (10000, 1000000, 4194304)
    """
    if power := re.fullmatch(r"\s*([0-9]{1,9})\^([0-9]{1,2})\s*", text):
        count: float = int(power[1]) ** int(power[2])
    else:
        found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:e[0-9]{1,2})?)\s*([kmg]?)\s*", text.lower().replace("_", ""))
        count = round(float(found[1]) * _TIMES[found[2]], 6) if found else 0.0
    if count < 1 or count != int(count):
        raise InvalidInput(f"{text!r} is not a whole number from 1 on; write 10000, 10k, 1e6 or 2^22")
    return int(count)


def bits_of(text: str) -> float:
    """``10Mbit``, ``10 Mbit/s``, ``10Mb``, ``1Gbps`` or ``56k`` as bits a second.

    >>> bits_of("10Mbit"), bits_of("1.5 Gbit/s"), bits_of("56k")
    (10000000.0, 1500000000.0, 56000.0)
    """
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kKmMgG]?)(?:b|[bB]its?|[bB]ps)?(?:/s|/sec)?\s*", text)
    if not found or float(found[1]) == 0.0 or text.strip()[-1].isdigit():
        raise InvalidInput(f"{text!r} is not the speed of a link in bits a second; write 10Mbit or 1Gbit")
    return float(found[1]) * _TIMES[found[2].lower()]
