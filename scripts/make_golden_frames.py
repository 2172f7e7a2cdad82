"""Write the golden frames in ``tests/golden/wire``: what each version of the frame promises to read for ever.

Run it once when a version is new, and again only for a scheme that has no golden frame yet:

    python scripts/make_golden_frames.py [name ...]

A file that exists is never written again. Where today's code would write other bytes, the code is wrong, or the wire
version has to change and the new frames go to a folder of their own; the old ones stay.

Each ``<name>.bin`` is one frame; ``<name>.json`` beside it says how it came about: the run, the node, the round, the
vectors of that round and of the rounds delivered before it (the last one is the frame's), the scale of the plan where
it has one, what the server expects where values are read by it, the secret and the basis where frames are compact, and
the vector that the frame decodes to, null where it says "unchanged".
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import sparsemean as sm
from sparsemean import codec
from sparsemean.sampling import Plan
from sparsemean.schemes import scheme_name
from sparsemean.wire.secret import Secret
from sparsemean.wire.values import value_name

FOLDER = Path(__file__).parent.parent / "tests" / "golden" / "wire"
DIM, K, SEED = 100, 10, (1 << 63) + 11
NODE, ROUND = "Göteborg 7", 5
SLOTS = ("Malmö", NODE, "Lund", "Kiruna")  # of runs whose nodes need one
FEW_BITS = ("float16", "bfloat16", "int8", "int4", "2-bit", "1-bit")
SECRET = bytes(range(100, 132))


@dataclass(frozen=True)
class Case:
    """A run, and the vectors of the rounds up to the frame's own."""

    run: sm.Run
    vectors: list[list[float]]
    scale: float | None = None  # of the plan, which a server would have learnt
    expected: list[float] | None = None  # what the server expects, where values are read by it
    secret: bytes | None = None  # of the node, where frames are compact

    @property
    def first_round(self) -> int:
        """The round of the first vector."""
        return ROUND - len(self.vectors) + 1


def vector(round: int) -> list[float]:
    """Multiples of 1/32 without equal magnitudes, a few of them sixteen times as large: exact in single precision.

    >>> vector(0)[:4]
    [-78.5, -0.28125, 4.34375, -3.65625]
    >>> len({abs(x) for x in vector(0)})
    100
    """
    return [((37 * j + 29 * round + 11) % 101 - 50.25) / 8 * (16 if j % 17 == 0 else 1) for j in range(DIM)]


def long_vector(round: int) -> list[float]:
    """256 entries with more digits than 16 bits hold, then 45 that are 0.

    >>> len(long_vector(0)), long_vector(0)[1], sum(map(abs, long_vector(0)[256:]))
    (301, -0.281524658203125, 0.0)
    """
    return [x * (1 + j / 1024) for j, x in enumerate(vector(round) * 3)][:256] + [0.0] * 45


def repeated(round: int, count: int) -> list[float]:
    """As many entries of ``vector`` as there shall be, over and over."""
    return (vector(round) * (count // DIM + 1))[:count]


def sampled(name: str, values: str) -> Case:
    """Of K coordinates of one vector."""
    return Case(sm.Run(sm.named(scheme_name(name), k=K, values=value_name(values)), DIM, SEED), [vector(ROUND)])


def cases() -> dict[str, Case]:
    """Every named scheme, and what the names leave out."""
    made: dict[str, Case] = {}
    for name in sm.names():
        options: dict[str, Any] = {"ratio": 1.5} if name == "rand-k-spatial-opt" else {}
        scheme = sm.named(name, k=K, **options)
        rounds = range(ROUND - 2, ROUND + 1) if scheme.node_state else [ROUND]
        nodes = SLOTS if scheme.encoder.facts.planned else None
        made[name] = Case(sm.Run(scheme, DIM, SEED, nodes=nodes), [vector(round) for round in rounds])
    for name in ("rand-k", "wangni"):
        made[f"{name}-float64"] = sampled(name, "float64")
    made["rand-k-blocks"] = Case(sm.Run(sm.named("rand-k", k=0.1), DIM, SEED, blocks=[1, 29, 70]), [vector(ROUND)])
    made["rand-k-shared"] = Case(sm.Run(sm.Scheme(sm.RandK(K, shared=True)), DIM, SEED), [vector(ROUND)])
    made["rand-k-one-of"] = Case(sm.Run(sm.named("rand-k", k=(K, 2 * K)), DIM, SEED), [vector(ROUND)])
    made["top-k-bitmap"] = Case(sm.Run(sm.named("top-k", k=50), DIM, SEED), [vector(ROUND)])
    for values in map(value_name, FEW_BITS):
        for name in ("rand-k", "wangni"):
            made[f"{name}-{values}"] = sampled(name, values)
        # A whole group and a shorter one, which is 0, of an odd number of values.
        made[f"identity-{values}"] = Case(sm.Run(sm.named("identity", values=values), 301, SEED), [long_vector(ROUND)])
    for name, dim, sent in (("rand-k", DIM, vector(ROUND)), ("identity", 301, long_vector(ROUND))):
        made[f"{name}-int16"] = Case(sm.Run(sm.named(scheme_name(name), k=K, values="int16"), dim, SEED), [sent])
    for name in ("rand-k", "wangni"):  # so few values are dithered
        made[f"{name}-eden-3.5"] = sampled(name, "eden-3.5")
    for values, dim in (("eden-1", 600), ("eden-8", 512), ("eden-2.25", 4097)):  # the last: tiles of 2,048 and 2,049
        run = sm.Run(sm.named("identity", values=value_name(values)), dim, SEED)
        made[f"identity-{values}"] = Case(run, [repeated(ROUND, dim)])
    for values in map(value_name, ("terngrad", "natural", "qsgd-2", "qsgd-5", "rotated-1", "rotated-3")):
        for name in ("rand-k", "wangni"):
            made[f"{name}-{values}"] = sampled(name, values)
        # Groups of 512, one of them 0, and a shorter one of an odd number of values; or a tile of 4,096 and one of 5.
        run = sm.Run(sm.named("identity", values=values), 4101 if values == "rotated-3" else 1035, SEED)
        sent = repeated(ROUND, run.dim)
        if run.dim == 1035:
            sent[512:1024] = [0.0] * 512
        made[f"identity-{values}"] = Case(run, [sent])
    for values in map(value_name, ("float64", "2-bit")):
        # 10 coordinates in Elias and Fano's code; then 30, as a bitmap
        chunked = sm.ChunkedTopK(K if values == "float64" else 3 * K, chunk=32)
        made[f"chunked-top-k-{values}"] = Case(sm.Run(sm.Scheme(chunked, values=values), DIM, SEED), [vector(ROUND)])
        made[f"sign-{values}"] = Case(sm.Run(sm.Scheme(sm.Sign(), values=values), DIM, SEED), [vector(ROUND)])
    made["rand-k-shared-int8"] = Case(
        sm.Run(sm.Scheme(sm.RandK(K, shared=True), values="int8"), DIM, SEED), [vector(ROUND)]
    )
    made["top-k-int4"] = Case(sm.Run(sm.named("top-k", k=K, values="int4"), DIM, SEED), [vector(ROUND)])
    made["induced-int8"] = Case(sm.Run(sm.named("induced", k=K, values="int8"), DIM, SEED), [vector(ROUND)])
    made["diana-int8"] = Case(
        sm.Run(sm.named("diana", k=K, values="int8"), DIM, SEED),
        [vector(round) for round in range(ROUND - 2, ROUND + 1)],
    )
    balanced = sm.RandK(K, draw=sm.Balanced())
    made["rand-k-balanced-no-slot"] = Case(sm.Run(sm.Scheme(balanced), DIM, SEED, nodes=SLOTS[2:]), [vector(ROUND)])
    made["rand-k-balanced-int8"] = Case(
        sm.Run(sm.Scheme(balanced, values="int8"), DIM, SEED, nodes=SLOTS), [vector(ROUND)]
    )
    most = sm.RandK(3 * DIM // 4, draw=sm.Balanced())  # three senders for each coordinate; some values beyond the codes
    for values, scale in (("int8", 6.0), ("int4", 6.0), ("2-bit", 32.0), ("1-bit", 32.0)):  # int8: its own is chosen
        run = sm.Run(sm.Scheme(most, values=value_name(values)), DIM, SEED, nodes=SLOTS)
        made[f"rand-k-balanced-{values}-scale"] = Case(run, [vector(ROUND)], scale=scale)
    made["diana-balanced"] = Case(
        sm.Run(sm.Scheme(sm.Difference(balanced), memory=sm.Offset()), DIM, SEED, nodes=SLOTS),
        [vector(round) for round in range(ROUND - 2, ROUND + 1)],
    )
    made["remembered-eden-1.5"] = Case(
        sm.Run(sm.Scheme(sm.Remembered(sm.Identity()), memory=sm.Hybrid(), values="eden-1.5"), 600, SEED),
        [repeated(round, 600) for round in range(ROUND - 2, ROUND + 1)],
    )
    known = sm.Run(sm.Scheme(sm.Identity(), memory=sm.Hybrid(), values="modulo-3"), 600, SEED)
    for case, near in (("identity-modulo-3", [0.0] * 600), ("identity-modulo-3-near", repeated(ROUND, 600))):
        made[case] = Case(known, [[x + (j % 7 - 3) / 64 for j, x in enumerate(repeated(ROUND, 600))]], expected=near)
    made["rand-k-balanced-one-of"] = Case(
        sm.Run(sm.named("rand-k-balanced", k=(2 * K, K)), DIM, SEED, nodes=SLOTS), [vector(ROUND)]
    )
    made["lag-unchanged"] = Case(sm.Run(sm.named("lag"), DIM, SEED), [vector(ROUND)] * 2)
    return made | {f"compact-{name}": case for name, case in compact_cases().items()}


def compact_cases() -> dict[str, Case]:
    """Frames without a header: with a secret and without, by a plan, with a state, of a choice, with a long tag."""

    def case(name: str, rounds: int = 1, frame: str = "compact", secret: bytes | None = SECRET, **options: Any) -> Case:
        scheme = sm.named(scheme_name(name), **options)
        nodes = SLOTS if scheme.encoder.facts.planned else None
        run = sm.Run(scheme, DIM, SEED, nodes=nodes, frame=frame)
        return Case(run, [vector(round) for round in range(ROUND - rounds + 1, ROUND + 1)], secret=secret)

    lag = case("lag", k=None, values="float64")
    return {
        "rand-k-int4": case("rand-k", k=K, values="int4"),
        "rand-k-int4-no-secret": case("rand-k", k=K, values="int4", secret=None),
        "rand-k-one-of": case("rand-k", k=(K, 2 * K), frame="compact-16"),
        "rand-k-balanced-int8": case("rand-k-balanced", k=K, values="int8"),
        "wangni-int8": case("wangni", k=K, values="int8"),
        "lag-float64": lag,
        "lag-unchanged": replace(lag, vectors=lag.vectors * 2),
        "diana-int8": case("diana", k=K, rounds=3, values="int8"),
    }


def golden(case: Case) -> tuple[bytes, list[float] | None, int]:
    """The frame of the last vector, the others having been delivered, what it decodes to, and its basis."""
    plan = case.run.listed_plan(NODE, ROUND) if case.run.planned else None
    if plan is not None and case.scale is not None:
        plan = replace(plan, scale=case.scale)
        told = codec.pack_plan(case.run, NODE, ROUND, plan)
        return _decoded(case, sm.Client(case.run, NODE).encode(case.vectors[-1], ROUND, told), plan)
    if case.expected is not None:
        near = np.array(case.expected)
        told = codec.pack_sketch(case.run, NODE, ROUND, near.__getitem__)
        blob = sm.Client(case.run, NODE).encode(case.vectors[-1], ROUND, sketch=told)
        payload = codec.read_payload(case.run, NODE, *codec.open_frame(case.run, NODE, blob))
        assert payload is not None
        assert payload.parts[0].wrapped is not None
        return blob, payload.parts[0].wrapped.near(near).values.tolist(), 0
    secrets = None if case.secret is None else {NODE: case.secret}
    client, basis = sm.Client(case.run, NODE, secret=case.secret), 0
    server = sm.Server(case.run, round=case.first_round, secrets=secrets)
    for sent in case.vectors:
        before, blob = basis, client.encode(sent, server.round)
        client.delivered(server.accept(NODE, blob))
        basis = codec.next_basis(basis, blob) if case.run.in_step else 0
        server.skip_round()
    return _decoded(case, blob, plan, before)


def _decoded(case: Case, blob: bytes, plan: Plan | None, basis: int = 0) -> tuple[bytes, list[float] | None, int]:
    known = codec.Known(ROUND, () if plan is None else (plan,), basis, Secret(case.secret))
    payload = codec.read_payload(case.run, NODE, *codec.open_frame(case.run, NODE, blob, known), plan)
    return blob, None if payload is None else payload.dense(case.run.dim).tolist(), basis


def main() -> None:
    """Write what is not there yet, of the names given or of all."""
    for name, case in cases().items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        folder = FOLDER / (f"v{case.run.frame_version}" if case.run.compact is None else "compact")
        folder.mkdir(parents=True, exist_ok=True)
        frame_file, text_file = folder / f"{name}.bin", folder / f"{name}.json"
        if frame_file.exists() or text_file.exists():
            print(f"{name}: is there, left alone")
            continue
        blob, decoded, basis = golden(case)
        story = {"run": json.loads(case.run.to_json()), "node": NODE, "round": ROUND}
        scale = {} if case.scale is None else {"scale": case.scale}
        near = {} if case.expected is None else {"expected": case.expected}
        left_out: dict[str, Any] = {} if case.run.compact is None else {"basis": basis}
        if case.secret is not None:
            left_out["secret"] = case.secret.hex()
        text = {**story, **scale, **near, **left_out, "vectors": case.vectors, "decoded": decoded}
        with text_file.open("x", encoding="utf-8") as file:
            # One line for each list of numbers keeps differences readable.
            lines = (f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in text.items())
            file.write("{\n" + ",\n".join(lines) + "\n}\n")
        with frame_file.open("xb") as file:
            file.write(blob)
        print(f"{name}: {len(blob)} bytes")


if __name__ == "__main__":
    main()
