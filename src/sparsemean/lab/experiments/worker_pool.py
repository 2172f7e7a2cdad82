"""A pool of worker processes that run settings in parallel, each with one BLAS thread.

They are started as programs of their own, talk JSON over pipes, and are no part of the terminal's foreground: Ctrl-C
reaches this process alone, which then ends them. None outlives it, however it dies: their input ends when it does, and
they with their input.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from sparsemean.lab.experiments.checkpoints import decoded
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.tables import TableRow

ONE_THREAD = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"),
)
"""Read when numpy or numba is first imported, so they are in a worker's environment from its start."""
# With this process's own import path the same library is found, installed or not.
PROGRAM = (
    "import json, sys; sys.path[:], data_dir = json.loads(sys.argv[1]); "
    "from sparsemean.lab.experiments.worker_process import main; main(data_dir)"
)
TAIL = 2000  # characters of what a process said before it died
PATIENCE = 5.0  # seconds to end when asked
GLANCE = 1.0  # seconds after which waiting looks up, or Windows would not notice Ctrl-C


@dataclass(frozen=True)
class Outcome:
    """The rows of a setting, or the error that it ended with."""

    setting: Setting
    rows: list[TableRow]
    error: str | None
    seconds: float


def run_all(settings: Sequence[Setting], jobs: int, data_dir: str | None) -> Generator[Outcome, None, None]:
    """Run the settings in the given order and yield each as it ends; closing the iterator ends all processes."""
    waiting, results = deque(settings), queue.SimpleQueue[Outcome]()
    workers = [_Worker(waiting, results, data_dir) for _ in range(min(jobs, len(settings)))]
    try:
        for worker in workers:
            worker.start()
        for _ in settings:
            yield _next(results)
    finally:
        waiting.clear()
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join()


def _next(results: queue.SimpleQueue[Outcome]) -> Outcome:
    while True:
        try:
            return results.get(timeout=GLANCE)
        except queue.Empty:
            continue


class _Worker(threading.Thread):
    """A thread that feeds one process, and starts a new one for the next setting if it dies."""

    def __init__(self, waiting: deque[Setting], results: queue.SimpleQueue[Outcome], data_dir: str | None) -> None:
        super().__init__(daemon=True)
        self._waiting, self._results, self._data_dir = waiting, results, data_dir
        self._lock, self._stopped = threading.Lock(), False
        self._process: subprocess.Popen[str] | None = None
        self._said: IO[str] | None = None

    def run(self) -> None:
        try:
            while self._waiting and not self._stopped:
                try:
                    setting = self._waiting.popleft()
                except IndexError:  # another thread was faster
                    break
                self._results.put(self._done(setting))
        finally:
            self._end()

    def stop(self) -> None:
        """End the process at once; called from another thread."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.terminate()

    def _done(self, setting: Setting) -> Outcome:
        begun, rows = time.perf_counter(), list[TableRow]()
        try:
            line = self._ask(setting.canonical)
            reply: dict[str, Any] = json.loads(line) if line else {}
            rows, error = decoded(reply.get("rows", [])), reply.get("error")
            if not line:
                error = f"{setting.label}: {self._last_words()}"
        except (OSError, ValueError) as trouble:  # no process could be started, or it spoke nonsense
            error = f"{setting.label}: {trouble}"
        return Outcome(setting, rows, error, time.perf_counter() - begun)

    def _ask(self, request: str) -> str:
        """The answer of the process; empty if it died."""
        process = self._process or self._start()
        if process is None or process.stdin is None or process.stdout is None:
            return ""
        try:
            process.stdin.write(request + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return ""
        return process.stdout.readline()

    def _start(self) -> subprocess.Popen[str] | None:
        with self._lock:
            if self._stopped:
                return None
            self._said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, json.dumps([sys.path, self._data_dir])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env={**os.environ, **dict.fromkeys(ONE_THREAD, "1")},
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
            return self._process

    def _last_words(self) -> str:
        """Exit code and last output of the process that died; frees its resources."""
        process, said = self._process, self._said
        if process is None or said is None:
            return "stopped"
        code = process.wait(PATIENCE)
        said.seek(0)
        words = said.read()[-TAIL:].strip()
        self._end()
        return f"its process ended with code {code}. {words}".strip()

    def _end(self) -> None:
        """Close the input of the process, wait for its end, and close its files."""
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, self._said):
            if pipe is not None:
                pipe.close()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
