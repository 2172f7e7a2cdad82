"""A second thread that accepts a payload while the main thread is interrupted."""

from __future__ import annotations

import threading

import sparsemean as sm
from cases.small import Move
from cases.waiting import threads_wait_at

from .wrong import Wrong

OTHER_THREAD = "the other thread"
HEAD_START = 0.003  # seconds that another thread has to come as far as it can


class Other:
    """It must get its receipt, whatever happens to the main thread."""

    def __init__(self, move: Move, server: sm.Server) -> None:
        self._move, self._server = move, server
        self._go = threading.Event()
        self._thread = threading.Thread(target=self._accept, name=OTHER_THREAD, daemon=True)
        self._thread.start()
        self.answer: object = None

    def _accept(self) -> None:
        self._go.wait()
        try:
            self.answer = self._move.play(self._server)
        except BaseException as error:
            self.answer = error

    def begin(self, wait: bool = True) -> None:
        """Let it go, and let it come as far as it can."""
        self._go.set()
        if wait:
            self._thread.join(HEAD_START)

    def end(self, patience: float) -> None:
        """Wait for its receipt."""
        self._go.set()
        self._thread.join(patience)
        if self._thread.is_alive():
            raise Wrong("hung", f"no receipt for the other thread after {patience:g} s: {threads_wait_at()}")
        if not isinstance(self.answer, sm.Receipt):
            raise Wrong("no receipt", f"the other thread's accept gave {self.answer!r}")
        if self.answer.node != self._move.payloads[0][0]:
            raise Wrong("wrong receipt", f"the other thread's accept gave {self.answer!r}")
