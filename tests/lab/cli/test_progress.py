"""The progress bar: Ctrl-C is heard, also where Python drops it."""

from __future__ import annotations

import os
import signal

import pytest

from sparsemean.lab.cli.progress import progress_bar


class Dying:
    """Is interrupted in its destructor."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # the interrupt comes within
            pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_python_drops_is_raised_by_the_next_update():
    before = signal.getsignal(signal.SIGINT)
    with progress_bar() as bar:
        task = bar.add_task("working", total=2)
        bar.update(task, completed=1)
        thing = Dying()
        del thing
        with pytest.raises(KeyboardInterrupt):
            bar.update(task, completed=2)
        bar.update(task, completed=2)  # once, and not for ever
    assert signal.getsignal(signal.SIGINT) is before
