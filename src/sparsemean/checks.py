"""Conformance checks that every scheme here passes, and that yours should.

Each check raises ``CheckFailed`` with what was expected and what was seen. All randomness is seeded, and statistical
bounds are wide enough (z within ± ``Z``, or Bonferroni over coordinates) that a correct member passes every time.

>>> import sparsemean as sm
>>> check_scheme(sm.Scheme(sm.RandK(0.25), sm.Spatial("max")), dim=24, trials=200)
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sparsemean import codec
from sparsemean._types import Doubles
from sparsemean.client import Client
from sparsemean.codec import Known
from sparsemean.decoding.totals import RoundTotals
from sparsemean.encoders import Encoder, Stateful
from sparsemean.errors import CheckFailed, InvalidInput, PayloadError
from sparsemean.evaluation import exact_error
from sparsemean.memory import Nothing
from sparsemean.payload import Payload
from sparsemean.run import Run
from sparsemean.sampling import Key, Plan
from sparsemean.schemes import Scheme
from sparsemean.server import Server
from sparsemean.simulation import play_round

Z = 4.5
FRAMES = ("full", "compact")
SECRETS = {"a": bytes(range(16)), "b": bytes(range(16, 48))}


def check_scheme(scheme: Scheme, dim: int = 40, nodes: int = 6, trials: int = 2000) -> None:
    """All checks of this module: some seconds; fewer ``trials`` are quicker and see less."""
    if not isinstance(scheme, Scheme):
        raise InvalidInput(f"check_scheme takes a Scheme, such as Scheme(your_encoder), not {scheme!r}")
    vectors = example_vectors(nodes, dim)
    check_encoder(scheme.encoder, dim, trials)
    check_bytes(scheme, vectors)
    check_refusals(scheme, vectors)
    check_merge(scheme, vectors)
    check_mean(scheme, vectors, trials)


def example_vectors(nodes: int, dim: int, seed: int = 0) -> Doubles:
    """Correlated vectors with a heavy coordinate, a zero coordinate and a node of another size."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=dim) + 0.7 * rng.normal(size=(nodes, dim))
    vectors[:, 0] *= 8.0
    vectors[:, -1] = 0.0
    vectors[0] *= 3.0
    return vectors


def _run(scheme: Scheme, vectors: Doubles, seed: int, frame: str = "full") -> Run:
    """A run that lists its nodes, where they need slots."""
    listed = ["a", "b", *(f"node-{i}" for i in range(len(vectors)))]
    return Run(scheme, vectors.shape[1], seed, nodes=listed if scheme.encoder.facts.planned else None, frame=frame)


def _plan(run: Run, node: str, round: int) -> Plan | None:
    return run.listed_plan(node, round) if run.planned else None


def _decoded(run: Run, node: str, round: int, blob: bytes) -> Payload | None:
    plan = _plan(run, node, round)
    known = Known(round, () if plan is None else (plan,))
    return codec.read_payload(run, node, *codec.open_frame(run, node, blob, known), plan)


def _client(run: Run, number: int) -> Client:
    """Where nodes may choose their encoder, they take turns."""
    return Client(run, f"node-{number}", run.encoders[number % len(run.encoders)])


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise CheckFailed(message)


def check_encoder(encoder: Encoder, dim: int, trials: int = 2000) -> None:
    """Encoding is pure, its payload fits its layout, and unbiasedness and ω are as declared."""
    vector = example_vectors(1, dim)[0]
    state = encoder.start(dim) if isinstance(encoder, Stateful) else {}
    planned, epochs = encoder.facts.planned, encoder.facts.epochs

    def key(trial: int) -> Key:  # with epochs, of the first round of one
        return Key(1, trial, "node", plan=Plan(1, 3, trial if epochs else None) if planned else None)

    payloads = [encoder.encode(vector, key(trial), state) for trial in range(trials)]
    again = encoder.encode(vector, key(0), state)
    first = payloads[0]
    if first is None or again is None:
        raise CheckFailed("the first payload of a node may not be skipped: the server knows nothing of it yet")
    _require(np.array_equal(first.dense(dim), again.dense(dim)), "encoding the same vector twice gives two payloads")
    for payload in payloads:
        for part, layout in zip(payload.parts if payload else (), encoder.layout(dim), strict=True):
            exact = layout.fixed or encoder.facts.uniform
            counted = part.values.size == layout.count if exact else part.values.size <= layout.count
            _require(counted, f"{part.values.size} values where the layout says {layout.count}")
            _require(part.scale == layout.scale, f"scale {part.scale} where the layout says {layout.scale}")
            _require(np.unique(part.coordinates).size == part.coordinates.size, "a coordinate comes twice in one part")
    omega = encoder.omega(dim)
    _require((omega is None) != encoder.facts.unbiased, "ω is None exactly where the encoder is biased")
    if omega is not None:
        dense = np.array([payload.dense(dim) for payload in payloads if payload is not None])
        _check_unbiased(dense, vector, "the encoder")
        errors = np.sum((dense - vector) ** 2, axis=1)
        bound = omega * np.sum(vector**2)
        slack = Z * errors.std() / math.sqrt(trials) + 1e-9 * bound
        _require(errors.mean() <= bound + slack, f"mean error {errors.mean():.4g} exceeds ω‖x‖² = {bound:.4g}")


def _check_common_scale(client: Client, vector: Doubles, plan: Plan) -> None:
    """By whatever scale of a plan: bytes that are no longer than announced, and come back."""
    for power in (-20, 0, 2, 20):
        scaled, run = replace(plan, scale=2.0**power), client.run
        blob = Client(run, client.node, client.encoder).encode(vector, 5, codec.pack_plan(run, client.node, 5, scaled))
        _require(len(blob) <= run.payload_bytes, f"{len(blob)} bytes where payload_bytes says {run.payload_bytes}")
        codec.read_payload(run, client.node, *codec.open_frame(run, client.node, blob), scaled)


def check_bytes(scheme: Scheme, vectors: Doubles) -> None:
    """Bytes come back as the payload, have the announced length, and depend on nothing but vector, round and node."""
    for frame in FRAMES:
        _check_bytes(_run(scheme, vectors, 3, frame), vectors)


def _check_bytes(run: Run, vectors: Doubles) -> None:
    for i, vector in enumerate(vectors):
        client = _client(run, i)
        blob = client.encode(vector, round=5)
        _require(blob == client.encode(vector, round=5), "encode is not idempotent")
        _require(blob == _client(run, i).encode(vector, round=5), "a second client gives other bytes")
        exact = len(blob) == run.payload_bytes if run.payload_fixed else len(blob) <= run.payload_bytes
        _require(exact, f"{len(blob)} bytes where payload_bytes says {run.payload_bytes}")
        payload, plan = _decoded(run, client.node, 5, blob), _plan(run, client.node, 5)
        if run.common_scale and plan is not None and plan.slot is not None:
            _check_common_scale(client, vector, plan)
        if run.value_kind.exact:
            again = codec.pack(run, client.node, 5, payload, plan=plan)
            _require(again == blob, "unpacking and packing again changes the bytes")
            state = client.encoder.start(run.dim) if isinstance(client.encoder, Stateful) else {}
            made = client.encoder.encode(vector, run.key(client.node, 5, plan), state)
            _require((made is None) == (payload is None), "the bytes say 'unchanged' where the encoder does not")
            if made is not None and payload is not None:
                sent, came = made.dense(run.dim), payload.dense(run.dim)
                same = np.allclose(sent, came, rtol=0.0, atol=1e-6 * float(np.abs(sent).max()))  # float32 has 6e-8
                _require(same, "the bytes come back as another vector than the payload stands for")


def check_refusals(scheme: Scheme, vectors: Doubles) -> None:
    """Damaged, foreign, late and conflicting payloads are refused and change nothing; a repeated one is harmless."""
    for frame in FRAMES:
        _check_refusals(_run(scheme, vectors, 3, frame), vectors)


def _check_refusals(run: Run, vectors: Doubles) -> None:
    secrets = SECRETS if run.compact is not None else {}
    server = Server(run, round=1, secrets=secrets or None)

    def made(node: str, vector: Doubles, round: int = 1, of: Run = run) -> bytes:
        return Client(of, node, secret=secrets.get(node)).encode(vector, round)

    good = made("a", vectors[0])
    receipt = server.accept("a", good)
    before = server.digest()
    _require(server.accept("a", good) == receipt, "the same payload again gives another receipt")
    flipped = bytes([*good[:-1], good[-1] ^ 1])
    other_run = _run(run.scheme, vectors, 4, run.frame)
    bad = {
        "truncated": ("b", good[:-1]),
        "damaged": ("b", flipped),
        "of another node": ("b", good),
        "of another run": ("b", made("b", vectors[0], of=other_run)),
        "late": ("b", made("b", vectors[0], round=0)),
        "early": ("b", made("b", vectors[0], round=2)),
        "conflicting": ("a", made("a", vectors[1] + 1.0)),
    }
    if run.planned:  # the same digest, and other slots
        reordered = Run(run.scheme, run.dim, run.seed, nodes=run.nodes[::-1], frame=run.frame)
        bad["by another plan"] = ("b", made("b", vectors[0], of=reordered))
    if secrets:
        bad["without its secret"] = ("b", Client(run, "b").encode(vectors[0], round=1))
        bad["with another secret"] = ("b", Client(run, "b", secret=secrets["a"]).encode(vectors[0], round=1))
    for what, (node, blob) in bad.items():
        try:
            server.accept(node, blob)
        except PayloadError:
            _require(server.digest() == before, f"a {what} payload changed the server")
        else:
            raise CheckFailed(f"a payload that is {what} was accepted")


def check_merge(scheme: Scheme, vectors: Doubles) -> None:
    """Totals of two halves, merged, are the totals of all."""
    run = _run(scheme, vectors, seed=3)
    whole, left, right = (RoundTotals(run.ranges, bool(run.shares), max(1, len(run.shares))) for _ in range(3))
    for i, vector in enumerate(vectors):
        payload = _decoded(run, f"node-{i}", 0, _client(run, i).encode(vector, round=0))
        for totals in (whole, left if i % 2 else right):
            totals.add(np.ones(1), payload.parts if payload else (), payload.choice if payload and run.shares else 0)
    left.merge(right)
    same = np.allclose(left.sums, whole.sums, rtol=1e-12, atol=1e-12) and np.array_equal(left.counts, whole.counts)
    _require(same, "merged totals differ from streamed ones")


def check_mean(scheme: Scheme, vectors: Doubles, trials: int) -> None:
    """An unbiased scheme is unbiased through the bytes; its error is the exact one, and so is its estimate of it.

    Schemes that remember play two rounds of similar vectors first, so that what they remember is tried too.
    """
    past = scheme.node_state or scheme.encoder.facts.relative or scheme.decoder.adapts
    remembers = past or scheme.memory != Nothing()
    truth, ones = vectors.mean(axis=0), np.ones(len(vectors))
    means, exact, said = [], [], []
    for trial in range(trials):
        run = Run(scheme, vectors.shape[1], seed=trial)
        server, clients = Server(run), [_client(run, i) for i in range(len(vectors))]
        for scale in (0.7, 1.2) if remembers else ():
            play_round(server, clients, scale * vectors, ones)
        classes = np.array([client.choice for client in clients])
        expected = exact_error(server, [client.node for client in clients], vectors, classes=classes)
        estimate = play_round(server, clients, vectors, ones)
        exact.append(None if expected is None else expected + (estimate.rounding or 0.0))
        means.append(estimate.mean)
        said.append(None if estimate.error_is_bound else estimate.error)
        if expected is None and not scheme.unbiased:
            return  # nothing is declared of the mean, so one trial shows all that can be seen
    if scheme.unbiased:
        _check_unbiased(np.array(means), truth, "the estimate")
    if exact[0] is not None:
        measured = np.sum((np.array(means) - truth) ** 2, axis=1)
        _check_average(measured, np.array(exact), "the squared error")
        if None not in said:  # a draw in which no two nodes meet tells a bound in its place
            _check_average(np.array(said, np.float64), np.array(exact), "Estimate.error")


def _check_unbiased(samples: Doubles, truth: Doubles, what: str) -> None:
    """Bernstein's bound per coordinate at Bonferroni's level: z·σ/√N + z²·max/(3N), plus the rounding of float32."""
    trials, dim = samples.shape
    largest = float(np.abs(samples).max(initial=0.0))
    z = Z + math.sqrt(2.0 * math.log(dim))
    spread = samples.std(axis=0) / math.sqrt(trials)
    bound = z * spread + z * z * largest / (3.0 * trials) + 1e-6 * largest
    off = np.abs(samples.mean(axis=0) - truth)
    worst = int(np.argmax(off - bound))
    _require(
        bool(off[worst] <= bound[worst]),
        f"{what} is declared unbiased, but coordinate {worst} is off by {off[worst]:.4g}, more than {bound[worst]:.4g}",
    )
    # A scale that is slightly wrong shows in no single coordinate; a sum in which none outweighs the others tells.
    typical = np.median(np.abs(truth[truth != 0])) if np.any(truth) else 1.0
    direction = truth / np.maximum(np.abs(truth), typical)
    along, exact = samples @ direction, float(truth @ direction)
    slack = Z * along.std() / math.sqrt(trials) + Z * Z * float(np.abs(along).max()) / (3.0 * trials) + 1e-6 * exact
    _require(
        bool(abs(along.mean() - exact) <= slack),
        f"{what} is declared unbiased, but in all it is {along.mean():.5g} ± {slack:.2g} where {exact:.5g} is right",
    )


def _check_average(samples: Doubles, exact: Doubles, what: str) -> None:
    off = samples - exact
    spread = off.std() / math.sqrt(off.size)
    _require(
        bool(abs(off.mean()) <= Z * spread + 1e-6 * exact.mean() + 1e-12),
        f"{what} is {samples.mean():.6g} ± {spread:.2g} on average where the formula says {exact.mean():.6g}",
    )
