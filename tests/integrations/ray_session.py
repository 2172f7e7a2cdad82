"""All checks that need Ray, in one session on a cluster of two nodes; what they found is printed as JSON.

Run by test_ray.py in a network of its own, for this release of Ray listens on all addresses of the machine.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray._common.utils import get_ray_address_file
from ray.cluster_utils import Cluster
from ray_load import NODES, Judge, payload, served  # type: ignore[import-not-found]

import sparsemean as sm
from sparsemean._names import Missing
from sparsemean.integrations.ray import RayServer, shards
from sparsemean.integrations.ray.pieces import pieces
from sparsemean.integrations.ray.round_end import RoundEnd
from sparsemean.integrations.ray.shard import Shard
from sparsemean.journal import faults
from sparsemean.server.local import Entry
from sparsemean.server.submissions import submission_of
from sparsemean.wire.frame import frame_digest

DIM, LAYERS = 20_000, (3_000, 9_000, 8_000)  # of which neither 2 nor 3 shards begin where a layer does
WEIGHTS = {f"node-{i}": [1.0 + i, 2.0, 0.0 if i == 1 else 1.5] for i in range(5)}
SAME = {
    "diana": sm.named("diana", k=0.05),
    "rand-k-epochs-hybrid": sm.named("rand-k-epochs-hybrid", k=(0.25, 0.02), values="int8"),
}
SCHEMES = SAME | {  # of the other checks
    "rand-k-temporal": sm.named("rand-k-temporal", k=0.05),
    "rand-k-hybrid": sm.named("rand-k-hybrid", k=(0.05, 0.02)),
    "rand-k-balanced-hybrid": sm.named("rand-k-balanced-hybrid", k=0.3),
    "balanced, given T": sm.Scheme(sm.RandK(0.3, draw=sm.Balanced()), sm.Spatial("avg"), sm.PerNode()),
}


class Both:
    """A RayServer and a Server that are told the same."""

    def __init__(self, run: sm.Run, shards: int, **options: Any) -> None:
        self.run = run
        missing: Missing = "carry" if run.scheme.memory.facts.stands_in else "drop"
        self.plain = sm.Server(run, missing=missing)
        self.sharded = RayServer(run, shards=shards, missing=missing, **options)
        self.clients = [sm.Client(run, node, run.encoders[i % len(run.encoders)]) for i, node in enumerate(WEIGHTS)]
        self.random = np.random.default_rng(1)
        self.base = self.random.normal(size=run.dim)
        self.asked = list(WEIGHTS)[:0:-1]  # the first node has no slot, where there are any
        self.same_plans = True

    def payloads(self) -> dict[str, bytes]:
        """One node in four is away."""
        round = self.plain.round
        plans, sharded = ({**each.plans(self.asked), **each.plans(WEIGHTS)} for each in (self.plain, self.sharded))
        self.same_plans &= plans == sharded
        return {
            client.node: client.encode(self.base + self.random.normal(size=self.run.dim), round, plans[client.node])
            for number, client in enumerate(self.clients)
            if (number + round) % 4 != 3
        }

    def accept(self, payloads: dict[str, bytes]) -> bool:
        """Whether both answered alike."""
        weights = WEIGHTS if len(self.run.blocks) == len(LAYERS) else None
        plain, sharded = (server.accept_many(payloads, weights) for server in (self.plain, self.sharded))
        for client in self.clients:
            if client.node in payloads:
                client.delivered(dict(plain)[client.node])  # type: ignore[arg-type]
        return plain == sharded

    def close(self) -> dict[str, Any]:
        return difference(self.plain.close_round(), self.sharded.close_round())

    def expected(self) -> float:
        """How far the memories of the two are apart."""
        return max(float(np.abs(self.plain.expected(n) - self.sharded.expected(n)).max()) for n in WEIGHTS)


def difference(plain: sm.Estimate, sharded: sm.Estimate) -> dict[str, Any]:
    """How far two estimates are apart, relative to the larger numbers in them."""
    numbers = [(getattr(plain, name), getattr(sharded, name)) for name in ("error", "error_se", "rounding")] + [
        (getattr(plain.correlation, name, None), getattr(sharded.correlation, name, None)) for name in ("r1", "r2")
    ]
    assert all((a is None) == (b is None) for a, b in numbers)
    return {
        "bits": bool(np.array_equal(plain.mean, sharded.mean)),
        "mean": float(np.abs(plain.mean - sharded.mean).max() / np.abs(plain.mean).max()),
        "numbers": max((abs(a - b) / max(abs(a), 1e-300) for a, b in numbers if a is not None), default=0.0),
        "rest": bool(np.array_equal(plain.counts, sharded.counts))
        and (plain.nodes, plain.bytes, plain.round) == (sharded.nodes, sharded.bytes, sharded.round)
        and plain.error_is_bound == sharded.error_is_bound,
    }


@contextmanager
def both(name: str, shards: int, **options: Any) -> Iterator[Both]:
    made = Both(sm.Run(SCHEMES[name], DIM, seed=3, blocks=LAYERS), shards, **options)
    try:
        yield made
    finally:
        made.sharded.close()


def same(cluster: Any, folder: Path) -> dict[str, Any]:
    """Three rounds of schemes that no other check here plays, beside a Server; a front hands the payloads over."""
    found = {}
    for name in SAME:
        with both(name, shards=2, fronts=1) as pair:
            rounds = [{"answers": pair.accept(pair.payloads()), **pair.close()} for _ in range(3)]
            found[name] = {"rounds": rounds, "expected": pair.expected(), "plans": pair.same_plans}
    return found


def killed(cluster: Any, folder: Path) -> dict[str, Any]:
    """Actors are killed in the middle of a round, while payloads come, and while it ends."""
    found = []
    with both("rand-k-temporal", shards=3, journal=folder) as pair:
        actors = pair.sharded._sharded.shards.actors
        for round in range(3):
            payloads = pair.payloads()
            first, *rest = payloads
            pair.accept({first: payloads[first]})
            victim = actors[round % 3]
            if round == 0:
                ray.kill(victim, no_restart=False)
                later = None
            else:
                later = threading.Timer(0.02 * round, lambda: ray.kill(victim, no_restart=False))  # noqa: B023
                later.start()
            alike = pair.accept({node: payloads[node] for node in rest})
            if round == 2:
                ray.kill(actors[0], no_restart=False)
            found.append({"answers": alike, **pair.close()})
            if later is not None:
                later.join()
        pair.sharded.forget("node-0")
        pair.plain.forget("node-0")
        ray.kill(actors[1], no_restart=False)
        return {"rounds": found, "expected": pair.expected(), "digest": pair.sharded.digest() == pair.sharded.digest()}


def coordinator_died(cluster: Any, folder: Path) -> dict[str, Any]:
    """The process that has the RayServer dies between two shards: when a round ends, and when a payload comes."""
    driver = [sys.executable, __file__, cluster.address, str(folder)]
    codes = [subprocess.run([*driver, "end"], timeout=120, check=False).returncode]
    with both("rand-k-temporal", shards=2, journal=folder) as pair:
        pair.plain.accept_many(pair.payloads(), WEIGHTS)
        lost = pair.sharded.last_estimate()
        assert lost is not None
        found = {"round": pair.sharded.round, "last": difference(pair.plain.close_round(), lost)}
        pair.sharded.close()
        codes.append(subprocess.run([*driver, "accept"], timeout=120, check=False).returncode)
        pair.sharded = RayServer(pair.run, shards=2, missing="carry", journal=folder)
        payloads = pair.payloads()
        found["came"] = list(pair.sharded._rounds.roster.accepted) == list(payloads)[:2]
        found["answers"] = pair.accept(payloads)
        found["next"] = pair.close()
        found["expected"] = pair.expected()
    return {**found, "codes": codes, "faults": [faults(path) for path in sorted(folder.iterdir())]}


def plans_kept(cluster: Any, folder: Path) -> dict[str, Any]:
    """The coordinator dies when one shard alone has the slots of a round, and when nodes were told and some came."""
    driver = [sys.executable, __file__, cluster.address, str(folder)]
    codes = [subprocess.run([*driver, "deal"], timeout=120, check=False).returncode]
    found: dict[str, Any] = {}
    with both("balanced, given T", shards=2, journal=folder) as pair:
        dealt = pair.sharded._rounds.roster.dealt
        found["half"] = dealt is None or dealt == pair.asked
        pair.sharded.close()
        codes.append(subprocess.run([*driver, "told"], timeout=120, check=False).returncode)
        pair.sharded = RayServer(pair.run, shards=2, missing="carry", journal=folder)
        payloads = pair.payloads()
        told = json.loads(told_by(folder).read_text())
        found["told"] = told == {node: pair.sharded.plan(node).hex() for node in WEIGHTS}
        found["came"] = list(pair.sharded._rounds.roster.accepted) == list(payloads)[:2]
        rounds = [{"answers": pair.accept(payloads), **pair.close()}]
        payloads = pair.payloads()
        ray.kill(pair.sharded._sharded.shards.actors[1], no_restart=False)
        rounds.append({"answers": pair.accept(payloads), **pair.close()})
        found |= {"rounds": rounds, "expected": pair.expected(), "plans": pair.same_plans}
    longer = sm.Run(pair.run.scheme, DIM, seed=3, blocks=LAYERS, nodes=[*WEIGHTS, "new"])
    with RayServer(longer, shards=2, missing="carry", journal=folder) as server:
        blob = sm.Client(longer, "new").encode(pair.base, server.round)
        found["joined"] = server.accept("new", blob).node
    with RayServer(pair.run, shards=2, missing="carry", journal=folder) as server:  # without the list again
        found["kept"] = server.accept("new", blob) == sm.Receipt("new", server.round, frame_digest(blob))
    return {**found, "codes": codes, "faults": [faults(path) for path in sorted(folder.iterdir())]}


def told_by(folder: Path) -> Path:
    """Where a coordinator that dies leaves the plans that it told."""
    return folder.with_suffix(".plans")


def die(address: str, folder: str, when: str) -> None:
    """A coordinator that tells half of the shards, or of the nodes, what it should tell all, and is gone.

    It ends the first round in one shard alone, or hands the third payload of the second to one alone; or gives the
    slots of the first round to one alone, or tells all plans and takes two payloads.
    """
    ray.init(address=address, logging_level=logging.ERROR)
    if when in ("deal", "told"):
        pair = Both(sm.Run(SCHEMES["balanced, given T"], DIM, seed=3, blocks=LAYERS), 2, journal=folder)
        if when == "deal":
            actor = pair.sharded._sharded.shards.actors[0]
            ray.get(actor.deal.remote(pair.sharded._sharded.shards.sequence, 0, pair.asked))
        else:
            payloads = pair.payloads()
            plans = {node: pair.sharded.plan(node).hex() for node in WEIGHTS}
            told_by(Path(folder)).write_text(json.dumps(plans))
            pair.sharded.accept_many(list(payloads.items())[:2], WEIGHTS)
        os._exit(9)
    pair = Both(sm.Run(SCHEMES["rand-k-temporal"], DIM, seed=3, blocks=LAYERS), 2, journal=folder)
    shards, payloads = pair.sharded._sharded.shards, pair.payloads()
    if when == "end":
        pair.sharded.accept_many(payloads, WEIGHTS)
        ending = RoundEnd(shards.sequence, "close", shards.summary(pair.sharded._rounds.roster.accepted), 1000)
        ray.get(shards.actors[0].end.remote(ending))
    else:
        pair.plain.accept_many(payloads, WEIGHTS)
        pair.plain.close_round()
        *two, last = list(pair.payloads().items())[:3]
        pair.sharded.accept_many(two, WEIGHTS)
        roster = pair.sharded._rounds.roster
        submission = submission_of(pair.run, None, roster, *last, WEIGHTS[last[0]])
        entry = Entry(*roster.acceptance(submission), submission.payload)
        cut = pieces(pair.run, pair.sharded._sharded._sharding.bounds, entry, None)
        ray.get(shards.actors[0].accept.remote(shards.sequence, roster.round, cut[:1]))
    os._exit(9)


def capped(cluster: Any, folder: Path) -> dict[str, Any]:
    """Memories of twice what one server may have, in four shards that may have as much each."""
    nodes, dim = 16, 1 << 17
    run = sm.Run(sm.named("rand-k-temporal", k=0.01), dim, seed=3)
    cap = nodes * dim * 4 // 2
    vectors = np.random.default_rng(2).normal(size=(nodes, dim))
    payloads = {f"n{i}": sm.Client(run, f"n{i}").encode(vector, 0) for i, vector in enumerate(vectors)}
    plain = sm.Server(run, memory_bytes=cap)
    refused = [type(answer).__name__ for _, answer in plain.accept_many(payloads) if not isinstance(answer, sm.Receipt)]
    started = time.monotonic()
    with RayServer(run, shards=4, memory_bytes=cap) as server:
        taken = sum(isinstance(answer, sm.Receipt) for _, answer in server.accept_many(payloads))
        open_round = server.usage()
        plain = sm.Server(run)
        plain.accept_many(payloads)
        alike = difference(plain.close_round(), server.close_round())
        usage = server.usage()
    return {
        "nodes": nodes,
        "cap": cap,
        "refused": refused,
        "taken": taken,
        "alike": alike,
        "usage": [[u.hi - u.lo, u.nodes, u.arrays, o.arrays, u.peak] for u, o in zip(usage, open_round, strict=True)],
        "sent": run.payload_bytes,
        "seconds": time.monotonic() - started,
    }


def fronts(cluster: Any, folder: Path) -> dict[str, Any]:
    """A front, a shard and the coordinator are killed three times each while payloads come; first what is refused."""
    found: dict[str, Any] = {}
    folder.mkdir()
    with served(folder / "refused", shards=1) as server:
        first, second = server.fronts
        taken, again, *rest = list(NODES)
        blobs = {node: payload(node, 0) for node in NODES}
        answers = ray.get(first.accept_many.remote([(taken, blobs[taken]), (again, blobs[taken]), ("x", b"")]))
        found["answers"] = [type(answer).__name__ for _, answer in answers]
        calls = [front.accept_many.remote({taken: blobs[taken], again: blobs[again]}) for front in (first, second)]
        found["twice"] = [[type(answer).__name__ for _, answer in ray.get(call)] for call in calls]
        ((_, other),) = ray.get(second.accept_many.remote({taken: blobs[taken]}, {taken: 2.0}))
        found["other"] = type(other).__name__
        found["here"] = server.accept(again, blobs[again]).node, server.accept(rest[0], blobs[rest[0]]).node
        found["few"] = error_of(partial(server.close_round, minimum=4))
        estimate = server.close_round()
        plain = sm.Server(server.run)
        plain.accept_many([(node, blobs[node]) for node in estimate.nodes])
        found["came"] = sorted(estimate.nodes) == sorted([taken, again, rest[0]])
        found["estimate"] = difference(plain.close_round(), estimate)
        (late,) = ray.get(first.accept_many.remote({rest[1]: blobs[rest[1]]}))
        found["late"] = type(late[1]).__name__
    judge = Judge(cluster.address, folder)
    try:
        for _ in range(3):
            for victim in ("front", "shard", "coordinator"):
                judge.kill(victim)
        return {**found, **judge.end(), "faults": [faults(path) for path in sorted(judge.journal.iterdir())]}
    finally:
        judge.stop()


def service(cluster: Any, folder: Path) -> dict[str, Any]:
    """``sparsemean serve --ray``: two rounds over HTTP, beside those of a Server."""
    sys.path.insert(0, str(Path(__file__).parent / "http"))
    try:
        import uvicorn  # noqa: F401
        from serving import serving  # type: ignore[import-not-found]
    except ModuleNotFoundError as missing:
        return {"missing": missing.name}
    folder.mkdir()
    run, names = sm.Run(SCHEMES["rand-k-temporal"], DIM, seed=3), ("a", "b")
    vectors = np.random.default_rng(5).normal(size=(2, len(names), run.dim))
    rounds = ["--minimum", 2, "--wanted", 2, "--journal", folder / "journal"]
    heard: dict[str, list[Any]] = {name: [] for name in names}
    with serving(folder, run, *rounds, "--ray", cluster.address, "--shards", 2, "--fronts", 1, nodes=names) as served:

        def play(name: str) -> None:
            node = served.node(name)
            for round in range(len(vectors)):
                node.send(vectors[round, names.index(name)], round)
                heard[name].append(node.mean(round).mean)

        threads = [threading.Thread(target=play, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120.0)
        code = served.stop()
    apart, plain = [], sm.Server(run)
    for round, given in enumerate(vectors):
        plain.accept_many(
            {name: sm.Client(run, name).encode(each, round) for name, each in zip(names, given, strict=True)}
        )
        mean = plain.close_round().mean
        apart += [float(np.abs(heard[name][round] - mean).max()) for name in names]
    return {"apart": apart, "code": code, "journals": sorted(path.name for path in (folder / "journal").iterdir())}


def lost(cluster: Any, folder: Path) -> dict[str, Any]:
    """Without a journal a shard that dies is lost, and so is the server; what is refused is refused as by a Server."""
    found: dict[str, Any] = {}
    with both("rand-k-hybrid", shards=2) as pair:
        payloads = pair.payloads()
        node, blob = next(iter(payloads.items()))
        other = sm.Client(sm.Run(SCHEMES["rand-k-hybrid"], DIM, seed=4, blocks=LAYERS), node).encode(pair.base, 0)
        for bad in (b"", blob[:-1], bytes(len(blob)), other):
            before = pair.sharded.digest()
            alike = [error_of(partial(server.accept, node, bad)) for server in (pair.plain, pair.sharded)]
            found.setdefault("refused", []).append([*alike, pair.sharded.digest() == before])
        pair.accept(payloads)
        again = [server.accept(node, blob, WEIGHTS[node]) for server in (pair.plain, pair.sharded)]
        found["again"] = again[0] == again[1]
        found["conflict"] = [error_of(partial(s.accept, node, blob, 7.0)) for s in (pair.plain, pair.sharded)]
        found["few"] = [error_of(partial(s.close_round, minimum=9)) for s in (pair.plain, pair.sharded)]
        pair.plain.skip_round()
        pair.sharded.skip_round()
        found["after"] = pair.expected()
        ray.kill(pair.sharded._sharded.shards.actors[1])
        found["lost"] = [error_of(lambda: pair.sharded.accept_many(pair.payloads()), words=True)]
        found["lost"].append(error_of(pair.sharded.close_round))
    found["closed"] = error_of(pair.sharded.close_round, words=True)
    run = pair.run
    found["shards"] = [error_of(partial(RayServer, run, shards=n), words=True) for n in (0, 6, True)]
    RayServer(run, shards=2, journal=folder).close()
    found["foreign"] = error_of(lambda: RayServer(run, shards=3, journal=folder), words=True)
    with RayServer(run, shards=2, journal=folder) as server:
        for node, blob in payloads.items():
            server.accept(node, blob)
    shutil.rmtree(folder / "shard-001")
    found["folder"] = error_of(lambda: RayServer(run, shards=2, journal=folder), words=True)
    return found


def error_of(call: Callable[[], Any], words: bool = False) -> str:
    try:
        call()
    except sm.SparseMeanError as error:
        return f"{type(error).__name__}: {error}" if words else type(error).__name__
    return "none"


Lie = Callable[[Any], Any]  # the true reply → what is said in its place


class Unreadable:
    """What cannot be unpickled where it arrives."""

    def __reduce__(self) -> Any:
        return (int, ("garbage",))


def raises(_: Any) -> None:
    raise ZeroDivisionError("in the actor")


def of(**lies: Lie) -> Lie:
    """The same with other fields."""
    return lambda truth: replace(truth, **{name: lie(getattr(truth, name)) for name, lie in lies.items()})


def nan(array: Any) -> Any:
    return np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array)


def moments(**lies: Lie) -> Lie:
    return of(moments=of(**lies))


def rolled(state: Lie = lambda it: it, accepted: Lie = lambda it: it, dealt: Lie = lambda it: it) -> Lie:
    return lambda roll: (state(roll[0]), accepted(roll[1]), dealt(roll[2]))


ANY: dict[str, Lie] = {
    "text": lambda _: "garbage",
    "an exception, not raised": lambda _: ValueError("garbage"),
    "an exception": raises,
    "unreadable": lambda _: Unreadable(),
}
VECTOR: dict[str, Lie] = {
    "None": lambda _: None,
    "a number": lambda _: 0.5,
    "one number": lambda mean: mean[:1],
    "too few": lambda mean: mean[:-1],
    "a column": lambda mean: mean[:, None],
    "another type": lambda mean: mean.astype(np.float32),
    "NaN": nan,
}
GARBAGE: dict[str, dict[str, Lie]] = {
    "accept": ANY,
    "forget": ANY,
    "deal": ANY,
    "end": ANY,
    "summary": {
        **ANY,
        "None": lambda _: None,
        "other nodes": of(class_nodes=lambda nodes: nodes + 1),
        "other weights": of(weight=lambda weight: 2 * weight),
        "negative squares": of(class_squares=lambda sums: -1 - sums),
        "NaN squares": of(class_squares=nan),
        "infinite noise": of(class_noise=lambda sums: sums + np.inf),
        "one number": of(class_squares=lambda sums: sums[:1, :1]),
        "another shape": of(weight=lambda weight: weight[:, None]),
        "another type": of(class_squares=lambda sums: sums.astype(np.float32)),
        "no moments": of(moments=lambda _: None),
        "NaN moments": moments(s2=nan),
        "one moment": moments(q=lambda q: q[:1]),
        "a number": moments(q=lambda _: 1.0),
        "no sums by count": of(by_count=lambda _: None),
        "NaN by count": of(by_count=of(sums=nan)),
        "sums of other counts": of(by_count=of(counts=lambda counts: counts[1:])),
        "counts of more nodes than came": of(by_count=of(counts=lambda counts: counts + 1000)),
        "other fits": of(fits=lambda fits: np.ones((2, 9))),
    },
    "status": {
        **ANY,
        "None": lambda _: None,
        "round is text": of(round=str),
        "round is true": of(round=lambda _: True),
        "a round before": of(round=lambda round: round - 1),
        "a round ahead": of(round=lambda round: round + 1),
        "rounds ahead": of(round=lambda round: round + 5),
        "records missing": of(sequence=lambda sequence: sequence - 1, before=lambda _: -1),
        "no records": of(sequence=lambda _: -1, before=lambda _: -1),
        "too many records": of(sequence=lambda sequence: sequence + 1),
        "below any record": of(sequence=lambda _: -7),
        "before comes after": of(before=lambda before: before + 100),
        "negative room": of(node_bytes=lambda _: -1),
    },
    "roll": {
        **ANY,
        "None": lambda _: None,
        "nothing": lambda _: (),
        "no state": rolled(lambda _: None),
        "another round": rolled(lambda state: {**state, "round": state["round"] + 1}),
        "nobody known": rolled(lambda state: {**state, "known": None}),
        "known are fewer": rolled(lambda state: {**state, "known": {**state["known"], "nodes": ["x"]}}),
        "likeness is infinite": rolled(lambda state: {**state, "likeness": state["likeness"] + np.inf}),
        "likeness of one block": rolled(lambda state: {**state, "likeness": state["likeness"][:1]}),
        "digests missing": rolled(lambda state: {**state, "closed": {**state["closed"], "digests": []}}),
        "entries of text": rolled(accepted=lambda _: ["node-0"]),
        "somebody twice": rolled(accepted=lambda accepted: accepted * 2),
        "slots are text": rolled(dealt=lambda _: "node-0"),
        "slots of numbers": rolled(dealt=lambda _: [0, 1]),
        "two slots for one": rolled(dealt=lambda dealt: dealt * 2),
        "weights of another shape": rolled(accepted=lambda them: [replace(t, weight=np.ones(9)) for t in them]),
    },
    "result": {
        **ANY,
        **{f"mean: {name}": of(mean=lie) for name, lie in VECTOR.items()},
        "None": lambda _: None,
        "one count": of(counts=lambda counts: counts[:1]),
        "counts of another type": of(counts=lambda counts: counts.astype(np.int64)),
        "negative counts": of(counts=lambda counts: -1 - counts),
        "another round": of(round=lambda round: round + 1),
        "other nodes": of(nodes=lambda nodes: nodes[::-1]),
        "error is text": of(error=str),
    },
    "ending": {
        **ANY,
        "another kind": of(kind=lambda _: "stop"),
        "another summary": of(summary=of(weight=lambda weight: weight[:1])),
        "record is text": of(after=str),
    },
    "remembered": {**ANY, **VECTOR},
    "digest": {"None": lambda _: None, "a number": lambda _: 7, "an exception": raises},
    "usage": {**ANY, "None": lambda _: None, "another range": of(lo=lambda lo: lo + 1), "text": of(arrays=str)},
}


class Liar(Shard):
    """A shard that does what it is asked, and says something else when it was told to."""

    def lie(self, method: str, name: str, done: bool) -> None:
        """Answer the next call so; where it is not ``done``, without doing what is asked."""
        self.__dict__.setdefault("lies", {})[method] = (GARBAGE[method][name], done)


def _telling(method: str) -> Any:
    def told(self: Any, *arguments: Any) -> Any:
        lie, done = vars(self).get("lies", {}).pop(method, (None, True))
        truth = getattr(Shard, method)(self, *arguments) if done else None
        return truth if lie is None else lie(truth)

    return told


for _method in GARBAGE:
    setattr(Liar, _method, _telling(_method))


class BornLiar(Liar):
    """One that says it from the beginning, with the first call of ``method``."""

    def __init__(self, sharding: Any, number: int) -> None:
        super().__init__(sharding, number)
        method, name = os.environ["BORN"].split("/")
        self.lie(method, name, True)


class Lied:
    """A RayServer of liars beside a Server, and what came of each lie, or of each ``every``-th."""

    def __init__(self, pair: Both, every: int = 1, liar: int = 1) -> None:
        self.pair, self.every, self.liar, self.found = pair, every, liar, {}  # type: ignore[var-annotated]

    def lies(self, method: str) -> list[str]:
        return list(GARBAGE[method])[:: self.every]

    def lie(self, method: str, name: str, call: Callable[[], Any], liar: int | None = None, done: bool = True) -> str:
        number = self.liar if liar is None else liar
        ray.get(self.pair.sharded._sharded.shards.actors[number].lie.remote(method, name, done))
        return error_of(call, words=True)

    def note(self, method: str, name: str, *said: Any) -> None:
        self.found.setdefault(method, {})[name] = list(said)

    def unchanged(self, method: str, call: Callable[[], Any]) -> None:
        """Lies in place of an answer that changes nothing: the digest is the same, whatever was said."""
        before = self.pair.sharded.digest()
        for name in self.lies(method):
            self.note(method, name, self.lie(method, name, call), self.pair.sharded.digest() == before)

    def recovering(self, method: str, liar: int) -> None:
        """Lies while the shards are brought to one state, since another answer was garbage."""
        before = self.pair.sharded.digest()
        for name in self.lies(method):
            self.lie("summary", "text", self.pair.sharded.close_round)
            said = self.lie(method, name, self.pair.sharded.digest, liar)
            self.note(method, name, said, self.pair.sharded.digest() == before)

    def open_round(self) -> None:
        """Answers to payloads that were taken: what is sent again is not counted twice."""
        payloads = self.pair.payloads()
        for name, (node, blob) in zip(self.lies("accept"), payloads.items(), strict=False):
            said = self.lie("accept", name, partial(self.pair.sharded.accept, node, blob, WEIGHTS[node]))
            self.note("accept", name, said, True)
        assert self.pair.accept(payloads)

    def dealt(self) -> None:
        """Answers to slots that were dealt: they stay, and what is told is what a Server tells."""
        for name in self.lies("deal"):
            said = self.lie("deal", name, lambda: self.pair.sharded.plans(self.pair.asked))
            payloads = self.pair.payloads()
            self.note("deal", name, said, self.pair.same_plans)
            self.pair.accept(payloads)
            self.pair.close()

    def ended(self, method: str) -> None:
        """Lies when a round has ended, which it has: the next one is open, and a journal has the estimate."""
        for name in self.lies(method):
            self.pair.accept(self.pair.payloads())
            said = self.lie(method, name, self.pair.sharded.close_round)
            self.note(method, name, said, self.last(self.pair.plain.close_round()))

    def last(self, plain: sm.Estimate) -> bool:
        sharded = self.pair.sharded
        last = sharded.last_estimate() if sharded._rounds.durable else None
        alike = last is None or ((found := difference(plain, last))["rest"] and found["mean"] < 1e-12)
        return bool(alike) and sharded.round == self.pair.plain.round

    def half_ended(self) -> None:
        """One shard ends the round, the other fails before; then the first lies about how it ended."""
        for name in self.lies("ending"):
            self.pair.accept(self.pair.payloads())
            self.lie("end", "an exception", self.pair.sharded.close_round, done=False)
            said = self.lie("ending", name, self.pair.sharded.digest, 1 - self.liar)
            self.note("ending", name, said, self.last(self.pair.plain.close_round()))


def garbage(cluster: Any, folder: Path) -> dict[str, Any]:
    """Shards that answer garbage, with a journal and without; then the rounds go on beside those of a Server."""
    found: dict[str, Any] = {}
    module: Any = shards
    honest, module.Shard = module.Shard, Liar
    try:
        for journal in (folder, None):
            with both("rand-k-balanced-hybrid", shards=2, journal=journal, timeout=60.0) as pair:
                lied = Lied(pair, every=1 if journal else 3)  # what is believed does not depend on a journal
                lied.dealt()
                lied.open_round()
                lied.unchanged("summary", pair.sharded.close_round)
                rounds = [pair.close()]
                lied.ended("end")
                lied.ended("result")
                lied.half_ended()
                lied.open_round()
                lied.recovering("status", 1)
                lied.recovering("roll", 0)
                lied.unchanged("remembered", lambda: pair.sharded.expected("node-0"))
                lied.unchanged("digest", pair.sharded.digest)
                lied.unchanged("usage", pair.sharded.usage)
                rounds.append(pair.close())
                for name in lied.lies("forget"):
                    pair.plain.forget("node-0")
                    said = lied.lie("forget", name, lambda: pair.sharded.forget("node-0"))
                    lied.note("forget", name, said, pair.expected() < 1e-12)
                rounds.append({"answers": pair.accept(pair.payloads()), **pair.close()})
                alike = pair.accept(pair.payloads())
                always = [lied.lie("summary", "NaN squares", pair.sharded.close_round) for _ in range(3)]
                rounds.append({"answers": alike, **pair.close()})
                node, blob = next(iter(pair.payloads().items()))
                take = partial(pair.sharded.accept, node, blob, WEIGHTS[node])
                apart = [lied.lie("accept", "an exception", take, done=False), error_of(take, words=True)]
                apart.append(error_of(pair.sharded.close_round, words=True))
                found["journal" if journal else "memory"] = {
                    "lies": lied.found,
                    "rounds": rounds,
                    "always": always,
                    "apart": apart,
                    "plans": pair.same_plans,
                }
        module.Shard = BornLiar
        found["born"] = [
            error_of(partial(born, f"{method}/{name}"), words=True)
            for method, name in (("status", "None"), ("status", "round is text"), ("status", "too many records"))
        ]
    finally:
        module.Shard = honest
    return found


def born(lie: str) -> None:
    os.environ["BORN"] = lie
    options = {"runtime_env": {"env_vars": {"BORN": lie}}}
    RayServer(sm.Run(SCHEMES["rand-k-hybrid"], DIM), shards=2, actor_options=options).close()


def example(cluster: Any, folder: Path) -> dict[str, Any]:
    """The program in examples/ray, small, on this cluster and with a journal."""
    program = Path(__file__).parents[2] / "examples" / "ray" / "beyond_one_process.py"
    size = ["--nodes", "8", "--dim", "65536", "--shards", "2", "--rounds", "2"]
    command = [sys.executable, str(program), *size, "--address", cluster.address, "--journal", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return {"code": done.returncode, "said": done.stdout, "errors": done.stderr[-2000:]}


def documented(cluster: Any, folder: Path) -> dict[str, Any]:
    """The snippet that opens docs/ray.md, on this cluster."""
    page = (Path(__file__).parents[2] / "docs" / "ray.md").read_text(encoding="utf-8")
    first = re.findall("```python\n(.*?)```", page, re.DOTALL)[0]
    folder.mkdir()
    said = io.StringIO()
    with chdir(folder), redirect_stdout(said):
        exec(first.replace("ray.init()", f'ray.init("{cluster.address}", ignore_reinit_error=True)'), {})
    return {"said": said.getvalue().splitlines(), "journals": sorted(path.name for path in folder.glob("rj/*"))}


def host_lost(cluster: Any, folder: Path) -> dict[str, Any]:
    """One of the two hosts goes, with the shards on it; they come back on the other one."""
    with both("rand-k-hybrid", shards=3, journal=folder) as pair:
        actors = pair.sharded._sharded.shards.actors
        before = [ray.get(actor.__ray_call__.remote(_host)) for actor in actors]
        pair.accept(pair.payloads())
        rounds = [pair.close()]
        payloads = pair.payloads()
        first, *rest = payloads
        pair.accept({first: payloads[first]})
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        while sum(node["Alive"] for node in ray.nodes()) > 1:  # type: ignore[no-untyped-call]
            time.sleep(0.1)
        alike = pair.accept({node: payloads[node] for node in rest})
        rounds.append({"answers": alike, **pair.close()})
        after = [ray.get(actor.__ray_call__.remote(_host)) for actor in actors]
        return {"before": len(set(before)), "after": len(set(after)), "rounds": rounds, "expected": pair.expected()}


def _host(_: object) -> str:
    return str(ray.get_runtime_context().get_node_id())


CHECKS: list[Callable[[Any, Path], Any]] = [
    *(same, killed, coordinator_died, plans_kept, fronts, service, capped, lost, garbage, example, documented),
    host_lost,  # the last one: a host is gone then
]


def two_nodes(temporary: str, attempts: int = 3) -> Any:
    """A cluster; Ray gives up on one after half a minute, which may be too soon on a machine that is busy."""
    node = {"num_cpus": 4, "object_store_memory": 100_000_000}
    often = {"health_check_period_ms": 1000}  # a host that is gone is missed after five looks
    head = {**node, "temp_dir": temporary, "include_dashboard": False, "_system_config": often}
    # Wherever its own files are, Cluster notes its address in the default folder, which a new machine does not have.
    Path(get_ray_address_file(None)).parent.mkdir(parents=True, exist_ok=True)
    try:
        cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(**node)
        return cluster
    except Exception:
        if attempts == 1:
            raise
        return two_nodes(temporary, attempts - 1)


def main() -> None:
    warnings.simplefilter("ignore", sm.DivergenceWarning)
    wanted = sys.argv[1:] or [check.__name__ for check in CHECKS]
    with tempfile.TemporaryDirectory(prefix="spmr", ignore_cleanup_errors=True) as temporary:
        started = time.monotonic()
        cluster = two_nodes(temporary)
        ray.init(address=cluster.address, logging_level=logging.ERROR, log_to_driver=False)
        found: dict[str, Any] = {"seconds": {"start": time.monotonic() - started}}
        try:
            for check in CHECKS:
                if check.__name__ in wanted:
                    started = time.monotonic()
                    try:
                        found[check.__name__] = check(cluster, Path(temporary) / f"journal-{check.__name__}")
                    except Exception:
                        found[check.__name__] = {"failed": traceback.format_exc()}
                    found["seconds"][check.__name__] = time.monotonic() - started
        finally:
            ray.shutdown()
            cluster.shutdown()
    print(json.dumps(found))


if __name__ == "__main__":
    die(*sys.argv[1:]) if len(sys.argv) == 4 and sys.argv[3] in ("end", "accept", "deal", "told") else main()
