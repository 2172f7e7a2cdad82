"""Fuzz the frame decoder, guided by coverage: needs ``pip install atheris`` (Linux, Python 3.11 to 3.13).

An input is one byte that chooses a run, then a frame. Nine mutants of ten get their length and checksum set right, or
nothing would get past those. Where the run's frames are compact, kind, basis and body of the frame are made into one,
whose tag is right where the checksum was. A worker stops at the first input that raises anything but a PayloadError,
takes a second, is not what we should have written ourselves, or holds more than BASE + TIMES · length bytes.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib.util
import json
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

WIRE = Path(__file__).parent.parent / "tests" / "golden" / "wire"
GOLDEN = [*sorted((WIRE / "v1").glob("*.bin")), *sorted((WIRE / "compact").glob("*.bin"))]
GIANTS = ("identity", "rand-k", "top-k", "wangni", "induced")  # in 2^40 dimensions, where any size may be announced
HEADER = 64
BASE, TIMES = 50_000, 400  # bytes that may be held: tables and errors, and so many for each byte of the frame
TRACED = 64  # one input in so many is traced, which is slow; all of them have ROOM bytes of address space and no more
ROOM = 1 << 30
CHUNK = 250_000  # inputs of one process: atheris itself leaks about a kilobyte for each
SLOW = 1.0
FIELDS = [(4, "<B"), (5, "<B"), (6, "<B"), (7, "<B"), (32, "<Q"), (40, "<Q"), (48, "<Q"), (56, "<I")]
WORDS = [0, 1, 2, 99, 100, 101, 1 << 31, 1 << 40, (1 << 42) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


def sealed(head: bytes, body: bytes, length: int | None = None) -> bytes:
    """A frame whose length, unless another is given, and checksum are right."""
    start = head[:48] + struct.pack("<Q", len(body) if length is None else length) + head[56:60]
    return start + struct.pack("<I", zlib.crc32(start + body)) + body


def mutant(data: bytes, most: int, seed: int, edit: Any) -> bytes:
    """A neighbour of the input: its body edited, a field of its header, its run, or anything at all."""
    rng = random.Random(seed)
    which, head, body = data[:1] or b"\0", data[1:61].ljust(60, b"\0"), data[65:]
    kind = rng.randrange(20)
    if kind == 0:
        return edit(data, most)
    if kind == 1:
        return which + head + struct.pack("<I", rng.getrandbits(32)) + body
    if kind == 2:
        return bytes([rng.randrange(256)]) + sealed(head, body)
    if kind < 6:
        at, form = rng.choice(FIELDS)
        word = rng.choice(WORDS) & (1 << 8 * struct.calcsize(form)) - 1
        changed = bytearray(head)
        struct.pack_into(form, changed, at, word)
        return which + sealed(bytes(changed), body, word if at == 48 else None)
    if kind == 6:
        return which + sealed(edit(head, 60).ljust(60, b"\0")[:60], body)
    return which + sealed(head, edit(body, most - HEADER - 1))


def worker(runs: int, seed: int, folder: Path) -> None:
    """One process: atheris ends it when it is done, so what it counted is written down as it goes."""
    import atheris

    with atheris.instrument_imports(include=["sparsemean"]):
        import numpy as np

        import sparsemean as sm
        from sparsemean import codec
        from sparsemean.codec import Known
        from sparsemean.wire import compact
        from sparsemean.wire.secret import Secret
        from sparsemean.wire.values import value_kind

    targets: list[tuple[sm.Run, str, Known | None]] = []
    seeds: list[bytes] = []
    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for path in GOLDEN:
        story, blob, known = json.loads(path.with_suffix(".json").read_text(encoding="utf-8")), path.read_bytes(), None
        run, node = sm.Run.from_json(json.dumps(story["run"])), story["node"]
        if run.compact is not None:
            plans = (run.listed_plan(node, story["round"]),) if run.planned else ()
            secret = Secret(bytes.fromhex(story["secret"]) if "secret" in story else None)
            known = Known(story["round"], plans, story["basis"], secret)
            said = compact.parse(run.compact, memoryview(blob))
            basis = struct.pack("<I", known.basis if said.builds else 0)
            blob = sealed(bytes(5) + bytes([said.kind]) + bytes(50) + basis, bytes(said.body))
        targets.append((run, node, known))
        seeds.append(blob)
    for name in GIANTS:
        run = sm.Run(sm.named(name, k=0.5), 1 << 40)
        head = codec.pack(run, "a", 0, None)
        head = head[:5] + bytes([0, head[6], len(run.layout)]) + head[8:60]
        targets.append((run, "a", None))
        seeds.append(sealed(head, b"\x01\0\x01\x05" + bytes(8)))
    for number, seed_frame in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(bytes([number]) + seed_frame)

    answers: collections.Counter[str] = collections.Counter()
    slowest = most_held = 0.0

    def as_compact(run: sm.Run, node: str, known: Known, blob: bytes) -> bytes:
        """The compact frame of this kind, basis and body; what is no whole frame is taken for one as it is."""
        if len(blob) < HEADER or blob != sealed(blob[:60], blob[HEADER:]):
            return blob
        kind, body, plan = blob[5] % 2, blob[HEADER:], known.plans[0] if known.plans else None
        choice = body[0] if len(run.encoders) > 1 and body else 0
        parts = len(run.layouts[choice]) if choice < len(run.layouts) and not kind else 0
        basis = known.basis if any(blob[56:60]) else 0
        header = codec.implied_header(run, node, known.round, plan, kind, parts, basis)
        return compact.start(run.compact, header, body, known.secret) + body

    def decoded(run: sm.Run, node: str, known: Known | None, blob: bytes) -> str:
        plan = known.plans[0] if known is not None and known.plans else None
        if known is not None:
            blob = as_compact(run, node, known, blob)
        try:
            header, body = codec.open_frame(run, node, blob, known)
            payload = codec.read_payload(run, node, header, body, plan)
        except sm.PayloadError as refused:
            return type(refused).__name__
        if payload is not None and not all(np.all(np.isfinite(part.values)) for part in payload.parts):
            raise AssertionError("values that are not finite were taken")
        if value_kind(run.scheme.values).exact:
            secret = None if known is None else known.secret
            if codec.pack(run, node, header.round, payload, header.basis, plan, secret=secret) != blob:
                raise AssertionError("a payload was taken that we should have written otherwise")
        return "taken"

    for target, seed_frame in zip(
        targets, seeds, strict=True
    ):  # caches and compiled loops, before anything is measured
        if decoded(*target, seed_frame) == "MalformedPayload" and target[2] is not None:
            raise AssertionError("a compact seed is not what it should be")

    @atheris.instrument_func
    def one_input(data: bytes) -> None:
        nonlocal slowest, most_held
        target = targets[data[0] % len(targets) if data else 0]
        count = answers.total()
        traced = count % TRACED == 0
        if traced:
            tracemalloc.start()
        began = time.thread_time()
        answers[decoded(*target, data[1:])] += 1
        seconds = time.thread_time() - began
        if traced:
            held = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            most_held = max(most_held, held / (BASE + TIMES * len(data)))
            if held > BASE + TIMES * len(data):
                raise AssertionError(f"{held} bytes were held for a frame of {len(data)}")
        else:
            slowest = max(slowest, seconds)
        if seconds > SLOW:
            raise AssertionError(f"one frame took {seconds} s")
        if count % 5000 == 0 or count >= runs - 1:
            report = {"answers": dict(answers), "slowest": slowest, "held": most_held}
            aside = folder / f"{seed}.aside"
            aside.write_text(json.dumps(report))
            aside.replace(folder / f"{seed}.json")

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    options = [f"-atheris_runs={runs}", f"-seed={seed}", "-max_len=1024", "-len_control=0", "-rss_limit_mb=0"]
    options += [f"-artifact_prefix={folder}/found-", "-report_slow_units=1000000"]  # by the clock; we count CPU time
    atheris.Setup(
        [sys.argv[0], *options, str(corpus)],
        one_input,
        custom_mutator=lambda data, most, seed: mutant(data, most, seed, lambda part, size: atheris.Mutate(part, size)),
    )
    atheris.Fuzz()


def write_corpus(corpus: Path, path: Path) -> None:
    """What the fuzzer kept as lines of text: the name of the run, and the frame."""
    names = [*(frame.stem for frame in GOLDEN), *(f"giant-{name}" for name in GIANTS)]
    inputs = sorted(entry.read_bytes() for entry in corpus.iterdir())
    lines = [f"{names[data[0] % len(names)]} {data[1:].hex()}\n" for data in inputs if len(data) > 1]
    path.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep the corpus, and what was found, here")
    parser.add_argument("--corpus", type=Path, help="write what the fuzzer kept to this file, for tests/golden")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.inputs, args.seed, args.folder)
        return
    if importlib.util.find_spec("atheris") is None:
        sys.exit("soak/fuzz.py needs atheris: pip install atheris, on Linux with Python 3.11 to 3.13")
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        seeds = iter(range(args.seed, args.seed + -(-args.inputs // CHUNK)))
        workers: list[subprocess.Popen[bytes]] = []
        failed, began = False, time.monotonic()
        while True:
            failed = failed or any(each.poll() for each in workers)
            workers = [each for each in workers if each.poll() is None]
            while not failed and len(workers) < args.workers and (seed := next(seeds, None)) is not None:
                inputs = min(CHUNK, args.inputs - (seed - args.seed) * CHUNK)
                command = [sys.executable, __file__, "--worker", "--inputs", str(inputs), "--folder", str(folder)]
                with (folder / f"{seed}.log").open("w") as log:
                    workers.append(subprocess.Popen([*command, "--seed", str(seed)], stdout=log, stderr=log))
            reports = [json.loads(path.read_text()) for path in folder.glob("*.json")]
            answers = sum((collections.Counter(report["answers"]) for report in reports), collections.Counter())
            print(f"\r{answers.total():,} of {args.inputs:,} inputs, {time.monotonic() - began:,.0f} s", end="")
            sys.stdout.flush()
            if not workers:
                break
            time.sleep(1.0)
        print()
        for answer, count in answers.most_common():
            print(f"{answer:20} {count:12,}")
        if reports:
            print(f"{'slowest, CPU s':20} {max(report['slowest'] for report in reports):12.4f}")
            print(f"{'most held':20} {max(report['held'] for report in reports):12.1%} of {BASE:,} + {TIMES} · length")
        print(f"{'corpus':20} {sum(1 for _ in (folder / 'corpus').iterdir()):12,}")
        if args.corpus:
            write_corpus(folder / "corpus", args.corpus)
        found = sorted(folder.glob("found-*"))
        for path in found:
            print(path.name, path.read_bytes().hex())
        if found or failed or answers.total() < args.inputs:
            logs = sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime)[-args.workers :]
            print("".join(path.read_text(errors="replace")[-3000:] for path in logs))
            sys.exit("fuzzing did not come to its end")


if __name__ == "__main__":
    main()
