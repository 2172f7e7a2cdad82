"""One timer for interrupts at a given time and for the time limit of a case."""

from __future__ import annotations

import faulthandler
import signal
import time
from dataclasses import dataclass
from types import FrameType

from cases.waiting import threads_wait_at

from .wrong import Hung

# Each of the three waits of a case (the call, the other thread, what follows) has the whole of its patience.
WAITS = 3


@dataclass
class Alarm:
    """Raise ``Hung`` in the main thread after ``patience`` seconds; before that, interrupts if they are asked for.

    Parameters
    ----------
    patience
        Seconds for one wait. ``calm`` and each interrupt begin them anew. Where even ``Hung`` cannot end a wait, after
        three times as long, the process prints the stacks of all threads to stderr and ends.
    doing
        What is waited for, for the message.
    """

    patience: float
    doing: str
    interrupts: int = 0
    again: float = 0.0

    def __enter__(self) -> Alarm:
        self._handler = signal.signal(signal.SIGALRM, self._ring)
        faulthandler.dump_traceback_later(WAITS * self.patience + 60, exit=True)
        self.calm()
        return self

    def interrupt_in(self, seconds: float, again: float = 0.0) -> None:
        """Raise KeyboardInterrupt in the main thread so many seconds from now, and ``again`` so many later."""
        self.interrupts, self.again = 2 if again else 1, again
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))

    def _ring(self, _: int, frame: FrameType | None) -> None:
        if self.interrupts:
            self.interrupts, self.until = self.interrupts - 1, time.monotonic() + 0.9 * self.patience
            signal.setitimer(signal.ITIMER_REAL, self.again if self.interrupts else self.patience)
            raise KeyboardInterrupt
        if time.monotonic() < self.until:  # it rang just when it was put off
            return
        signal.setitimer(signal.ITIMER_REAL, 0.5)  # whoever catches this and waits again is told again
        raise Hung(f"{self.doing}: not done after {self.patience:g} s; {threads_wait_at(frame)}")

    def calm(self) -> None:
        """No interrupt any more; only the time limit, from now on."""
        self.interrupts, self.until = 0, time.monotonic() + 0.9 * self.patience
        signal.setitimer(signal.ITIMER_REAL, self.patience)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, self._handler)
