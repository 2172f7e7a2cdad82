"""Every call on a file, in every step of a round, fails or is the last: the state is the one before or the one after.

Each step of a round, and opening, is played once for each n and each way to go wrong at the n-th call on the journal's
files (write, fsync, rename, fallocate, open …; SQLite's among them), in a process of its own that starts from the same
copy of a journal. A library made of cases/failing_calls.c is preloaded for it, so a C compiler is needed.

    python soak/faults.py
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from cases.runs import Case, Step, cases, steps

import sparsemean as sm
from sparsemean.errors import DamagedJournal, JournalError
from sparsemean.journal import faults

LIBRARY = "SPARSEMEAN_FAILING_CALLS"
FAIL, HALF, ALWAYS, KILL_BEFORE, KILL_HALF, KILL_AFTER = range(1, 7)
WAYS = {
    "EIO": (FAIL, errno.EIO),
    "ENOSPC": (FAIL, errno.ENOSPC),
    "EIO, half done": (HALF, errno.EIO),
    "EIO from then on": (ALWAYS, errno.EIO),
    "ENOSPC from then on": (ALWAYS, errno.ENOSPC),
    "killed before": (KILL_BEFORE, 0),
    "killed, half done": (KILL_HALF, 0),
    "killed after": (KILL_AFTER, 0),
}
BEFORE, AFTER = 3, 1  # rounds played before the one in which calls fail, and after it
UNREACHED, HELD, REFUSED, BROKEN, KILLED = 10, 11, 12, 13, -signal.SIGKILL


def main() -> None:
    """Compile, preload, play, print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--case", action="append", help="only this setting of cases/runs.py; may be repeated")
    options.add_argument("--every", type=int, default=1, help="only each so many-th call, for a shorter run")
    options.add_argument("--seed", type=int, default=5)
    options.add_argument("--folder", default="/dev/shm" if Path("/dev/shm").is_dir() else None, help="where to play")
    given = options.parse_args()
    if LIBRARY not in os.environ:
        sys.exit(preloaded())
    logging.getLogger("sparsemean").setLevel(logging.CRITICAL)
    found: Counter[tuple[str, int]] = Counter()
    # Threads would accept in an order of their own, so that there would be no n-th call to speak of.
    chosen = [case for case in cases() if case.threads == 1 and (not given.case or case.name in given.case)]
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for case in chosen:
            found.update(tried(case, Path(folder), given.seed, given.every))
            print(f"{case.name}: {sum(found.values()):,} so far", file=sys.stderr, flush=True)
    print(f"{'at the n-th call':22}{'typed error':>14}{'no error':>12}{'killed':>10}{'BROKEN':>10}")
    for way in WAYS:
        row = [found[way, status] for status in (REFUSED, HELD, KILLED, BROKEN)]
        print(f"{way:22}{row[0]:>14,}{row[1]:>12,}{row[2]:>10,}{row[3]:>10,}")
    broken = sum(count for (_, status), count in found.items() if status == BROKEN)
    print(f"{sum(found.values()):,} failures in {len(chosen)} settings, {broken} broke something")
    sys.exit(broken > 0)


def preloaded() -> int:
    """This program again, with the library."""
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        print(f"there is no C compiler {compiler}", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "failing_calls.so"
        source = Path(__file__).parent / "cases" / "failing_calls.c"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        more = {LIBRARY: str(library), "LD_PRELOAD": str(library)}
        return subprocess.run([sys.executable, *sys.argv], env={**os.environ, **more}, check=False).returncode


@dataclass(frozen=True)
class Plan:
    """A journal, the steps to do from there, the digest before each and after the last, and what comes of each.

    ``opening``: it is not the first step that goes wrong, but opening the journal before it.
    """

    case: Case
    journal: Path
    to_do: list[Step]
    digests: list[str]
    results: list[str]
    opening: bool = False

    def __str__(self) -> str:
        return f"{self.case.name}, {'opening' if self.opening else self.to_do[0].kind}"

    def go_on(self, server: sm.Server, done: int) -> None:
        """Do what is left, and see that all is as it would have been."""
        expect(server.digest(), self.digests[done])
        for step, result in zip(self.to_do[done:], self.results[done:], strict=True):
            expect(step.play(server), result)
        expect(server.digest(), self.digests[-1])


def expect(found: object, *wanted: object) -> None:
    """Stop where it is none of these."""
    if found not in wanted:
        raise AssertionError(f"{found} is none of {wanted}")


def plans(case: Case, folder: Path, seed: int) -> list[Plan]:
    """One for each step of a round, and one to open the journal at its end."""
    to_do = steps(case, BEFORE + 1 + AFTER, seed)
    plain, live, found = case.server(), folder / "live", []
    server, digests, results = case.server(live), [plain.digest()], []
    for step in to_do:
        results.append(step.play(plain))
        digests.append(plain.digest())
    for at, step in enumerate(to_do):
        if step.round == BEFORE:
            # The copy of a journal in use is what a killed server leaves, with records still in the log's own log.
            copy = Path(shutil.copytree(live, folder / f"before-{at}"))
            found.append(Plan(case, copy, to_do[at:], digests[at:], results[at:]))
        step.play(server)
    server.close()
    shutil.rmtree(live)
    return [*found, replace(found[-1], opening=True)]


def tried(case: Case, folder: Path, seed: int, every: int) -> Counter[tuple[str, int]]:
    """How often each way to go wrong ended how."""
    found: Counter[tuple[str, int]] = Counter()
    for plan in plans(case, folder, seed):
        for number, way in enumerate(WAYS):
            n = 1 + number * every // len(WAYS)  # so that ways to go wrong take turns where calls are left out
            while (status := ended(plan, folder / "here", way, n)) != UNREACHED:
                found[way, status] += 1
                n += every
    for copy in folder.iterdir():
        shutil.rmtree(copy)
    return found


def ended(plan: Plan, here: Path, way: str, n: int) -> int:
    """How it ends if the server goes on after the error, and if it dies without doing anything else."""
    status = trial(plan, here, way, n, dies=False)
    return trial(plan, here, way, n, dies=True) if status == REFUSED else status


def trial(plan: Plan, here: Path, way: str, n: int, dies: bool) -> int:
    """Go wrong in a process of its own, then look at what it left."""
    shutil.copytree(plan.journal, here)
    child = os.fork()
    if not child:
        status = BROKEN
        try:
            status = went_wrong(plan, here, way, n, dies)
        except BaseException:
            print(f"\n{plan}, {way} at call {n}:\n{traceback.format_exc()}", flush=True)
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        if status not in (UNREACHED, BROKEN):
            look(plan, here, status, dies, certain=WAYS[way][0] != ALWAYS)
    except BaseException:
        print(f"\n{plan}, {way} at call {n}, afterwards ({dies=}, {status=}):\n{traceback.format_exc()}", flush=True)
        status = BROKEN
    shutil.rmtree(here)
    return status


def went_wrong(plan: Plan, here: Path, way: str, n: int, dies: bool) -> int:
    """Play the step while the n-th call goes wrong; whether it held, was refused, or had not so many calls."""
    library, (how, code) = ctypes.CDLL(os.environ[LIBRARY]), WAYS[way]
    server = None if plan.opening else plan.case.server(here)
    library.failing_arm(str(here).encode(), ctypes.c_long(n), code, how)
    try:
        if server is None:
            server = plan.case.server(here)
        else:
            expect(plan.to_do[0].play(server), plan.results[0])
        status = HELD
    except JournalError as error:
        if way != "EIO":  # which SQLite takes for damage where it reads
            expect(isinstance(error, DamagedJournal), False)
        status = REFUSED
    if library.failing_disarm() < n:
        return UNREACHED
    if status == HELD or not dies:
        server = server or plan.case.server(here)
        plan.go_on(server, done=0 if status == REFUSED or plan.opening else 1)
    return status


def look(plan: Plan, here: Path, status: int, dies: bool, certain: bool) -> None:
    """Open what was left.

    A dead disk cannot be told that what it half took is void, and neither can it by who is killed: there the step may
    turn out to be done.
    """
    expect(faults(here), [])
    with plan.case.server(here) as server:
        digest = server.digest()
        if status == HELD or (status == REFUSED and not dies):
            expect(digest, plan.digests[-1])
        elif (status == REFUSED and certain) or plan.opening:
            expect(digest, plan.digests[0])
        else:
            expect(digest, plan.digests[0], plan.digests[1])
        if digest != plan.digests[-1]:
            plan.go_on(server, done=plan.digests.index(digest))


if __name__ == "__main__":
    main()
