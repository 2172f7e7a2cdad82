"""The compact form of a frame: five bytes in place of the header, which both sides know (``docs/wire.md``).

=======  ====  ======================================================================================
offset   size  field
=======  ====  ======================================================================================
0        1     lead: the round mod 64; bit 6 where the basis is not 0; bit 7 where it says "unchanged"
1        t     tag: of the header that is left out, and of the body; it takes the place of the CRC
1 + t    1     check, only of runs whose payloads may build on a state: what to tell a sender whose tag fails
…        …     body
=======  ====  ======================================================================================
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, replace

from sparsemean.errors import ForeignPayload, InvalidInput, MalformedPayload
from sparsemean.wire import frame
from sparsemean.wire.checksum import crc32
from sparsemean.wire.frame import Header
from sparsemean.wire.secret import Secret

NAME = re.compile(r"compact(?:-([0-9]{1,2}))?")
TAG_BYTES, MOST_TAG_BYTES = 4, 16
ROUNDS, BUILDS, UNCHANGED = 1 << 6, 1 << 6, 1 << 7
LOW, HIGH = 0x0F, 0xF0  # of the check: of the frame as it came, of who made it


@dataclass(frozen=True, slots=True)
class Compact:
    """How the compact frames of a run are laid out.

    Attributes
    ----------
    tag_bytes : int
        t, 4 to 16.
    checked : bool
        Whether there is a check.
    """

    tag_bytes: int
    checked: bool

    @property
    def header_bytes(self) -> int:
        """What stands before the body."""
        return 1 + self.tag_bytes + self.checked


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a compact frame says by itself, before anything is known to be true."""

    start: bytes
    body: memoryview

    @property
    def round(self) -> int:
        """Modulo 64."""
        return self.start[0] % ROUNDS

    @property
    def builds(self) -> bool:
        """Whether the basis is not 0."""
        return bool(self.start[0] & BUILDS)

    @property
    def kind(self) -> int:
        """``frame.VALUES`` or ``frame.UNCHANGED``."""
        return frame.UNCHANGED if self.start[0] & UNCHANGED else frame.VALUES


def tag_bytes_of(name: str) -> int:
    """The length of the tag that the name of a compact form asks for.

    >>> tag_bytes_of("compact"), tag_bytes_of("compact-8")
    (4, 8)
    """
    found = NAME.fullmatch(name) if isinstance(name, str) else None
    size = int(found[1] or TAG_BYTES) if found else 0
    if not TAG_BYTES <= size <= MOST_TAG_BYTES:
        raise InvalidInput(
            f'frame is "full", "compact", or "compact-8" for a tag of 8 bytes ({TAG_BYTES} to {MOST_TAG_BYTES}), '
            f"got {name!r:.100}"
        )
    return size


def named(tag_bytes: int) -> str:
    """The name of the compact form with such a tag."""
    return "compact" if tag_bytes == TAG_BYTES else f"compact-{tag_bytes}"


def start(form: Compact, header: Header, body: bytes | memoryview, secret: Secret) -> bytes:
    """What stands before the body of a frame in place of this header."""
    lead = (
        header.round % ROUNDS | (BUILDS if header.basis else 0) | (UNCHANGED if header.kind == frame.UNCHANGED else 0)
    )
    tagged = bytes([lead]) + secret.digest(frame.start(header, len(body)), body)[: form.tag_bytes]
    return tagged + bytes([_intact(tagged, body) | _maker(header, body, secret)]) if form.checked else tagged


def parse(form: Compact, blob: memoryview) -> Parsed:
    """The fields of a frame; what they say is not verified."""
    if len(blob) < form.header_bytes:
        raise MalformedPayload(f"a frame of this run has at least {form.header_bytes} bytes, this one has {len(blob)}")
    parsed = Parsed(bytes(blob[: form.header_bytes]), blob[form.header_bytes :])
    if (parsed.builds and not form.checked) or (parsed.kind == frame.UNCHANGED and parsed.body):
        if blob[: len(frame.MAGIC)] == frame.MAGIC:
            raise MalformedPayload("this is a full frame, and those of this run are compact; give the node this Run")
        raise MalformedPayload("the frame is of an unknown kind")
    return parsed


def low_round(blob: bytes) -> int:
    """The round modulo 64, which is all that a frame tells to who knows neither its run nor its secret."""
    if not blob:
        raise MalformedPayload("a frame has at least a byte, this one has none")
    return blob[0] % ROUNDS


def round_near(parsed: Parsed, near: int) -> int:
    """The round of a frame by its low bits: the one from 32 before ``near`` to 31 after it, where there is one.

    >>> frame = Parsed(bytes([61, 0, 0, 0, 0]), memoryview(b""))
    >>> round_near(frame, 100), round_near(frame, 64), round_near(frame, 2)
    (125, 61, 61)
    """
    half = ROUNDS // 2
    round = near + (parsed.round - near + half) % ROUNDS - half
    if round < 0:
        return round + ROUNDS
    return round if round >> 63 == 0 else round - ROUNDS


def fits(form: Compact, parsed: Parsed, header: Header, secret: Secret) -> bool:
    """Whether this is how a frame of this header and body begins."""
    return hmac.compare_digest(start(form, header, parsed.body, secret), parsed.start)


def check(parsed: Parsed, header: Header, secret: Secret, node: str) -> None:
    """Refuse a frame whose check says that it is damaged, or of another maker; else only its basis can be wrong."""
    *tagged, said = parsed.start
    if said & LOW != _intact(bytes(tagged), parsed.body):
        raise MalformedPayload("the check does not fit: the frame was damaged on its way; send it again")
    if said & HIGH != _maker(header, parsed.body, secret):
        raise ForeignPayload(
            f"the frame is whole, but was made in another run, by another node than {node!r}, or with another plan or "
            "secret; compare run.digest and the secrets of both sides"
        )


def frame_digest(blob: bytes) -> str:
    """Sixteen bytes, in hex, that stand for a compact frame: of all of it."""
    return hashlib.blake2b(blob, digest_size=16).hexdigest()


def _intact(tagged: bytes, body: bytes | memoryview) -> int:
    """The lower half of the check: of what travels."""
    return crc32(body, crc32(tagged)) & LOW


def _maker(header: Header, body: bytes | memoryview, secret: Secret) -> int:
    """The upper half of the check: of all that the tag is of but the basis."""
    return secret.digest(frame.start(replace(header, basis=0), len(body)), body)[-1] & HIGH
