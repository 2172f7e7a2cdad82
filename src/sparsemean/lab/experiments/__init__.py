"""The paper's experiments, figure by figure: settings, a runner that can be interrupted, tables, and what they say.

- ``catalogue(quick)``: figure → settings
- ``run_setting(setting)``: one setting → rows
- ``reproduce(out, …)``: all of them in parallel → ``out/tables/*.csv``
- ``CLAIMS``: every claim of the paper, judged by those tables
"""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue import FIGURES, catalogue
from sparsemean.lab.experiments.claims import CLAIMS, judge_all
from sparsemean.lab.experiments.run import run_setting
from sparsemean.lab.experiments.runner import Progress, reproduce, reproduce_settings
from sparsemean.lab.experiments.setting import Setting, SettingFailed

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
