"""The program of a worker process: one setting per line of JSON in, one line of JSON with its rows out."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading

from sparsemean.lab.experiments.checkpoints import encoded
from sparsemean.lab.experiments.setting import Setting, SettingFailed
from sparsemean.lab.experiments.setting_rows import measured


def main(data_dir: str | None) -> None:
    """Answer every setting on stdin, until it ends, with its rows or its error; what libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    asked = queue.SimpleQueue[str]()
    threading.Thread(target=_read, args=(asked,), daemon=True).start()
    while True:
        setting = Setting.from_json(asked.get())
        answers.write(json.dumps(answer(setting, data_dir), allow_nan=False) + "\n")
        answers.flush()


def _read(asked: queue.SimpleQueue[str]) -> None:
    """Hand over what comes, and end this process with its input: whoever asked is done, or dead, and reads no more."""
    for line in sys.stdin:
        asked.put(line)
    os._exit(0)


def answer(setting: Setting, data_dir: str | None) -> dict[str, object]:
    """The rows of the setting, or its error."""
    try:
        return {"rows": encoded(measured(setting, data_dir))}
    except SettingFailed as error:
        return {"error": str(error)}
