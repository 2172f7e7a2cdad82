"""A million requests, most of them hostile: each is refused, memory stays, honest nodes are answered as before.

    python soak/serve_requests.py [--requests 1000000] [--attackers 2]

Attackers send garbage, wrong tokens, bodies without end or too large, requests that two servers would read differently,
paths that lead nowhere and payloads that are none; beside them 200 connections never finish their request. Ten honest
nodes go on sending, first in peace and then among all that; the longest waits (p99) of both are compared.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import socket
import sys
import tempfile
import time
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "integrations" / "http"))
from serving import Service, serving  # type: ignore[import-not-found]

import sparsemean as sm

RUN = sm.Run(sm.named("rand-k", k=100), dim=10_000)
NODES = tuple(f"node-{i}" for i in range(10))
SILENT = 200
PEACE = 20.0
MOST = 3.0  # times the p99 of peace


def request(line: str, *headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join([line, "Host: x", *headers, "", ""]).encode() + body


def attack(chance: random.Random, token: str) -> bytes:
    """One hostile request."""
    put, known = "PUT /v1/payload HTTP/1.1", f"Authorization: Bearer {token}"
    kind = chance.randrange(9)
    if kind == 0:
        return chance.randbytes(chance.randrange(1, 300)) + b"\r\n\r\n"
    if kind == 1:
        return request(put, f"Authorization: Bearer {chance.randbytes(8).hex()}.{'x' * 43}", "Content-Length: 10")
    if kind == 2:
        return request(put, known, f"Content-Length: {10 ** chance.randrange(6, 19)}")
    if kind == 3:
        return request(put, known, "Transfer-Encoding: chunked", body=b"5\r\nhello\r\n" * 100)
    if kind == 4:
        return request(
            put, known, "Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
        )
    if kind == 5:
        return request(f"GET /{'../' * chance.randrange(9)}{chance.randbytes(4).hex()} HTTP/1.1")
    if kind == 6:
        body = chance.randbytes(chance.randrange(RUN.payload_bytes))
        return request(put, known, f"Content-Length: {len(body)}", body=body)
    if kind == 7:
        return request("POST /v1/admin/close HTTP/1.1", known, "Content-Length: 0")
    return request(f"GET /v1/round?after=x{chance.randbytes(3).hex()} HTTP/1.1", known)


def attacker(port: int, token: str, seed: int, most: int, done: Synchronized[int]) -> None:
    """Send so many requests, each on a connection of its own."""
    chance = random.Random(seed)
    for _ in range(most):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
                line.sendall(attack(chance, token))
                answer = line.recv(1 << 16)
                if answer and not answer.startswith(b"HTTP/1.1 4"):
                    raise SystemExit(f"not refused: {answer[:200]!r}")
        except OSError:
            pass  # it was ended at once
        with done.get_lock():
            done.value += 1


async def honest(service: Service, over: asyncio.Event, waited: list[float]) -> None:
    """All honest nodes, each with a connection that stays."""

    async def one(node: str) -> None:
        blob = sm.Client(RUN, node).encode(np.ones(RUN.dim), 0)
        head = f"PUT /v1/payload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.tokens[node]}\r\n"
        sent = head.encode() + b"Content-Length: %d\r\n\r\n" % len(blob) + blob
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        while not over.is_set():
            began = time.perf_counter()
            writer.write(sent)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line[15:]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:")
            )
            await reader.readexactly(length)
            assert answer.startswith(b"HTTP/1.1 200"), answer
            waited.append(time.perf_counter() - began)
            await asyncio.sleep(0.05)
        writer.close()

    await asyncio.gather(*map(one, NODES))


def resident(pid: int) -> int:
    """MiB of memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) >> 10


async def play(service: Service, requests: int, attackers: int) -> None:
    assert service.process is not None
    peace: list[float] = []
    war: list[float] = []
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(PEACE, over.set)
    await honest(service, over, peace)
    done: Synchronized[int] = multiprocessing.Value("q", 0)
    each = requests // attackers
    work = [(service.port, service.tokens["attacker"], seed, each, done) for seed in range(attackers)]
    processes = [multiprocessing.Process(target=attacker, args=arguments, daemon=True) for arguments in work]
    for process in processes:
        process.start()
    over = asyncio.Event()
    sending = asyncio.create_task(honest(service, over, war))
    memory: list[int] = []
    silent: list[socket.socket] = []
    while any(process.is_alive() for process in processes):
        while len(silent) < SILENT:
            silent.append(socket.create_connection(("127.0.0.1", service.port)))
            silent[-1].sendall(b"GET / HTTP/1.1\r\nX: ")
        await asyncio.sleep(1.0)
        for line in silent[: SILENT // 10]:  # they are ended after some seconds; others take their place
            line.close()
        del silent[: SILENT // 10]
        if done.value >= len(memory) * requests // 20:
            memory.append(resident(service.process.pid))
            print(f"\r{done.value:,} requests, {memory[-1]} MiB", end="", flush=True)
    over.set()
    await sending
    for line in silent:
        line.close()
    if any(process.exitcode for process in processes):
        sys.exit("\na hostile request was not refused")
    calm, stormy = np.quantile(peace, 0.99), np.quantile(war, 0.99)
    print(f"\nhonest p99: {1e3 * calm:.1f} ms in peace, {1e3 * stormy:.1f} ms among {done.value:,} hostile requests")
    print(f"{stormy / calm:.2f} times; memory from {memory[1]} to {memory[-1]} MiB")
    if stormy > MOST * calm:
        sys.exit(f"honest nodes wait more than {MOST:g} times as long")
    if memory[-1] > memory[1] + 30:
        sys.exit("memory grows")
    if "Traceback" in service.log():
        sys.exit(f"an error of ours:\n{service.log()[-3000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--attackers", type=int, default=2)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        names = (*NODES, "attacker")
        with serving(Path(folder), RUN, "--wanted", len(names), "--minimum", len(names), nodes=names) as service:
            asyncio.run(play(service, told.requests, told.attackers))


if __name__ == "__main__":
    main()
