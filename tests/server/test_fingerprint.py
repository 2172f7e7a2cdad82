"""The digest of a server sees everything: each number, array, name and bit of order it holds is changed in turn."""

from __future__ import annotations

import dataclasses
import functools
import threading
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.memory.rows import Section
from sparsemean.payload.blocks import Blocks
from sparsemean.server.fingerprint import fingerprint

Change = tuple[str, Callable[[], None], Callable[[], None]]
LEAVES = (bool, int, float, str, bytes, types.NoneType, np.generic)


def other(leaf: Any) -> Any:
    """Something of the same kind that is not equal."""
    if leaf is None:
        return 0
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, str):
        return leaf + "x"
    if isinstance(leaf, bytes):
        return leaf[:-1] + bytes([leaf[-1] ^ 1]) if leaf else b"\0"
    return type(leaf)(leaf + 1)


def changes(path: str, thing: Any, put: Callable[[Any], None], above: tuple[int, ...] = ()) -> Iterator[Change]:
    """Every way to change one leaf below ``thing``, and to change it back; ``put`` sets it in its holder."""
    if id(thing) in above or isinstance(thing, type | types.FunctionType | np.dtype | type(threading.Lock()) | Section):
        return
    above = (*above, id(thing))
    if isinstance(thing, LEAVES):
        yield path, lambda: put(other(thing)), lambda: put(thing)
    elif isinstance(thing, np.ndarray):
        for at in np.ndindex(thing.shape):
            changed = thing.copy()
            changed[at] = np.nan_to_num(changed[at]) + 1
            if thing.flags.writeable:
                original = thing.copy()
                yield (
                    f"{path}{list(at)}",
                    functools.partial(np.copyto, thing, changed),
                    functools.partial(np.copyto, thing, original),
                )
            else:
                yield f"{path}{list(at)}", functools.partial(put, changed), functools.partial(put, thing)
    elif isinstance(thing, dict):
        for key, value in thing.items():
            renamed = {(other(name) if name == key else name): item for name, item in thing.items()}
            yield f"name of {path}[{key!r}]", functools.partial(put, renamed), functools.partial(put, thing)
            yield from changes(f"{path}[{key!r}]", value, functools.partial(thing.__setitem__, key), above)
        if len(thing) > 1:
            backwards = dict(reversed(thing.items()))
            yield f"order of {path}", functools.partial(put, backwards), functools.partial(put, thing)
    elif isinstance(thing, list | deque):
        for i, value in enumerate(thing):
            yield from changes(f"{path}[{i}]", value, functools.partial(thing.__setitem__, i), above)
        yield f"end of {path}", functools.partial(thing.append, None), lambda: thing.pop() and None
    elif isinstance(thing, tuple):
        for i, value in enumerate(thing):

            def put_item(new: Any, i: int = i) -> None:
                items = (*thing[:i], new, *thing[i + 1 :])
                put(type(thing)(*items) if hasattr(thing, "_fields") else items)

            yield from changes(f"{path}[{i}]", value, put_item, above)
        yield f"end of {path}", lambda: put((*thing, None)), lambda: put(thing)
    elif isinstance(thing, functools.partial):

        def put_arguments(new: Any) -> None:
            put(functools.partial(thing.func, *new))

        yield from changes(f"{path}.args", thing.args, put_arguments, above)
        yield f"{path}.func", lambda: put(functools.partial(other_function, *thing.args)), lambda: put(thing)
    else:
        # The fields of a dataclass are its content; what it caches is derived from them.
        fields = dataclasses.fields(thing) if dataclasses.is_dataclass(thing) else ()
        for name in [field.name for field in fields] or list(vars(thing)):
            value = getattr(thing, name)
            yield from changes(f"{path}.{name}", value, functools.partial(object.__setattr__, thing, name), above)


def other_function(*_: Any) -> None:
    """Stands in for the function of a partial."""


def busy_server(scheme: sm.Scheme, **options: Any) -> sm.Server:
    """A server with memory, a round just closed, and payloads that are folded, and that wait."""
    rng = np.random.default_rng(5)
    run = sm.Run(scheme, dim=6, seed=3, blocks=[2, 4])
    server = sm.Server(run, round=4, **options)
    clients = [sm.Client(run, node) for node in ("ant", "bee", "cat")]
    for _ in range(2):
        for client in clients:
            blob = client.encode(rng.normal(size=6) + 2, server.round, server.plan(client.node))
            client.delivered(server.accept(client.node, blob, weight=[1.5, 2.5]))
        server.close_round()
    for client in clients[:2]:
        blob = client.encode(rng.normal(size=6) + 2, server.round, server.plan(client.node))
        server.accept(client.node, blob, weight=[1.0, 3.0])
    return server


SCHEMES = {
    "rand-k": sm.named("rand-k", k=3),
    "spatial": sm.named("rand-k-spatial-avg", k=3),
    "spatial, of a table": sm.Scheme(sm.RandK(3), sm.Spatial(table=(1.0, 1.5, 2.0))),
    "balanced": sm.named("rand-k-balanced", k=3),
    "per node": sm.named("rand-k-temporal", k=3),
    "per node, spatial": sm.Scheme(sm.RandK(3), sm.Spatial("max"), sm.PerNode()),
    "stale": sm.named("rand-k-temporal-stale", k=3, forget_after=2),
    "window": sm.named("rand-k-temporal-window", k=3, size=2, values="float64"),
    "shared": sm.Scheme(sm.RandK(5), memory=sm.Shared()),
    "offset": sm.named("diana", k=3),
    "lazy": sm.named("lag", moved=3.0),
    "induced": sm.named("induced", k=3),
}


def holders(server: sm.Server) -> list[object]:
    """What holds the state of a server; digest() folds what waits in its queue."""
    rounds: Any = server._rounds
    return [rounds.roster, rounds.assessment, rounds.estimator]


# What waits in the queue is the same for all; what is folded into totals is that of the decoder and the memory.
@pytest.mark.parametrize(
    ("name", "batch_bytes"),
    [*((name, 0) for name in SCHEMES), *((name, 1 << 24) for name in ("rand-k", "stale", "offset"))],
)
def test_no_change_of_a_server_goes_unseen(name, batch_bytes):
    options = {"missing": "carry"} if "node" in name else {}
    server = busy_server(SCHEMES[name], batch_bytes=batch_bytes, **options)
    before = server.digest()
    seen = 0
    for holder in holders(server):
        for attribute, value in list(vars(holder).items()):
            for path, change, undo in changes(attribute, value, functools.partial(setattr, holder, attribute)):
                change()
                assert server.digest() != before, f"{path} can change unseen"
                undo()
                seen += 1
            assert server.digest() == before, f"{attribute} does not return"
    assert seen > 80


def test_the_walk_reaches_what_matters():
    """The walk above is only worth what it finds: the arrays of totals, memory, queue and receipts are among it."""
    server, folded = busy_server(SCHEMES["stale"]), busy_server(SCHEMES["stale"], batch_bytes=0)
    held = [item for each in (server, folded) for holder in holders(each) for item in vars(holder).items()]
    found = [path for name, value in held for path, *_ in changes(name, value, lambda new: None)]
    for wanted in (
        "_totals.class_sums[0, 0]",
        "_totals.weight[1]",
        "_totals.class_nodes[0, 0]",
        "memory._present.sums[5]",
        "memory._rows['ant'].arrays['last'][0]",
        "memory._rows['cat'].arrays['seen'][0]",
        "memory._present.weights['ant'][0]",
        "memory._received[0][0]",
        "memory._forget_after",
        "accepted['ant'].receipt.digest",
        "accepted['bee'].weight[0]",
        "_closed['cat'].receipt.round",
        "known['cat'][1]",
        "memory._pending[0].payload.parts[0].values[0]",
        "_correlation[0]",
        "missing",
        "round",
        "run.seed",
        "run.scheme.encoder.k",
        "order of known",
        "name of _basis['ant']" if server._rounds.roster._basis else "_warned",
    ):
        assert wanted in found, wanted


def test_two_servers_with_the_same_history_have_the_same_digest():
    for scheme in SCHEMES.values():
        assert busy_server(scheme).digest() == busy_server(scheme).digest()


def test_what_is_only_cached_does_not_count():
    server = busy_server(SCHEMES["spatial"])
    before = server.digest()
    assert server.run.payload_bytes
    assert server.run.digest
    assert server.digest() == before
    blocks = Blocks((1, 2))
    plain = fingerprint(blocks)
    assert blocks.sums(np.ones(3)).tolist() == [1.0, 2.0]
    assert fingerprint(blocks) == plain


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}, "c": 2}),
        ([1, [2]], [[1], 2]),
        ([[], 1], [[1]]),
        ((1, 2), [1, 2]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (0.0, -0.0),
        (1, 1.0),
        (1, True),
        (1, "1"),
        ("1", b"1"),
        (None, "None"),
        ("", b""),
        (["ab", "c"], ["a", "bc"]),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(2), np.zeros(2, np.int64)),
        (np.float32(1.0), np.float64(1.0)),
        (deque([1]), deque([2])),
        (functools.partial(other, 1), functools.partial(other, 2)),
        (functools.partial(other, 1), functools.partial(fingerprint, 1)),
        (np.dtype("f4"), np.dtype("f8")),
        (sm.RandK(2), sm.TopK(2)),
        (sm.RandK(2), sm.RandK(3)),
    ],
)
def test_what_differs_has_another_fingerprint(one, two):
    assert fingerprint(one) != fingerprint(two)
    assert fingerprint(one) == fingerprint(one)


def test_equal_arrays_count_as_equal_wherever_they_lie():
    square = np.arange(12.0).reshape(3, 4)
    assert fingerprint(square[:, ::2]) == fingerprint(square[:, ::2].copy())
    assert fingerprint(square.T) == fingerprint(np.ascontiguousarray(square.T))
