"""A call of the server is interrupted (KeyboardInterrupt) wherever Python can see a signal; nothing is ever half done.

Python runs signal handlers in the main thread, between two instructions: after a call of a C function, at the end of a
loop's body, and when a function is entered. Each of these places that a call of the server passes is tried, with a new
server in the same state, for every operation, with and without a journal. There are five ways to interrupt:

signal
    A real SIGINT with Python's own handler, raised just before the instruction, so that the interpreter sees it there.
raise
    KeyboardInterrupt raised by the tracer after the instruction, which no handler or mask of signals can put off.
timer
    SIGALRM after a random time, with a handler that raises KeyboardInterrupt, so that waiting is interrupted too; every
    third time another one soon after.
helper
    A real SIGINT when a thread that the server uses comes to such a place, and stops there for a moment.
twice
    The same with two of them, so that the main thread need not wait, and makes the next call while the work goes on.

Afterwards the state is that before the call or that after it (of ``accept_many``: after some of its payloads), or every
call raises a typed error. The same call made again succeeds with the same result, an estimate that was not delivered
among them, and the run goes on as one that nobody interrupted, to the bit. So does the journal when it is opened again.

    python soak/interrupts.py
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from cases.interrupts.case import OUTCOMES
from cases.interrupts.plan import OPERATIONS
from cases.interrupts.sweep import Choice, Found, Setting, swept
from cases.waiting import PATIENCE

SCHEMES = ("rand-k-spatial-avg", "rand-k-temporal", "rand-k-hybrid", "diana")
WAYS = ("signal", "raise", "helper", "twice", "timer")


def main() -> None:
    """Interrupt, compare, print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scheme", action="append", choices=SCHEMES, help="only this one; may be repeated")
    options.add_argument("--operation", action="append", choices=OPERATIONS, help="only this one; may be repeated")
    options.add_argument("--journal", choices=("with", "without"), help="only with or without a journal")
    options.add_argument("--way", action="append", choices=WAYS, help="only this one; may be repeated")
    options.add_argument("--in-turn", action="store_true", help="each operation with one of the schemes, in turn")
    options.add_argument("--lines", action="store_true", help="each line once, not every event")
    options.add_argument("--nth", type=int, default=1, help="only each n-th of these, from one that the seed chooses")
    options.add_argument("--helper-nth", type=int, default=1, help="the same for helper and twice")
    options.add_argument("--timers", type=int, default=300, help="random delays for each operation and scheme")
    options.add_argument("--patience", type=float, default=PATIENCE, help="seconds after which a wait counts as hung")
    options.add_argument("--show", type=int, default=5, help="wrong cases to print of each operation and scheme")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = options.parse_args()
    choice = Choice(
        ways=tuple(given.way or WAYS),
        lines=given.lines,
        nth=given.nth,
        helper_nth=given.helper_nth,
        timers=given.timers,
        patience=given.patience,
        seed=given.seed,
    )
    since, settings, found = time.monotonic(), settings_of(given), []
    pool = ThreadPoolExecutor(given.workers)
    try:
        for each in [pool.submit(swept, setting, choice) for setting in settings]:
            found.append(each.result())
            print(f"\r{len(found)} of {len(settings)} settings", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(" (interrupted)", end="", file=sys.stderr)
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.kill()
    print(file=sys.stderr)
    wrong = report(found, given.show)
    print(f"{time.monotonic() - since:.0f} s")
    sys.exit(wrong > 0)


def settings_of(given: argparse.Namespace) -> list[Setting]:
    """What the command line asks for."""
    journals = {"with": [True], "without": [False], None: [False, True]}[given.journal]
    calls = list(itertools.product(given.operation or OPERATIONS, journals))
    schemes = given.scheme or SCHEMES
    if given.in_turn:
        turns = zip(calls, itertools.cycle(schemes), strict=False)
        return [Setting(scheme, operation, journal) for (operation, journal), scheme in turns]
    return [Setting(scheme, operation, journal) for operation, journal in calls for scheme in schemes]


def report(found: list[Found], show: int) -> int:
    """Print what was found; how many cases were wrong."""
    width = max((len(each.name) for each in found), default=0) + 2
    print(f"{'':{width}}{'way':8}{'places':>8}{'events':>8}" + "".join(f"{name:>10}" for name in OUTCOMES))
    for each in found:
        for way in WAYS:
            row = [each.outcomes[way, outcome] for outcome in OUTCOMES]
            if sum(row):
                counts = "".join(f"{count:>10,}" for count in row)
                print(f"{each.name:{width}}{way:8}{each.places[way]:>8,}{each.events[way]:>8,}{counts}")
    kinds: Counter[tuple[str, str]] = Counter()
    for each in found:
        kinds.update((kind, each.name) for _, kind, _ in each.wrong)
        for case, _, seen in each.wrong[:show]:
            print(f"WRONG {case}\n      {seen}")
        if len(each.wrong) > show:
            print(f"      and {len(each.wrong) - show:,} more of {each.name}")
    for kind in sorted({kind for kind, _ in kinds}):
        of_kind = {name: count for (other, name), count in kinds.items() if other == kind}
        print(f"{kind}: {sum(of_kind.values()):,}")
        for name, count in of_kind.items():
            print(f"    {name}: {count:,}")
    total = sum(sum(each.outcomes.values()) for each in found)
    unreached = sum(count for each in found for (_, outcome), count in each.outcomes.items() if outcome == "unreached")
    wrong = sum(len(each.wrong) for each in found)
    print(f"{total:,} interrupts ({unreached:,} not reached) in {len(found)} settings, {wrong:,} left something wrong")
    return wrong


if __name__ == "__main__":
    main()
