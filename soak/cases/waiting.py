"""Where the threads of a process wait: what to say when a time limit has passed."""

from __future__ import annotations

import sys
import threading
import traceback
from pathlib import Path
from types import FrameType

PATIENCE = 600.0  # seconds that one step may take, generous so that a loaded machine is no fault


def threads_wait_at(main: FrameType | None = None) -> str:
    """The innermost calls of every thread; ``main`` stands for the main thread's frame, as a signal handler gets it."""
    frames = sys._current_frames()
    found = []
    for thread in threading.enumerate():
        frame = main if main is not None and thread is threading.main_thread() else frames.get(thread.ident or 0)
        calls = [f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in traceback.extract_stack(frame)]
        found.append(f"{thread.name} at {' > '.join(calls[-5:])}")
    return "; ".join(found)
