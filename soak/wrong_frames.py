"""Compact frames that another run, node, round, scheme, secret or state made: how many are taken, by length of the tag.

A tag of t bytes may take a wrong frame with probability 2^(−8t). With 4 bytes, the least that a run can have, none of
ten million should be; with 1 and 2 bytes, which only this script gives to a run, the rate itself can be measured.
Every frame is otherwise as it should be: only what is left out of it differs, and rounds only by multiples of 64.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import sparsemean as sm
from sparsemean import codec
from sparsemean.codec import Known
from sparsemean.wire import compact
from sparsemean.wire.compact import Compact
from sparsemean.wire.secret import Secret

NODE, ROUND, BASIS = "station-12", 1000, 0x5EED
SECRET = Secret(bytes(range(32)))
CHUNK = 100_000
Z = 4.5


def run_with(tag_bytes: int, stateful: bool) -> sm.Run:
    """A run whose tags may be shorter than any that a user gets."""
    run = sm.Run(sm.named("diana" if stateful else "rand-k", k=38, values="int8"), 267, seed=7, frame="compact")
    object.__setattr__(run, "compact", Compact(tag_bytes, stateful))
    return run


def wrong_frames(run: sm.Run, rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """For ever: what is wrong with a frame, and the frame."""
    form = run.compact
    assert form is not None
    size = run.payload_bytes - form.header_bytes
    right = codec.implied_header(run, NODE, ROUND, None, basis=BASIS if form.checked else 0)
    while True:
        body, other = rng.randbytes(size), rng.randbytes(8)
        near = ROUND + 64 * rng.choice((-3, -2, -1, 1, 2, 3))
        wrong = {
            "run": (replace(right, run=other), SECRET),
            "scheme": (replace(right, scheme=other), SECRET),
            "node": (replace(right, node=other), SECRET),
            "round": (replace(right, round=near), SECRET),
            "secret": (right, Secret(rng.randbytes(32))),
            "no secret": (right, Secret()),
        }
        if form.checked:
            wrong["state"] = (replace(right, basis=rng.randrange(1, 1 << 32)), SECRET)
        for what, (header, secret) in wrong.items():
            yield what, compact.start(form, header, body, secret) + body
        made = compact.start(form, right, body, SECRET) + body
        bit = rng.randrange(8 * len(made))
        yield "bit", (int.from_bytes(made, "little") ^ 1 << bit).to_bytes(len(made), "little")


def answers(count: int, tag_bytes: int, stateful: bool, seed: int) -> collections.Counter[tuple[str, str]]:
    """How often which kind of wrong frame was answered by which error, or "taken"."""
    run, found = run_with(tag_bytes, stateful), collections.Counter[tuple[str, str]]()
    known = Known(ROUND, basis=BASIS, secret=SECRET)
    for _, (what, blob) in zip(range(count), wrong_frames(run, random.Random(seed)), strict=False):
        try:
            codec.open_frame(run, NODE, blob, known)
        except sm.PayloadError as refused:
            found[what, type(refused).__name__] += 1
        else:
            found[what, "taken"] += 1
    return found


def by_tag_alone(found: collections.Counter[tuple[str, str]], stateful: bool) -> tuple[int, int]:
    """How many frames nothing but the tag could tell from right ones, and how many of these were taken.

    What a bit was flipped in may be refused for its lead, and the check finds most that are not of another state.
    """
    kinds = {what for what, _ in found if what == "state" or (what != "bit" and not stateful)}
    told = {key: count for key, count in found.items() if key[0] in kinds}
    return sum(told.values()), sum(count for (_, answer), count in told.items() if answer == "taken")


def z_of(tried: int, taken: int, tag_bytes: int) -> float:
    """How many standard deviations the number of those taken is off 2^(−8t)."""
    p = 2.0 ** (-8 * tag_bytes)
    return float((taken - tried * p) / (tried * p * (1 - p)) ** 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=10_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    failed = False
    with ProcessPoolExecutor(args.workers) as processes:
        for tag_bytes, stateful, frames in (
            (4, False, args.frames),
            (4, True, args.frames // 10),
            (2, False, args.frames // 10),
            (1, False, args.frames // 50),
            (1, True, args.frames // 50),
        ):
            began = time.monotonic()
            sizes = [min(CHUNK, frames - first) for first in range(0, frames, CHUNK)]
            settings = [tag_bytes] * len(sizes), [stateful] * len(sizes), range(args.seed, args.seed + len(sizes))
            found = sum(processes.map(answers, sizes, *settings), collections.Counter())
            tried, taken = by_tag_alone(found, stateful)
            z = z_of(tried, taken, tag_bytes)
            all_taken = sum(count for (_, answer), count in found.items() if answer == "taken")
            failed = failed or abs(z) > Z or (tag_bytes == 4 and all_taken > 0)
            kind = "with a check" if stateful else "without a check"
            print(f"tag of {tag_bytes} bytes, {kind}: {frames:,} wrong frames in {time.monotonic() - began:,.0f} s;")
            print(f"  {all_taken:,} taken; of {tried:,} that the tag alone can tell {taken:,}, z = {z:+.2f}")
            for (what, answer), count in sorted(found.items()):
                print(f"  {what:10} {answer:18} {count:12,}")
            sys.stdout.flush()
    if failed:
        sys.exit("more or fewer wrong frames are taken than the tags promise")


if __name__ == "__main__":
    main()
