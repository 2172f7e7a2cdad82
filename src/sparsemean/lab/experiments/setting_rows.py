"""Run one setting: the rows that it adds to its figure's table."""

from __future__ import annotations

from sparsemean._version import __version__
from sparsemean.errors import SparseMeanError
from sparsemean.lab.experiments.measures import MEASURES
from sparsemean.lab.experiments.setting import Setting, SettingFailed
from sparsemean.lab.tables import TableRow

HIDDEN = ("budget", "loss_rows", "measure", "statement", "step", "values")
"""Options without a column of their own, because all rows of a figure share them."""


def run_setting(setting: Setting, data_dir: str | None = None) -> list[TableRow]:
    """Run the setting and label its rows. Raises ``SettingFailed``, with the setting's label, whatever went wrong."""
    return labelled(setting, measured(setting, data_dir))


def measured(setting: Setting, data_dir: str | None = None) -> list[TableRow]:
    """The rows without the columns of the setting; they do not depend on the figure."""
    try:
        return MEASURES[str(setting.option("measure", "rounds"))](setting, data_dir)
    except SparseMeanError as error:
        raise SettingFailed(f"{setting.label}: {error}") from error
    except Exception as error:
        raise SettingFailed(f"{setting.label}: {type(error).__name__}: {error}") from error


def labelled(setting: Setting, rows: list[TableRow], version: str = __version__) -> list[TableRow]:
    """The rows with the columns of their setting."""
    own = {name: value for name, value in setting.columns.items() if name not in HIDDEN}
    return [{**own, **row, "version": version} for row in rows]
