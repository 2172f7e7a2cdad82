"""A thousand nodes at a service at once: payloads a second as a ratio to ``accept_many``, and how long one waits.

    python soak/serve_load.py [--nodes 1000] [--rounds 5] [--dim 100000] [--count 1000]

Each node holds one connection and sends one payload a round, all at the same time, so that most wait for others. Load
generator and service share this machine. Both ends keep a journal with durability "round".
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "integrations" / "http"))
from serving import Service, serving  # type: ignore[import-not-found]

import sparsemean as sm


def payloads(run: sm.Run, nodes: list[str], rounds: int) -> list[dict[str, bytes]]:
    """What each node sends in each round."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=run.dim)
    vectors = {node: common + rng.normal(size=run.dim) for node in nodes[:20]}
    own = [vectors[nodes[i % 20]] for i in range(len(nodes))]
    return [
        {node: sm.Client(run, node).encode(vector, t) for node, vector in zip(nodes, own, strict=True)}
        for t in range(rounds)
    ]


async def answer_of(reader: asyncio.StreamReader) -> int:
    """Status of the next answer, whose body is read."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(length)
    return int(head[9:12])


async def load(service: Service, sent: list[dict[str, bytes]]) -> tuple[list[float], list[float]]:
    """Seconds of each round, and seconds that each payload waited for its receipt."""
    lines = {node: await asyncio.open_connection("127.0.0.1", service.port) for node in sent[0]}
    waited: list[float] = []
    rounds: list[float] = []

    async def put(node: str, blob: bytes) -> None:
        reader, writer = lines[node]
        began = time.perf_counter()
        head = f"PUT /v1/payload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.tokens[node]}\r\n"
        writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(blob) + blob)
        status = await answer_of(reader)
        waited.append(time.perf_counter() - began)
        assert status == 200, status

    for t, blobs in enumerate(sent):
        while service.json("/v1/round", service.tokens[next(iter(blobs))])["number"] != t:
            await asyncio.sleep(0.02)
        began = time.perf_counter()
        await asyncio.gather(*(put(node, blob) for node, blob in blobs.items()))
        rounds.append(time.perf_counter() - began)
    for _, writer in lines.values():
        writer.close()
    return rounds, waited


def in_process(run: sm.Run, folder: Path, sent: list[dict[str, bytes]]) -> list[float]:
    """Seconds that ``accept_many`` takes for each round."""
    found = []
    with sm.Server(run, journal=folder / "journal", durability="round") as server:
        for blobs in sent:
            began = time.perf_counter()
            answers = server.accept_many(blobs)
            found.append(time.perf_counter() - began)
            assert all(isinstance(answer, sm.Receipt) for _, answer in answers)
            server.close_round()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dim", type=int, default=100_000)
    parser.add_argument("--count", type=int, default=1000, help="coordinates that a node sends")
    told = parser.parse_args()
    nodes = [f"node-{i}" for i in range(told.nodes)]
    run = sm.Run(sm.named("rand-k-spatial-avg", k=told.count), told.dim)
    sent = payloads(run, nodes, told.rounds)
    with tempfile.TemporaryDirectory() as folder:
        alone = in_process(run, Path(folder), sent)
        settings = ("--wanted", told.nodes, "--journal", Path(folder) / "served", "--durability", "round")
        with serving(Path(folder), run, *settings, nodes=nodes) as service:
            rounds, waited = asyncio.run(load(service, sent))
            history = service.json("/v1/history")["rounds"]
    warm = slice(1, None)  # the first round compiles
    over_http = told.nodes / np.mean(rounds[warm])
    by_itself = told.nodes / np.mean(alone[warm])
    late = np.array(waited[told.nodes :])
    share, wait, longest = over_http / by_itself, np.median(late), np.quantile(late, 0.99)
    print(f"accept_many: {by_itself:,.0f} payloads a second; over HTTP {over_http:,.0f}, {share:.3f} of it")
    print(f"where all send at the same time, one waits {wait:.3f} s (median), {longest:.3f} s (p99)")
    if [row["nodes"] for row in history] != [told.nodes] * told.rounds:
        sys.exit("a payload with a receipt is in no round")


if __name__ == "__main__":
    main()
