"""One bit of a journal at rest changes, or a file is cut or lost: it is refused, reported, or makes no difference.

For every byte of every file of small journals one bit is flipped, and every file is cut at every length and removed,
one change at a time. Then one of these must hold:

refused
    Opening raises a ``JournalError`` or ``InvalidInput``. Undoing the change then gives a journal that opens as if
    nothing had happened: opening has not removed or changed what it did not understand.
warned
    It opens, and the logger ``sparsemean.journal`` says so at WARNING.
reported
    ``sparsemean.journal.faults`` or ``contents`` says so, asked before it is opened.
late
    It opens, and a later call raises a ``JournalError``.
equal
    It opens with the same round, expectations, last estimate and waiting nodes, and closes the open round into the same
    estimate, to the bit.

Anything else is a fault: SILENT (something differs and nobody says so), untyped (another exception than ours), or dead
(the process is killed, or does not end). The journals are those of two schemes: closed by their server; as a crash
leaves them; and closed after rows were synced, so that the log no longer holds all that was written into them.

    python soak/at_rest.py
    python soak/at_rest.py --journal "rand-k-temporal, crashed" --only flip:log.sqlite-wal:1234:5
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import itertools
import logging
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from cases.small import WHERE, moves, plain, run_of, server_of
from cases.waiting import PATIENCE, threads_wait_at

from sparsemean.errors import InvalidInput, JournalError, SparseMeanError, TooFewNodes
from sparsemean.journal import contents, faults
from sparsemean.journal import journal as journal_module

SCHEMES = ("rand-k-temporal", "rand-k-hybrid")
JOURNALS = {f"{scheme}, {left}": (scheme, left) for scheme in SCHEMES for left in ("closed", "crashed", "synced")}
NODES = "abc"
SCRIPT = [*NODES, "close_round"] * 3 + ["a", "b", "close_round", "a", "b"]  # so that c is of an earlier round
LOG = "log.sqlite"  # SQLite moves pages between this file and those whose names begin with it
BOOKKEEPING = ("lock", f"{LOG}*")  # may come and go
GOOD = ("refused", "warned", "reported", "late", "equal", "documented")
BAD = ("SILENT", "untyped", "dead", "not undone")
PART = 50  # mutants that a process is given at a time
LARGEST = 1 << 30  # bytes of a file: a size that was read from damaged bytes must not fill the disk or the memory
SPACE = 1 << 33  # bytes of addresses of a process, for the same reason
SMALL = 256  # files up to this many bytes are sampled whole
NEAR = 8  # a byte so near to one that is not 0 is in use
UNUSED = 0.1  # share of the sample for bytes that are not in use
SYNC = 0.1  # seconds in which rows are synced meanwhile
UNDO_EVERY = 4  # of a sample, so many-th refused changes are undone


@dataclass(frozen=True)
class Documented:
    """A change that nobody can notice: bytes [first, last) of the files with this name pattern, and why."""

    file: str
    first: int
    last: int
    why: str


DOCUMENTED: list[Documented] = []


@dataclass(frozen=True)
class Mutant:
    """One change of a journal: ``flip`` of a bit, ``cut`` to so many bytes, or ``missing``."""

    kind: str
    file: str
    at: int = 0
    bit: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.file}:{self.at}:{self.bit}"

    @classmethod
    def parse(cls, text: str) -> Mutant:
        """What ``str`` gave."""
        kind, file, at, bit = text.split(":")
        return cls(kind, file, int(at), int(bit))

    def of(self, data: bytes) -> bytes | None:
        """The file after the change; None where it is missing."""
        if self.kind == "missing":
            return None
        if self.kind == "cut":
            return data[: self.at]
        return data[: self.at] + bytes([data[self.at] ^ 1 << self.bit]) + data[self.at + 1 :]

    @property
    def documented(self) -> bool:
        """Whether it is an exception that is listed."""
        return any(fnmatch.fnmatch(self.file, each.file) and each.first <= self.at < each.last for each in DOCUMENTED)


def build(scheme: str, left: str, folder: Path) -> None:
    """A journal of four rounds, with two payloads in the open one."""
    run, live = run_of(scheme), folder.with_name(f"{folder.name}-live")
    unsynced = journal_module.UNSYNCED
    journal_module.UNSYNCED = 0 if left == "synced" else unsynced
    server = server_of(run, live)
    for move in moves(run, SCRIPT):
        move.play(server)
        if left == "synced" and move.kind == "close_round":
            time.sleep(SYNC)
    journal_module.UNSYNCED = unsynced
    if left == "crashed":
        shutil.copytree(live, folder, ignore=shutil.ignore_patterns("*-shm"))
    server.close()
    if left != "crashed":
        shutil.copytree(live, folder)
    shutil.rmtree(live)


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file and what it holds."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def bits(file: str, at: int, every: bool) -> Iterator[int]:
    """Which bits of a byte are flipped: all, or one that is as good as random."""
    yield from range(8) if every else [zlib.crc32(f"{file} {at}".encode()) % 8]


def all_mutants(files: dict[str, bytes], all_bits: bool) -> Iterator[Mutant]:
    """Every byte, every length, every file."""
    for file, data in files.items():
        yield Mutant("missing", file)
        for at in range(len(data)):
            for bit in bits(file, at, all_bits):
                yield Mutant("flip", file, at, bit)
            yield Mutant("cut", file, at)


def sampled(files: dict[str, bytes], count: int) -> list[Mutant]:
    """About so many of them, spread over files, offsets and lengths; few where nothing but zeros is."""
    found = [Mutant("missing", file) for file in files]
    small = {file: data for file, data in files.items() if len(data) <= SMALL}
    for file, data in small.items():
        found += all_mutants({file: data}, False)
    large = {file: in_use(data) for file, data in files.items() if file not in small}
    whole = sum(np.sqrt(len(used)) for used, _ in large.values())
    left = count - len(found)
    for file, (used, unused) in large.items():
        share = int(left * np.sqrt(len(used)) / whole)
        of_unused = int(share * UNUSED) if len(unused) else 0
        offsets = [*spaced(used, (share - of_unused) * 2 // 3), *spaced(unused, of_unused * 2 // 3)]
        found += [Mutant("flip", file, at, bit) for at in offsets for bit in bits(file, at, False)]
        lengths = {0, 1, len(files[file]) - 1, *spaced(used, (share - of_unused) // 3), *spaced(unused, of_unused // 3)}
        found += [Mutant("cut", file, at) for at in sorted(lengths)]
    return list(dict.fromkeys(found))


def in_use(data: bytes) -> tuple[Any, Any]:
    """Offsets of bytes at or near one that is not 0, and of the others."""
    near = np.convolve(np.frombuffer(data, np.uint8) != 0, np.ones(2 * NEAR + 1), "same") > 0.5
    return np.flatnonzero(near), np.flatnonzero(~near)


def spaced(offsets: Any, count: int) -> list[int]:
    """So many of them, at equal distances."""
    if count <= 0 or not len(offsets):
        return []
    return sorted({int(offsets[at]) for at in np.linspace(0, len(offsets) - 1, count).astype(int)})


@dataclass
class Warned(logging.Handler):
    """Notes warnings."""

    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())

    __hash__ = logging.Handler.__hash__


class Hung(BaseException):
    """The time limit of a mutant has passed; the message says where each thread waited."""


class Late(Exception):
    """The server was there, and refused something later on."""


class Bench:
    """Tries mutants of one journal, in two folders that are made whole again after each."""

    def __init__(self, scheme: str, files: dict[str, bytes], home: Path, undo_every: int) -> None:
        self.undo_every, self.refusals = undo_every, 0
        self.run, self.files = run_of(scheme), files
        self.asked, self.opened = home / "asked", home / "opened"
        self.warned = Warned()
        log = logging.getLogger("sparsemean.journal")
        log.addHandler(self.warned)
        log.propagate = False
        logging.getLogger("sparsemean.server").setLevel(logging.CRITICAL)
        for folder in (self.asked, self.opened):
            self.put(folder)
        if found := faults(self.asked):
            raise AssertionError(f"a whole journal has faults: {found}")
        self.waiting = self.held()
        self.truth, said = self.facts()
        if said:
            raise AssertionError(f"a whole journal gives warnings: {said}")

    def put(self, folder: Path, mutant: Mutant | None = None) -> None:
        """The journal as it was, but for one change."""
        folder.mkdir(0o700, exist_ok=True)
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in self.files:
                path.unlink()
        for file, data in self.files.items():
            self.write(folder / file, mutant.of(data) if mutant is not None and mutant.file == file else data)

    def write(self, path: Path, data: bytes | None) -> None:
        """Write the file in place, or remove it."""
        if data is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(0o700, exist_ok=True)
            path.write_bytes(data)

    def held(self) -> object:
        """What ``contents`` says of the open round."""
        found = contents(self.asked)
        return found.open_round, found.waiting

    def facts(self) -> tuple[dict[str, object], list[str]]:
        """All that is compared, from a server that opens the journal; and what it warned of."""
        self.warned.said.clear()
        found: dict[str, object] = {}
        with server_of(self.run, self.opened) as server:
            try:
                found["round"] = server.round
                for node in NODES:
                    found[f"expected({node})"] = plain(server.expected(node))
                found["last_estimate"] = plain(server.last_estimate())
                said = list(self.warned.said)
                try:
                    found["next estimate"] = plain(server.close_round())
                    found["next state"] = server.digest()  # of all that the server holds, so of the state before, too
                except TooFewNodes as error:
                    found["next estimate"] = f"{type(error).__name__}: {error}"
            except JournalError as error:
                raise Late(described(error)) from None
        return found, said

    def tried(self, mutant: Mutant) -> tuple[str, str]:
        """What came of it, one of GOOD or BAD, and what was seen."""
        signal.signal(signal.SIGALRM, _hung)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            return self._tried(mutant)
        except Hung as hung:
            return "dead", str(hung)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _tried(self, mutant: Mutant) -> tuple[str, str]:
        self.put(self.asked, mutant)
        doing = "faults"
        try:
            said = faults(self.asked)
            doing = "contents"
            try:
                waiting = self.held()
            except SparseMeanError as error:
                waiting, said = None, [*said, described(error)]
        except Exception as error:
            return "untyped", f"{doing}: {described(error)}"
        self.put(self.opened, mutant)
        try:
            found, warned = self.facts()
        except (JournalError, InvalidInput) as error:
            return self._undone(mutant, error)
        except Late as late:
            return ("reported", said[0]) if said else ("late", str(late))
        except Exception as error:
            return "untyped", f"opening: {described(error)}"
        if warned:
            return "warned", warned[0]
        if said:
            return "reported", said[0]
        differs = [name for name in self.truth if found.get(name) != self.truth[name]]
        if waiting != self.waiting:
            differs.append(f"contents: {waiting}, not {self.waiting}")
        if not differs:
            return "equal", ""
        if mutant.documented:
            return "documented", ""
        return "SILENT", f"differs: {', '.join(differs)}"

    def _undone(self, mutant: Mutant, refused: SparseMeanError) -> tuple[str, str]:
        """After a refusal the change is undone, and all is as if nothing had happened."""
        left = files_in(self.opened)
        gone = [
            file
            for file in self.files
            if file not in left and file != mutant.file and not any(fnmatch.fnmatch(file, each) for each in BOOKKEEPING)
        ]
        if gone:
            return "not undone", f"after {described(refused)}, {', '.join(gone)} is gone"
        self.refusals += 1
        others = (file for file in self.files if not file.startswith((LOG, mutant.file)))
        same = all(left.get(file) == self.files[file] for file in others)
        if same and self.refusals % self.undo_every:
            return "refused", described(refused)
        if mutant.file.startswith(LOG):
            for file in left:
                if file.startswith(LOG):
                    (self.opened / file).unlink()
        for file, data in self.files.items():
            if file == mutant.file or (file.startswith(LOG) and mutant.file.startswith(LOG)):
                self.write(self.opened / file, data)
        try:
            found, warned = self.facts()
        except Exception as error:
            return "not undone", f"after {described(refused)}, and undoing: {described(error)}"
        differs = [name for name in self.truth if found.get(name) != self.truth[name]]
        if differs or warned:
            return "not undone", f"after {described(refused)}, and undoing: {', '.join(differs + warned)}"
        return "refused", described(refused)


def _hung(_: int, frame: FrameType | None) -> None:
    raise Hung(f"not done after {PATIENCE:g} s; {threads_wait_at(frame)}")


def described(error: BaseException) -> str:
    """Its type, message, and the place where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {str(error)[:150]}{where}"


def work(scheme: str, folder: str, undo_every: int, pipe: Connection, at: Any) -> None:
    """A process that tries what it is sent; ``at`` is the number of the mutant under way."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for limit, most in ((resource.RLIMIT_FSIZE, LARGEST), (resource.RLIMIT_AS, SPACE)):
        resource.setrlimit(limit, (most, most))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=WHERE, ignore_cleanup_errors=True) as home:
        bench = Bench(scheme, files_in(Path(folder)), Path(home), undo_every)
        with contextlib.suppress(EOFError):
            while True:
                for number, mutant in pipe.recv():
                    at.value = number
                    pipe.send((number, *bench.tried(mutant)))
                pipe.send(None)


@dataclass
class Found:
    """What came of the mutants of one journal."""

    name: str
    outcomes: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # file, kind of mutant, outcome
    bad: list[tuple[Mutant, str, str]] = field(default_factory=list)
    done: int = 0

    def add(self, mutant: Mutant, outcome: str, seen: str) -> None:
        """Count one."""
        self.done += 1
        self.outcomes[mutant.file, mutant.kind, outcome] += 1
        if outcome in BAD:
            self.bad.append((mutant, outcome, seen))


class Sweep:
    """All mutants of one journal, shared out to processes; a process that dies is replaced."""

    def __init__(self, name: str, folder: Path, mutants: Iterator[Mutant], start: int, undo_every: int) -> None:
        self.undo_every = undo_every
        self.scheme, self.folder, self.found = JOURNALS[name][0], folder, Found(name)
        self.numbered = enumerate(mutants)
        self.lock, self.stopped = threading.Lock(), False
        self.under_way: set[int] = set()  # first numbers of the parts that are not done
        self.next = start
        for _ in itertools.islice(self.numbered, start):
            pass

    def play(self, workers: int, total: int) -> bool:
        """Try them; whether it came to the end."""
        since, first = time.monotonic(), self.next
        threads = [threading.Thread(target=self._drive, daemon=True) for _ in range(workers)]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                threads[0].join(1.0) if threads[0].is_alive() else time.sleep(0.2)
                rate = self.found.done / (time.monotonic() - since)
                line = f"{self.found.name}: {first + self.found.done:,} of {total:,}, {rate:.0f}/s"
                print(f"\r{line}, {len(self.found.bad):,} faults ", end="", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            self.stopped = True
            for thread in threads:
                thread.join()
        print(file=sys.stderr)
        return not self.stopped

    @property
    def reached(self) -> int:
        """All mutants before this one are done."""
        return min(self.under_way, default=self.next)

    def _part(self) -> list[tuple[int, Mutant]]:
        with self.lock:
            part = [] if self.stopped else list(itertools.islice(self.numbered, PART))
            if part:
                self.under_way.add(part[0][0])
                self.next = part[-1][0] + 1
            return part

    def _drive(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        process: Any = None
        while part := self._part():
            begins, left = part[0][0], dict(part)
            while left and not self.stopped:
                if process is None:
                    at = spawn.Value("q", -1)
                    ours, theirs = spawn.Pipe()
                    given = (self.scheme, str(self.folder), self.undo_every, theirs, at)
                    process = spawn.Process(target=work, args=given, daemon=True)
                    process.start()
                    theirs.close()
                try:
                    ours.send(list(left.items()))
                    while (answer := ours.recv()) is not None:
                        number, outcome, seen = answer
                        with self.lock:
                            self.found.add(left.pop(number), outcome, seen)
                except (EOFError, ConnectionError):
                    process.join()
                    if at.value not in left:
                        raise RuntimeError(f"a process ended with {process.exitcode} before its first mutant") from None
                    with self.lock:
                        self.found.add(left.pop(at.value), "dead", f"the process ended with {process.exitcode}")
                    process = None
            if not left:
                with self.lock:
                    self.under_way.discard(begins)
        if process is not None:
            ours.close()
            process.join()


def report(found: list[Found], show: int) -> int:
    """Print what was found; how many faults there are."""
    print(f"{'':44}" + "".join(f"{outcome:>11}" for outcome in (*GOOD, *BAD)))
    for each in found:
        for file, kind in sorted({key[:2] for key in each.outcomes}):
            row = [each.outcomes[file, kind, outcome] for outcome in (*GOOD, *BAD)]
            print(f"{each.name:25}{file:15}{kind:4.4}" + "".join(f"{count:>11,}" for count in row))
    for each in found:
        kinds: dict[tuple[str, str, str, str], list[tuple[Mutant, str]]] = {}
        for mutant, outcome, seen in each.bad:
            # Messages differ in their numbers; what they say, and where, is the kind of fault.
            what = "".join(letter for letter in seen if not letter.isdigit())[:90]
            kinds.setdefault((mutant.file, mutant.kind, outcome, what), []).append((mutant, seen))
        for (file, kind, outcome, _), cases in sorted(kinds.items(), key=lambda item: -len(item[1])):
            print(f"{outcome} {each.name}: {len(cases):,} × {kind} of {file}: {cases[0][1]}")
            for mutant, _ in cases[:show]:
                print(f'    --journal "{each.name}" --only {mutant}')
    done, bad = sum(each.done for each in found), sum(len(each.bad) for each in found)
    print(f"{done:,} changes of {len(found)} journals, {bad:,} faults")
    return bad


def main() -> None:
    """Change, open, compare, print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--journal", action="append", choices=JOURNALS, help="only this one; may be repeated")
    options.add_argument("--sample", type=int, help="so many changes of each journal in place of all")
    options.add_argument("--all-bits", action="store_true", help="all eight bits of a byte, not one")
    options.add_argument("--start", type=int, default=0, help="go on with this change of the first journal")
    options.add_argument("--only", type=Mutant.parse, action="append", help="this change, as it is printed")
    options.add_argument("--show", type=int, default=2, help="changes to print of each kind of fault")
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = options.parse_args()
    since, found, start = time.monotonic(), [], given.start
    with tempfile.TemporaryDirectory(dir=WHERE) as home:
        for name in given.journal or JOURNALS:
            folder = Path(home) / name
            build(*JOURNALS[name], folder)
            files = files_in(folder)
            if given.only or given.sample:
                chosen = given.only or sampled(files, given.sample)
                mutants, total = iter(chosen), len(chosen)
            else:
                size = sum(map(len, files.values()))
                mutants, total = all_mutants(files, given.all_bits), len(files) + size * (9 if given.all_bits else 2)
            sweep = Sweep(name, folder, mutants, start, UNDO_EVERY if given.sample else 1)
            found.append(sweep.found)
            if not sweep.play(given.workers, total):
                print(f'interrupted; go on with --journal "{name}" --start {sweep.reached}', file=sys.stderr)
                break
            start = 0
    bad = report(found, given.show)
    print(f"{time.monotonic() - since:.0f} s")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
