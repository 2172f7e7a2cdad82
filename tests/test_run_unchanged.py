"""Runs that use no designed draw have the digests, the JSON and the bytes that they had before there were any."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import SchemeName
from sparsemean.wire.frame import frame_digest

OTHERS = {
    "one-of": sm.Scheme(sm.OneOf((sm.RandK(3), sm.RandK(0.5))), sm.Spatial("avg"), sm.PerNode(), "int8"),
    "shared": sm.Scheme(sm.RandK(4, shared=True)),
}

# Of the commit before frames of version 2: the run's digest, and those of its JSON and of two payloads.
BEFORE = {
    "identity": ("fc77c470317de26a", "773b3cc456cfede4", "882d8727b295eeb9"),
    "rand-k": ("2372f9f24132c8f7", "6b52151515d08eab", "057ea48645d65b38"),
    "rand-k-spatial-avg": ("2372f9f24132c8f7", "fabad5f44806144c", "057ea48645d65b38"),
    "rand-k-hybrid": ("2372f9f24132c8f7", "a0e5a4de4e9d93dd", "057ea48645d65b38"),
    "rand-k-temporal-window": ("2372f9f24132c8f7", "d43ee9fb754bc501", "057ea48645d65b38"),
    "top-k": ("7b185515e473c656", "53ffdec087602b65", "db26b0ab96030427"),
    "induced": ("69043c6102016a90", "150433e69e13e42a", "c32e239b79a16873"),
    "error-feedback-rand-k": ("47b1cbaa817a231d", "5e8cf1c9cd78128b", "b0a515a81e3b9b2f"),
    "diana": ("9551b785a67e37d9", "08689cddda0f09a2", "e9a67a661d1d6b1c"),
    "lag": ("1772ba2960fe47d0", "20e4409302673a75", "000b66dc750208ed"),
    "one-of": ("fc54d89330a1d1b1", "4dffe7f69d8762cd", "7350411d11d60432"),
    "shared": ("88f019c6a75d9f84", "ab509856945c65b5", "3d436742a00996db"),
}


def run_named(name: SchemeName) -> sm.Run:
    scheme = OTHERS[name] if name in OTHERS else sm.named(name, k=0.25)
    return sm.Run(scheme, 20, seed=11, blocks=[5, 15])


def short(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def payloads(run: sm.Run) -> list[bytes]:
    """Of two rounds, so that node state has moved."""
    client, found = sm.Client(run, "station-12"), []
    for round in range(2):
        vector = np.arange(20) / 4 - 2 + 5 * round * (np.arange(20) % 3)
        found.append(client.encode(vector, round))
        client.delivered(sm.Receipt("station-12", round, frame_digest(found[-1])))
    return found


def written(name: SchemeName) -> tuple[str, str, str]:
    run = run_named(name)
    return run.digest, short(run.to_json().encode()), short(b"".join(payloads(run)))


@pytest.mark.parametrize("name", BEFORE)
def test_digest_json_and_bytes_are_as_before(name: SchemeName) -> None:
    assert written(name) == BEFORE[name]
    assert [blob[4] for blob in payloads(run_named(name))] == [1, 1]


def test_draws_and_nodes_are_left_out_where_nobody_set_them() -> None:
    text = run_named("rand-k").to_json()
    assert json.loads(text) == {
        "scheme": {
            "type": "Scheme",
            "encoder": {"type": "RandK", "k": 0.25, "shared": False},
            "decoder": {"type": "Mean"},
            "memory": {"type": "Nothing"},
            "values": "float32",
        },
        "dim": 20,
        "seed": 11,
        "blocks": [5, 15],
    }
    said = sm.Run(sm.Scheme(sm.RandK(0.25, draw=sm.Independent())), 20, seed=11, blocks=[5, 15])
    assert said == run_named("rand-k")
    assert said.to_json() == text
    assert repr(said.scheme.encoder) == "RandK(k=0.25, shared=False)"
    assert sm.Run.from_json(text).nodes == ()


def test_a_balanced_draw_is_another_run_with_frames_of_its_own_version() -> None:
    plain = run_named("rand-k")
    balanced = sm.Run(sm.Scheme(sm.RandK(0.25, draw=sm.Balanced())), 20, seed=11, blocks=[5, 15], nodes=["station-12"])
    assert (plain.frame_version, balanced.frame_version) == (1, 2)
    assert plain.digest != balanced.digest
    assert [blob[4] for blob in payloads(balanced)] == [2, 2]
    assert plain.payload_bytes == balanced.payload_bytes
    assert sm.Run.from_json(balanced.to_json()) == balanced
