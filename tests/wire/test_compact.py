"""Compact frames: what is left out of a frame, and what of that comes back or is refused."""

from __future__ import annotations

import collections
import json
import random
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean import codec
from sparsemean._names import Knowledge
from sparsemean.codec import Known
from sparsemean.schemes import scheme_name
from sparsemean.wire import compact
from sparsemean.wire.secret import Secret

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((ROOT / "tests" / "golden" / "wire" / "compact").glob("*.bin"))
SOAK = ROOT / "soak" / "wrong_frames.py"
Z = 4.5

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
secrets = st.none() | st.binary(min_size=16, max_size=32)


def run_of(name: str = "rand-k", dim: int = 20, frame: str = "compact", **options: Any) -> sm.Run:
    return sm.Run(sm.named(scheme_name(name), **({"k": 5} | options)), dim, seed=3, frame=frame)


@given(names, st.integers(0, 2**63 - 1), st.integers(-32, 31), secrets, st.integers(4, 16), st.integers(0, 2**32))
def test_a_frame_comes_back_with_the_header_that_it_left_out(node, near, off, secret, tag_bytes, seed):
    run = run_of(values="int8", frame=f"compact-{tag_bytes}")
    round = min(max(near + off, 0), 2**63 - 1)
    vector = np.random.default_rng(seed).normal(size=20)
    blob = sm.Client(run, node, secret=secret).encode(vector, round)
    assert len(blob) == run.payload_bytes == 1 + tag_bytes + 2 + 5
    assert codec.round_of(run, blob, near) == round
    header, body = codec.open_frame(run, node, blob, Known(round, secret=Secret(secret)))
    assert header == codec.implied_header(run, node, round, None)
    full = run_of(values="int8", frame="full")
    assert bytes(body) == sm.Client(full, node).encode(vector, round)[64:]


@pytest.mark.parametrize("near", [0, 5, 31, 32, 63, 64, 1000, 2**63 - 1])
def test_the_round_is_the_one_within_32_of_the_open_one(near):
    run = run_of()
    for round in range(max(0, near - 32), min(near + 32, 2**63)):
        blob = codec.pack(run, "a", round, None)
        assert codec.round_of(run, blob, near) == round
    if 32 < near < 2**62:  # where there is nothing beyond, the only one with these bits is farther away
        for far in (near + 32, near - 33):
            assert codec.round_of(run, codec.pack(run, "a", far, None), near) != far


def stored(path: Path) -> tuple[bytes, sm.Run, str, Known]:
    """A golden frame, whose it is, and what a receiver knows of it."""
    story = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    run, node, round = sm.Run.from_json(json.dumps(story["run"])), story["node"], story["round"]
    plans = (run.listed_plan(node, round),) if run.planned else ()
    secret = Secret(bytes.fromhex(story["secret"]) if "secret" in story else None)
    return path.read_bytes(), run, node, Known(round, plans, story["basis"], secret)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_flipped_bit_every_truncation_and_every_addition_is_refused(path):
    blob, run, node, known = stored(path)
    codec.open_frame(run, node, blob, known)
    whole = int.from_bytes(blob, "little")
    flipped = [(whole ^ 1 << bit).to_bytes(len(blob), "little") for bit in range(8 * len(blob))]
    cut = [blob[:size] for size in range(len(blob))]
    for wrong in (*flipped, *cut, blob + b"\0", blob * 2):
        with pytest.raises(sm.PayloadError):
            codec.open_frame(run, node, wrong, known)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_whoever_has_the_secret_can_send_only_what_we_should_have_written(path):
    blob, run, node, known = stored(path)
    form, rng, answers = run.compact, random.Random(6), collections.Counter[str]()
    assert form is not None
    plan = known.plans[0] if known.plans else None
    header, right = codec.open_frame(run, node, blob, known)
    for _ in range(300):
        body = bytearray(right)
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(len(body) + 1)
            body[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
        made = compact.start(form, header, bytes(body), known.secret) + body
        try:
            payload = codec.read_payload(run, node, *codec.open_frame(run, node, made, known), plan)
        except sm.PayloadError as refused:
            answers[type(refused).__name__] += 1
        else:
            answers["taken"] += 1
            if run.value_kind.exact:
                again = codec.pack(run, node, known.round, payload, header.basis, plan, secret=known.secret)
                assert again == made
    assert set(answers) <= {"MalformedPayload", "NonFiniteValues", "taken"}
    assert answers["MalformedPayload"] > 100


@pytest.mark.parametrize("stateful", [False, True])
def test_wrong_frames_are_taken_as_rarely_as_the_tag_says(stateful):
    soak = runpy.run_path(str(SOAK))
    found = soak["answers"](10_000, 1, stateful, seed=5)
    assert abs(soak["z_of"](*soak["by_tag_alone"](found, stateful), 1)) < Z
    of_four = soak["answers"](10_000, 4, stateful, seed=5)
    assert not [key for key in of_four if key[1] == "taken"]
    if stateful:  # the check names what is wrong, and errs once in 16 times
        told = {"state": "OutOfStep", "secret": "ForeignPayload", "run": "ForeignPayload", "bit": "MalformedPayload"}
        for what, answer in told.items():
            tried = sum(count for (kind, _), count in of_four.items() if kind == what)
            assert of_four[what, answer] > 0.87 * tried, what


def test_the_full_form_and_its_digest_stay_as_they_were():
    run, same = run_of(frame="full"), sm.Run(sm.named("rand-k", k=5), 20, seed=3)
    assert (run.to_json(), run.digest, run) == (same.to_json(), same.digest, same)
    assert "frame" not in json.loads(run.to_json())


def test_a_compact_run_is_another_run_by_the_length_of_its_tag():
    runs = [run_of(frame=frame) for frame in ("full", "compact", "compact-8")]
    assert len({run.digest for run in runs}) == 3
    assert [run.payload_bytes for run in runs] == [64 + 20, 5 + 20, 9 + 20]
    assert [sm.Run.from_json(run.to_json()) for run in runs] == runs
    assert run_of(frame="compact-4") == run_of(frame="compact")


@pytest.mark.parametrize(
    "frame", ["", "short", "compact-3", "compact-17", "compact-", "compact-08x", None, 4, ["full"]]
)
def test_other_forms_are_refused(frame):
    with pytest.raises(sm.InvalidInput, match="frame is"):
        run_of(frame=frame)


@pytest.mark.parametrize(
    ("name", "header"), [("rand-k", 5), ("rand-k-balanced", 5), ("error-feedback-rand-k", 5), ("diana", 6), ("lag", 6)]
)
def test_only_frames_that_build_on_a_state_have_a_check(name, header):
    assert run_of(name).header_bytes == header


def test_auto_fills_the_bytes_that_a_compact_header_leaves():
    kinds: list[tuple[Knowledge, int]] = [("stateless", 5), ("broadcast", 6), ("stateful", 6)]
    for node, header in kinds:
        run = sm.Run(sm.named("auto", bytes=51, node=node), 267, seed=1, frame="compact")
        full = sm.Run(sm.named("auto", bytes=51 + 64 - header, node=node), 267, seed=1)
        assert (run.header_bytes, {each.header_bytes for each in run.options}) == (header, {header})
        assert run.payload_bytes <= 51
        assert [each.scheme for each in run.options] == [each.scheme for each in full.options]


@pytest.mark.parametrize("size", [11, 51, 115, 222])
@pytest.mark.parametrize("values", ["int8", "int4", "2-bit", "float16"])
def test_payloads_fit_a_radio(size, values):
    run = sm.Run.for_bytes("rand-k-spatial-avg", 267, size, values=values, frame="compact")
    blob = sm.Client(run, "a").encode(np.arange(267), 0)
    assert len(blob) == run.payload_bytes <= size
    assert len(blob) >= size - 1 or run.layout[0].count == 267


def test_what_is_too_small_says_how_much_the_header_takes():
    with pytest.raises(sm.InvalidInput, match="at least 9 bytes a payload, of which 5 are the header, got bytes=8"):
        sm.Run.for_bytes("rand-k", 267, 8, frame="compact")
    with pytest.raises(sm.InvalidInput, match='or frame="compact"'):
        sm.Run.for_bytes("rand-k", 267, 51)


def test_a_compact_frame_is_not_opened_without_what_it_leaves_out():
    run = run_of()
    with pytest.raises(sm.InvalidInput, match="give known="):
        codec.open_frame(run, "a", sm.Client(run, "a").encode(np.zeros(20), 0))


def test_secrets_are_not_shown():
    secret = Secret(b"never to be seen by anyone")
    assert repr([secret, Known(3, secret=secret)]).count("Secret(…)") == 2
    assert "never" not in repr([secret, Known(3, secret=secret)])


def test_a_full_frame_to_a_compact_run_is_named_as_such():
    full = sm.Client(run_of(frame="full"), "a").encode(np.ones(20), round=0)
    with pytest.raises(sm.MalformedPayload, match=r"a full frame, .* give the node this Run"):
        sm.Server(run_of()).accept("a", full)
