"""A setting in, rows out."""

from __future__ import annotations

from sparsemean._version import __version__
from sparsemean.errors import SparseMeanError
from sparsemean.lab.experiments.measures import MEASURES
from sparsemean.lab.experiments.setting import Row, Setting, SettingFailed

HOW = ("budget", "loss_rows", "measure", "statement", "step", "values")
"""Options that say how it is run; the figure tells them, and tables leave them out."""


def run_setting(setting: Setting, data_dir: str | None = None) -> list[Row]:
    """Tidy rows, each of which says whose it is; a setting that fails is named."""
    return labelled(setting, measured(setting, data_dir))


def measured(setting: Setting, data_dir: str | None = None) -> list[Row]:
    """The numbers alone, which do not depend on the figure."""
    try:
        return MEASURES[str(setting.option("measure", "rounds"))](setting, data_dir)
    except SparseMeanError as error:
        raise SettingFailed(f"{setting.label}: {error}") from error
    except Exception as error:
        raise SettingFailed(f"{setting.label}: {type(error).__name__}: {error}") from error


def labelled(setting: Setting, rows: list[Row], version: str = __version__) -> list[Row]:
    """The rows with the columns of their setting."""
    own = {name: value for name, value in setting.columns.items() if name not in HOW}
    return [{**own, **row, "version": version} for row in rows]
