"""One operation of a scheme: the state it starts from, and what an undisturbed server does."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import sparsemean as sm
from cases.small import Move, moves, plain, run_of, server_of

from .wrong import Wrong, expect, shown

TWO_ROUNDS = ["a", "b", "c", "d", "close_round", "a", "b", "c", "close_round"]
LAST_ROUND = ["a", "b", "c", "d", "close_round"]
BESIDE = "accept, beside another thread"
OTHER = "c"  # the node of the other thread
# What is played in the open round before the call that is interrupted, the call, and the rest of the round.
OPERATIONS: dict[str, tuple[list[str], str, list[str]]] = {
    "accept": (["a"], "b", ["c", "close_round"]),
    "accept_many": (["a"], "bcd", ["close_round"]),
    "close_round": (["a", "b", "c"], "close_round", []),
    "skip_round": (["a", "b", "c"], "skip_round", []),
    "forget": (["a"], "-d", ["b", "c", "close_round"]),
    "close": (["a", "b"], "close", ["c", "close_round"]),
    BESIDE: (["a"], "b", ["close_round"]),
}


@dataclass(frozen=True)
class Continuation:
    """How a run goes on after the operation: results of the further calls, and the last digest."""

    results: list[object]
    digest: str


class Plan:
    """One operation of a scheme: the state it starts from, and what a server does that nobody interrupts."""

    def __init__(self, name: str, scheme: str, operation: str, journal: bool, home: Path) -> None:
        self.name, self.operation, self.home, self.number = name, operation, home, 0
        self.beside = operation == BESIDE
        self.run = run_of(scheme)
        begin, word, rest = OPERATIONS[operation]
        script = [*TWO_ROUNDS, *begin, word, *([OTHER] if self.beside else []), *rest, *LAST_ROUND]
        made = list(moves(self.run, script))
        at = len(TWO_ROUNDS) + len(begin)
        self.begin, self.move, self.rest = made[:at], made[at], made[at + 1 + self.beside :]
        self.other = made[at + 1] if self.beside else None
        twin = self.fresh()
        self.before = twin.digest()
        self.rounds = {self.before: twin.round}  # the states that are right, and their open round
        self.result = None if self.operation == "close" else plain(self.move.play(twin))
        self.after = twin.digest()
        self.rounds[self.after] = twin.round
        self.ends: dict[str, Continuation] = {}
        if self.other is None:
            self.ends[self.after] = self._continuation(twin)
        if self.move.kind == "accept_many":
            self._after(*(Move("accept_many", self.move.payloads[:count]) for count in range(len(self.move.payloads))))
        if self.other is not None:
            self.other_result = plain(self.other.play(twin))
            self._after(self.other)
            for order in ((self.move, self.other), (self.other, self.move)):
                last = self.fresh()
                for move in order:
                    move.play(last)
                digest = last.digest()
                self.rounds[digest] = last.round
                self.ends[digest] = self._continuation(last)
        self.template = None
        if journal:
            self.template = home / "template"
            with server_of(self.run, self.template) as server:
                for move in self.begin:
                    move.play(server)
                expect("digest", server.digest(), self.before)
                # A copy of a journal in use is what a killed server leaves.
                shutil.copytree(self.template, home / "copy", ignore=shutil.ignore_patterns("*-shm"))
            shutil.rmtree(self.template)
            (home / "copy").rename(self.template)

    def fresh(self) -> sm.Server:
        """A server without a journal in the state from which the operation starts."""
        server = server_of(self.run)
        for move in self.begin:
            move.play(server)
        return server

    def begun(self) -> tuple[sm.Server, Path | None]:
        """A server in that state, and the folder of its journal."""
        if self.template is None:
            return self.fresh(), None
        folder = self.copy(self.template)
        return server_of(self.run, folder), folder

    def copy(self, folder: Path) -> Path:
        """What a server that is killed now would leave."""
        self.number += 1
        copied = self.home / str(self.number)
        shutil.copytree(folder, copied, ignore=shutil.ignore_patterns("*-shm"))
        return copied

    def _after(self, *each: Move) -> None:
        for move in each:
            server = self.fresh()
            move.play(server)
            self.rounds[server.digest()] = server.round

    def _continuation(self, server: sm.Server) -> Continuation:
        results = [plain(move.play(server)) for move in self.rest]
        return Continuation(results, server.digest())

    def go_on(self, server: sm.Server) -> None:
        """From a state after the operation: the rest is as without an interrupt."""
        found = server.digest()
        expect("wrong state", found, *self.ends)
        continuation = self.ends[found]
        for move, result in zip(self.rest, continuation.results, strict=True):
            again = plain(move.play(server))
            if again != result:
                kind = "wrong mean" if move.kind == "close_round" else "wrong result"
                raise Wrong(kind, f"{move.kind} later on gave {shown(again)}, not {shown(result)}")
        expect("wrong state", server.digest(), continuation.digest)
