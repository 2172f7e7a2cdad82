"""The paper's experiments: settings of every figure, their reproduction in parallel, tables, and verdicts on claims.

- ``catalogue(quick)``: figure → settings
- ``run_setting(setting)``: one setting → rows
- ``reproduce(out, …)``: all of them in parallel → ``out/tables/*.csv``
- ``CLAIMS``: every claim of the paper, judged by those tables
"""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue import FIGURES, catalogue
from sparsemean.lab.experiments.claims import CLAIMS, judge_all
from sparsemean.lab.experiments.reproduction import Progress, reproduce, reproduce_settings
from sparsemean.lab.experiments.setting import Setting, SettingFailed
from sparsemean.lab.experiments.setting_rows import run_setting

__all__ = [
    "CLAIMS",
    "FIGURES",
    "Progress",
    "Setting",
    "SettingFailed",
    "catalogue",
    "judge_all",
    "reproduce",
    "reproduce_settings",
    "run_setting",
]
