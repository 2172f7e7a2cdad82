"""Frames written when this wire version was made: they decode for ever, and are what we write today.

``scripts/make_golden_frames.py`` made them. A frame that no longer fits is not to be made anew: either the code is
wrong, or the wire version changes and these stay beside the new ones.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean.kernels.sample import drawn
from sparsemean.sampling import Key, Plan, balanced_sample_of
from sparsemean.sampling import coordinates as sample
from sparsemean.wire import frame
from sparsemean.wire.secret import Secret
from sparsemean.wire.values import value_kind

FOLDER = Path(__file__).parent.parent / "golden" / "wire"
FOLDERS = {path.stem: path.parent for path in sorted(FOLDER.glob("*/*.bin"))}
NAMES = sorted(FOLDERS)
VERSION = {name: int(path.name[1:]) for name, path in FOLDERS.items() if path.name != "compact"}
COMPACT = sorted(set(NAMES) - set(VERSION))
PEERS = ("terngrad", "natural", "qsgd-2", "qsgd-5", "rotated-1", "rotated-3")
FEW_BITS = ("float16", "bfloat16", "int8", "int4", "2-bit", "1-bit")


def stored(name: str) -> tuple[bytes, dict[str, Any], sm.Run]:
    folder = FOLDERS[name]
    story = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return (folder / f"{name}.bin").read_bytes(), story, sm.Run.from_json(json.dumps(story["run"]))


def plan_in(run: sm.Run, story: dict[str, Any]) -> Plan | None:
    if not run.planned:
        return None
    return replace(run.listed_plan(story["node"], story["round"]), scale=story.get("scale"))


def known_in(run: sm.Run, story: dict[str, Any]) -> codec.Known:
    """What a receiver knows of the frame."""
    plan = plan_in(run, story)
    return codec.Known(story["round"], () if plan is None else (plan,), story.get("basis", 0), Secret(secret_in(story)))


def secret_in(story: dict[str, Any]) -> bytes | None:
    return bytes.fromhex(story["secret"]) if "secret" in story else None


def test_every_named_scheme_has_a_golden_frame():
    others = {"rand-k-float64", "wangni-float64", "rand-k-blocks", "rand-k-shared", "top-k-bitmap", "lag-unchanged"}
    others |= {"rand-k-one-of", "rand-k-balanced-no-slot", "rand-k-balanced-one-of", "diana-balanced"}
    others |= {"rand-k-balanced-int8", *(f"rand-k-balanced-{kind}-scale" for kind in FEW_BITS[2:])}
    few_bits = {f"{name}-{kind}" for name in ("identity", "rand-k", "wangni") for kind in FEW_BITS}
    others |= {f"identity-{kind}" for kind in ("eden-1", "eden-2.25", "eden-8")}
    others |= {"identity-modulo-3", "identity-modulo-3-near", "remembered-eden-1.5"}
    others |= {"rand-k-eden-3.5", "wangni-eden-3.5", "rand-k-int16", "identity-int16"}
    others |= {f"{name}-{kind}" for name in ("identity", "rand-k", "wangni") for kind in PEERS}
    others |= {f"{name}-{kind}" for name in ("chunked-top-k", "sign") for kind in ("float64", "2-bit")}
    others |= {*few_bits, "rand-k-shared-int8", "top-k-int4", "induced-int8", "diana-int8"}
    assert {*sm.names(), *others} <= set(NAMES), "run scripts/make_golden_frames.py for the new ones"
    assert sorted(path.stem for path in FOLDER.glob("*/*.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_it_decodes_to_the_stored_vector(name):
    blob, story, run = stored(name)
    known, plan = known_in(run, story), plan_in(run, story)
    header, body = codec.open_frame(run, story["node"], blob, known)
    payload = codec.read_payload(run, story["node"], header, body, plan)
    assert header.round == story["round"]
    if "expected" in story:
        assert payload is not None
        assert payload.parts[0].wrapped is not None
        found = payload.parts[0].wrapped.near(np.array(story["expected"]))
        assert (found.failed, found.values.tolist()) == (0, story["decoded"])
    elif story["decoded"] is None:
        assert payload is None
    else:
        assert payload is not None
        assert payload.dense(run.dim).tolist() == story["decoded"]
        if value_kind(run.scheme.values).exact:
            again = codec.pack(run, story["node"], header.round, payload, header.basis, plan, secret=known.secret)
            assert again == blob


@pytest.mark.parametrize("name", NAMES)
def test_a_server_takes_it_and_encoding_today_gives_the_same_bytes(name):
    blob, story, run = stored(name)
    secret = secret_in(story)
    client = sm.Client(run, story["node"], secret=secret)
    if "scale" in story:  # which a server learns, and cannot be told
        plan = plan_in(run, story)
        assert plan is not None
        told = codec.pack_plan(run, story["node"], story["round"], plan)
        assert client.encode(story["vectors"][-1], story["round"], told) == blob
        return
    if "expected" in story:
        near = np.array(story["expected"])
        sketch = codec.pack_sketch(run, story["node"], story["round"], near.__getitem__)
        assert client.encode(story["vectors"][-1], story["round"], sketch=sketch) == blob
        return
    secrets = None if secret is None else {story["node"]: secret}
    server = sm.Server(run, round=story["round"] - len(story["vectors"]) + 1, secrets=secrets)
    for vector in story["vectors"]:
        today = client.encode(vector, server.round)
        client.delivered(server.accept(story["node"], today))
        server.skip_round()
    assert today == blob
    assert server.round == story["round"] + 1
    receipt_is_of = blob[:64] if name in VERSION else blob
    assert server.accept(story["node"], blob) == sm.Receipt(
        story["node"], story["round"], hashlib.blake2b(receipt_is_of, digest_size=16).hexdigest()
    )


def test_the_frames_are_all_there_is_to_try():
    kinds = {(blob[5], blob[6], blob[7], blob[64:65] != b"") for blob, *_ in map(stored, VERSION)}
    assert {(0, 1, 1, True), (0, 2, 1, True), (0, 1, 2, True), (1, 1, 0, False)} <= kinds
    modes = {name: stored(name)[0][65] for name in ("top-k", "top-k-bitmap")}
    assert modes == {"top-k": 0, "top-k-bitmap": 1}
    bases = {name: struct.unpack_from("<I", stored(name)[0], 56)[0] for name in VERSION}
    in_step = {"diana", "diana-int8", "diana-balanced", "lag", "lag-unchanged", "remembered-eden-1.5"}
    assert {name for name, basis in bases.items() if basis} == in_step
    assert {stored(name)[0][6] for name in VERSION} == {*range(1, 12), 16, 24, 36, 56, 128, 130, 133, 145, 147, 163}


# --- A reader written from docs/wire.md alone, without the library: the document is enough.


class Plain:
    """Reads bytes by the document, one at a time."""

    def __init__(self, data: bytes, expected: list[float] | None = None) -> None:
        self.data, self.expected = data, expected or []

    def take(self, size: int) -> bytes:
        assert len(self.data) >= size
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def integer(self) -> int:
        number = shift = 0
        while True:
            (byte,) = self.take(1)
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def coordinates(self, dim: int) -> list[int]:
        count = self.integer()
        if count == 0:
            return []
        (mode,) = self.take(1)
        body = Plain(self.take(self.integer()))
        if mode == 1:
            return [j for j in range(dim) if body.data[j // 8] >> j % 8 & 1]
        listed, at = [], -1
        while body.data:
            at += body.integer() + 1
            listed.append(at)
        assert len(listed) == count
        return listed

    def values(self, count: int, code: int, dither: Dither) -> list[float]:
        if code <= 3:
            letter = "?fde"[code]
            return list(struct.unpack(f"<{count}{letter}", self.take(count * struct.calcsize(letter))))
        if code == 4:
            return [self.bfloat16() for _ in range(count)]
        if code > 160:
            return self.modulo(count, code - 160, dither)
        if code in (9, 10) or code > 128:
            return self.with_stated_noise(count, code, dither) if count else []
        if code >= 16 and count >= 512:
            return self.rotated(count, code, dither)
        scales = [self.bfloat16() for _ in range(math.ceil(count / 256))]
        width = {5: 8, 6: 4, 7: 1, 8: 2, 11: 16}.get(code, code // 16)
        stored = int.from_bytes(self.take(math.ceil(count * width / 8)), "little")
        levels, out = 2**width, []
        for i in range(count):
            c, A = stored % levels, scales[i // 256]
            stored //= levels
            s = 2.0 * A / (levels - 1)
            value = s * (c + 0.5 - levels / 2 - dither(i)) if A else 0.0
            out.append(struct.unpack("<f", struct.pack("<f", value))[0])
            assert A or c == 0
        assert stored == 0
        return out

    def rotated(self, count: int, code: int, dither: Dither) -> list[float]:
        """Values of the kinds 16 to 128."""
        sizes, B, f = [], code // 16, code % 16
        while count:
            sizes.append(4096 if count == 4096 or count >= 4608 else 2048 if count > 4096 else count)
            count -= sizes[-1]
        scales, out = struct.unpack(f"<{len(sizes)}f", self.take(4 * len(sizes))), []
        for t, (m, A) in enumerate(zip(sizes, scales, strict=True)):
            h = 8 * (m * f // 128)
            u = (self.levels(h, B + 1) if h else []) + self.levels(m - h, B)
            u, shrinkage = turned_back(u, t, dither)
            out += [single(x * (A * shrinkage)) if A else 0.0 for x in u]
        return out

    def modulo(self, count: int, b: int, dither: Dither) -> list[float]:
        """Values of the kinds 162 to 168, of one tile; ``expected`` says what they are near to."""
        step, checksum = struct.unpack("<fI", self.take(8))
        turns = dither.labelled(b"modulo")
        if step < 0:
            u, shrinkage = turned_back(self.levels(count, b), 0, turns)
            assert checksum == 0
            return [single(x * (-step * shrinkage)) for x in u]
        stored = int.from_bytes(self.take(math.ceil(count * b / 8)), "little")
        codes = [stored >> b * i & 2**b - 1 for i in range(count)]
        center, shrinkage = turned(self.expected, 0, turns)
        center = [x * shrinkage for x in center]
        aims = [x / step + dither(i) - 0.5 for i, x in enumerate(center)]
        points = [c + 2**b * round((aim - c) / 2**b) for c, aim in zip(codes, aims, strict=True)]
        assert checksum == zlib.crc32(struct.pack(f"<{count}q", *points))
        off = [single(step * (m + 0.5 - dither(i)) - x) for i, (m, x) in enumerate(zip(points, center, strict=True))]
        u, shrinkage = turned_back(off, 0, turns)
        return [single(x * shrinkage + e) for x, e in zip(u, self.expected, strict=True)]

    def with_stated_noise(self, count: int, code: int, dither: Dither) -> list[float]:
        """Values of the kinds 9, 10 and from 130 on."""
        (phi,) = struct.unpack("<f", self.take(4))
        assert 0.0 <= phi <= 0.25
        if code == 10:
            exponents, signs = self.take(count), self.take(math.ceil(count / 8))
            sizes = [2.0 ** (e - 127) if e else 0.0 for e in exponents]
            return [-x if signs[i // 8] >> i % 8 & 1 else x for i, x in enumerate(sizes)]
        m, L = (4096, 2 ** (code - 144)) if code > 144 else (512, 3 if code == 9 else 2 ** (code - 128) - 1)
        scales = struct.unpack(f"<{math.ceil(count / m)}f", self.take(4 * math.ceil(count / m)))
        if code == 9:
            codes = [byte // 3**i % 3 for byte in self.take(math.ceil(count / 5)) for i in range(5)]
            assert not any(codes[count:])
        else:
            width = L.bit_length() - (code > 144)
            stored = int.from_bytes(self.take(math.ceil(count * width / 8)), "little")
            assert stored < 2 ** (count * width)
            codes = [stored >> width * i & 2**width - 1 for i in range(count)]
        assert all(c < L for c in codes)
        out = []
        for t, A in enumerate(scales):
            here = [c - (L - 1) / 2 for c in codes[:count][m * t : m * (t + 1)]]
            turned, shrinkage = turned_back(here, t, dither.labelled(b"rotation")) if code > 144 else (here, 1.0)
            out += [single(2.0 * A / (L - 1) * shrinkage * x) if A else 0.0 for x in turned]
        return out

    def packed(self, count: int, dim: int) -> list[int]:
        """Packed coordinates."""
        low = int(math.log2(dim / count))
        high = count + (dim - 1) // 2**low
        coded = low > 0 and high + count * low < dim
        stored = int.from_bytes(self.take(math.ceil((high + count * low if coded else dim) / 8)), "little")
        places = [i for i in range(high if coded else dim) if stored >> i & 1]
        assert len(places) == count
        if not coded:
            return places
        below = [stored >> (high + low * i) & 2**low - 1 for i in range(count)]
        return [(place - i) * 2**low + rest for i, (place, rest) in enumerate(zip(places, below, strict=True))]

    def signs(self, count: int, code: int, dither: Dither) -> list[float]:
        """Signs of one magnitude."""
        (level,) = self.values(1, code if code <= 2 else 1, dither)
        signs = self.take(math.ceil(count / 8))
        return [-level if signs[i // 8] >> i % 8 & 1 else level for i in range(count)]

    def levels(self, count: int, width: int) -> list[float]:
        document = (Path(__file__).parents[2] / "docs" / "wire.md").read_text(encoding="utf-8")
        listed = re.search(rf"\n    {width} bits?: ([0-9 \n]+)\n", document)
        assert listed
        upper = [int(number) / 4096 for number in listed[1].split()]
        assert len(upper) == 2 ** (width - 1)
        q = [-x for x in reversed(upper)] + upper
        stored = int.from_bytes(self.take(math.ceil(count * width / 8)), "little")
        assert stored < 2 ** (count * width)
        return [q[stored >> width * i & 2**width - 1] for i in range(count)]

    def common(self, count: int, code: int, scale: float, dither: list[float]) -> list[float]:
        """Values with the scale of the plan."""
        beyond = dict.fromkeys(self.coordinates(count), 0)
        for i in beyond:
            beyond[i] = self.take(1)[0] + 1
        width = {5: 8, 6: 4, 7: 1, 8: 2}[code]
        stored = int.from_bytes(self.take(math.ceil(count * width / 8)), "little")
        levels, out = 2**width, []
        for i in range(count):
            c = stored % levels
            stored //= levels
            assert i not in beyond or c in (0, levels - 1)
            c += beyond.get(i, 0) * (1 if c else -1)
            value = 2.0 * scale / (levels - 1) * (c + 0.5 - levels / 2 - dither[i])
            out.append(struct.unpack("<f", struct.pack("<f", value))[0])
        return out

    def bfloat16(self) -> float:
        (value,) = struct.unpack("<f", b"\0\0" + self.take(2))
        return float(value)

    def levelled(self, count: int, code: int, dither: Dither) -> list[float]:
        if count == 0:
            return []
        (level,) = self.values(1, code if code <= 2 else 1, dither)
        larger = self.coordinates(count)
        signs = self.take((count - len(larger) + 7) // 8)
        whole = iter(self.values(len(larger), code, dither))
        out, small = [], 0
        for i in range(count):
            if i in larger:
                out.append(next(whole))
            else:
                out.append(-level if signs[small // 8] >> small % 8 & 1 else level)
                small += 1
        return out


def turned(a: list[float], t: int, stream: Dither) -> tuple[list[float], float]:
    """The rotation of tile t, and what undoes its growth."""
    m, a = len(a), [single(x) for x in a]
    S, k = (m - 1).bit_length(), m // 2
    P = 2 if m == 2**S else 3
    for p in range(P):
        a = [-x if stream.word(64 * (3 * t + p) + i // 64) >> i % 64 & 1 else x for i, x in enumerate(a)]
        for _ in range(S):
            middle = [single(a[k] * single(math.sqrt(2)))] if m % 2 else []
            pairs = [(a[i], a[i + m - k]) for i in range(k)]
            a = [x for u, v in pairs for x in (single(u + v), single(u - v))] + middle
    return a, math.sqrt(2.0 ** -(P * S))


def turned_back(u: list[float], t: int, stream: Dither) -> tuple[list[float], float]:
    """The transpose of the rotation of tile t, and what undoes its growth."""
    m = len(u)
    L = (m - 1).bit_length()
    P = 2 if m == 2**L else 3
    for p in reversed(range(P)):
        for _ in range(L):
            pairs = [(u[2 * i], u[2 * i + 1]) for i in range(m // 2)]
            middle = [single(u[-1] * single(math.sqrt(2)))] if m % 2 else []
            u = [single(a + b) for a, b in pairs] + middle + [single(a - b) for a, b in pairs]
        u = [-x if stream.word(64 * (3 * t + p) + i // 64) >> i % 64 & 1 else x for i, x in enumerate(u)]
    return u, math.sqrt(2.0 ** -(P * L))


def single(x: float) -> float:
    """The nearest number of single precision."""
    (near,) = struct.unpack("<f", struct.pack("<f", x))
    return float(near)


class Dither:
    """D_i, by the documents, of a part of a frame."""

    def __init__(self, seed: int, round: int, node: str, part: int, label: bytes = b"dither") -> None:
        self.of = seed, round, node, part
        message = b"sparsemean\x01" + bytes([len(label)]) + label
        message += struct.pack("<QQBB", seed, round, part, 1) + node.encode()
        self.key = struct.unpack("<QQ", hashlib.blake2b(message, digest_size=32).digest()[:16])

    def labelled(self, label: bytes) -> Dither:
        """The words of the same key under another label."""
        return Dither(*self.of, label)

    def __call__(self, i: int) -> float:
        word = self.word(i // 2)
        half = word >> 32 if i % 2 else word % 2**32
        return (half + 0.5) / 2**32 - 0.5

    def word(self, i: int) -> int:
        return self.mix(self.mix(self.key[0] + (i + 1) * 0x9E3779B97F4A7C15) ^ self.key[1])

    @staticmethod
    def mix(z: int) -> int:
        z %= 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31


def senders_dither(seed: int, round: int, dim: int, k: int, slots: int, slot: int) -> list[float]:
    """D of each value, by the document's own code."""
    names: dict[str, Any] = {}
    document = Path(__file__).parents[2] / "docs" / "sampling.md"
    for code in re.findall(r"```python\n(.*?)```", document.read_text("utf-8"), re.DOTALL):
        exec(code, names)
    return [(w + 0.5) / 2**32 - 0.5 for w in names["balanced_dither"](dim, k, slots, slot, seed, round)]


# RandK and Induced too, since how coordinates are drawn has a document, and a twin, of its own.
READ_BY_THE_DOCUMENT = (
    "identity",
    "top-k",
    "rtop-k",
    "chunked-top-k",
    "sign",
    "wangni",
    "lag",
    "rand-k-",
    "rand-k.",
    "induced-int8",
    "compact-rand-k",
    "compact-wangni",
    "compact-lag",
)


def stood_for(compact: bytes, story: dict[str, Any], version: int, digests: bytes, field: bytes) -> bytes:
    """The full frame that a compact one stands for, by the document."""
    scheme, t = story["run"]["scheme"], int(story["run"]["frame"].removeprefix("compact").removeprefix("-") or 4)
    checked = scheme["encoder"]["type"] in ("Difference", "Lazy", "Remembered", "Relative")
    lead, tag, body = compact[0], compact[1 : 1 + t], compact[1 + t + checked :]
    code = {"float32": 1, "float64": 2, "int8": 5, "int4": 6}[scheme["values"]]
    kind, basis = lead >> 7, story["basis"]
    assert (lead % 64, lead >> 6 & 1) == (story["round"] % 64, basis > 0)

    def start(basis: int) -> bytes:
        parts = struct.pack("<4B", version, kind, code, 0 if kind else 1)
        return b"SPMN" + parts + digests + struct.pack("<Q8sQI", story["round"], field, len(body), basis)

    key = bytes.fromhex(story.get("secret", ""))
    assert hashlib.blake2s(start(basis) + body, key=key).digest()[:t] == tag
    if checked:
        check, without = compact[1 + t], hashlib.blake2s(start(0) + body, key=key).digest()
        assert (check % 16, check // 16) == (zlib.crc32(compact[: 1 + t] + body) % 16, without[-1] // 16)
    return start(basis) + struct.pack("<I", zlib.crc32(start(basis) + body)) + body


@pytest.mark.parametrize("name", [name for name in NAMES if f"{name}.".startswith(READ_BY_THE_DOCUMENT)])
def test_a_reader_written_from_the_document_decodes_it(name):
    blob, story, _ = stored(name)
    encoder = story["run"]["scheme"]["encoder"]
    written = VERSION.get(name, 2 if "nodes" in story["run"] else 1)
    canonical = {"frame": written, "sampling": 1, "encoder": encoder, "values": story["run"]["scheme"]["values"]}
    scheme = hashlib.blake2b(json.dumps(canonical, sort_keys=True, separators=(",", ":")).encode(), digest_size=8)
    told = story["run"].keys() & {"dim", "blocks", "seed", "frame"}
    rest = {"scheme": scheme.hexdigest(), **{key: story["run"][key] for key in told}}
    run = hashlib.blake2b(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode(), digest_size=8)
    node = hashlib.blake2b(story["node"].encode(), digest_size=8)
    dim, nodes, slots, round = story["run"]["dim"], story["run"].get("nodes", []), 0, story["round"]
    if written == 1:
        wanted = struct.pack("<Q", dim)
    else:
        slot, slots = (nodes.index(story["node"]), len(nodes)) if story["node"] in nodes else (2**32 - 1, 0)
        terms = struct.pack("<BII", 1, slot, slots)
        if "scale" in story:
            terms = struct.pack("<BII", 3, slot, slots) + struct.pack("<f", story["scale"])[2:]
        if encoder.get("draw", {}).get("type") == "Epochs":  # without a plan, the round begins an epoch
            terms = struct.pack("<BIIQH", 2, slot, slots, round, 0)
        bound_to = run.digest() + node.digest() + struct.pack("<Q", round)
        tag = hashlib.blake2b(b"sparsemean plan" + bound_to + terms, digest_size=4).digest()
        wanted = struct.pack("<I", slot) + tag
    if name in COMPACT:
        blob = stood_for(blob, story, written, scheme.digest() + run.digest() + node.digest(), wanted)
    magic, version, kind, code, parts, *digests, said, field, length, _, crc = struct.unpack_from(
        "<4s4B8s8s8sQ8sQII", blob
    )
    assert field == wanted
    if story["decoded"] is None:
        assert (magic, version, kind, parts, length) == (b"SPMN", 1, 1, 0, 0)
        return
    reader, vector = Plain(blob[64:], story.get("expected")), [0.0] * dim
    if encoder["type"] == "OneOf":
        encoder = encoder["encoders"][reader.take(1)[0]]
    whole = [encoder] if encoder["type"] != "Induced" else [encoder["biased"], encoder["unbiased"]]
    assert (magic, version, kind, parts) == (b"SPMN", written, 0, len(whole))
    assert digests == [scheme.digest(), run.digest(), node.digest()]
    assert (said, length) == (round, len(blob) - 64)
    assert crc == zlib.crc32(blob[:60] + blob[64:])
    for part, one in enumerate(whole):
        scale, dither = 1.0, Dither(story["run"]["seed"], round, story["node"], part)
        if one["type"] in ("Identity", "Lazy", "Sign"):
            listed = list(range(dim))
        elif one["type"] == "RandK":
            k = {"induced-int8": 5, "rand-k-blocks": 10}.get(name, one["k"])
            scale, key = dim / k, Key(story["run"]["seed"], round, story["node"], part)
            if slots and one["draw"]["type"] in ("Balanced", "Epochs"):
                listed = drawn(balanced_sample_of(key, dim, k, slot, slots)).tolist()
                if "scale" in story and reader.take(1)[0]:
                    shared = senders_dither(story["run"]["seed"], round, dim, k, slots, slot)
                    for coordinate, value in zip(listed, reader.common(k, code, story["scale"], shared), strict=True):
                        vector[coordinate] = scale * value
                    continue
            else:
                listed = sample(key.shared() if one["shared"] else key, dim, k).tolist()
        elif one["type"] == "ChunkedTopK":
            listed = reader.packed(one["k"], dim)
        else:
            listed = reader.coordinates(dim)
        read = {"Wangni": reader.levelled, "Sign": reader.signs}.get(one["type"], reader.values)
        sent = read(len(listed), code, dither)
        for coordinate, value in zip(listed, sent, strict=True):
            vector[coordinate] += scale * value
    assert reader.data == b""
    assert vector == story["decoded"]


def test_the_tag_of_a_state_is_the_checksum_of_what_led_to_it():
    for name in ("diana", "diana-int8", "lag", "lag-unchanged"):
        blob, story, run = stored(name)
        client, basis = sm.Client(run, story["node"]), 0
        for round, vector in enumerate(story["vectors"], story["round"] - len(story["vectors"]) + 1):
            earlier = client.encode(vector, round)
            assert struct.unpack_from("<I", earlier, 56) == (basis,)
            client.delivered(
                sm.Receipt(story["node"], round, hashlib.blake2b(earlier[:64], digest_size=16).hexdigest())
            )
            basis = zlib.crc32(earlier, basis) or 1
        assert earlier == blob


def test_the_example_in_the_document_is_the_golden_frame():
    document = (Path(__file__).parents[2] / "docs" / "wire.md").read_text(encoding="utf-8")
    for name, start in (("wangni", 0), ("rand-k-int4", 64), ("compact-rand-k-int4", 0)):
        example = document.split(f"<!-- {name}.bin -->")[1].split("```")[1].removeprefix("text")
        assert (
            bytes.fromhex("".join(line.split("|")[0][5:] for line in example.splitlines())) == stored(name)[0][start:]
        )


def test_the_table_in_the_document_is_the_golden_frame():
    document = (Path(__file__).parents[2] / "docs" / "wire.md").read_text(encoding="utf-8").replace("−", "-")
    _, story, run = stored("rand-k-int4")
    drawn = sample(run.key(story["node"], story["round"]), run.dim, 10)
    dither = Dither(run.seed, story["round"], story["node"], 0)
    for i in range(4):
        _, at, x, w, D, _, value, _ = (
            cell.strip(" `") for cell in document.split("| coordinate |")[1].splitlines()[2 + i].split("|")
        )
        assert (int(at), float(x)) == (drawn[i], story["vectors"][0][drawn[i]])
        assert (int(w, 16) + 0.5) / 2**32 - 0.5 == float(D) == dither(i)
        assert 10 * float(value) == story["decoded"][drawn[i]]


def test_the_version_of_the_folder_is_the_version_of_the_frame():
    assert set(VERSION.values()) == set(frame.VERSIONS)
    assert all(stored(name)[0][4] == version for name, version in VERSION.items())
    assert all(stored(name)[2].compact is not None for name in COMPACT)
