"""The program of a worker process: one setting per line of JSON in, one line of JSON with its rows out."""

from __future__ import annotations

import json
import os
import sys

from sparsemean.lab.experiments.checkpoints import encoded
from sparsemean.lab.experiments.setting import Setting, SettingFailed
from sparsemean.lab.experiments.setting_rows import measured


def main(data_dir: str | None) -> None:
    """Answer every setting on stdin, until it ends, with its rows or its error; what libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(answer(Setting.from_json(line), data_dir), allow_nan=False) + "\n")
        answers.flush()


def answer(setting: Setting, data_dir: str | None) -> dict[str, object]:
    """The rows of the setting, or its error."""
    try:
        return {"rows": encoded(measured(setting, data_dir))}
    except SettingFailed as error:
        return {"error": str(error)}
