"""Reproduce the figures of the paper as tables: run the missing settings in parallel, then write all tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from sparsemean.errors import InvalidInput
from sparsemean.lab import datasets
from sparsemean.lab.datasets.find import located, places
from sparsemean.lab.experiments import theory_table
from sparsemean.lab.experiments.catalogue import THEORY, catalogue
from sparsemean.lab.experiments.checkpoints import Checkpoints
from sparsemean.lab.experiments.claims import judge_all
from sparsemean.lab.experiments.cost import longest_first
from sparsemean.lab.experiments.setting import Setting, SettingFailed
from sparsemean.lab.experiments.setting_rows import labelled
from sparsemean.lab.experiments.worker_pool import run_all
from sparsemean.lab.optional_modules import require
from sparsemean.lab.tables import TableRow, write_table

Progress = Callable[[int, int, str, float], None]
SHOWN = 5  # failures that a message spells out
LARGE_JOB = 2_500_000_000  # bytes: CIFAR-10 as it is read, and once more as nodes hold it


def reproduce(
    out: str | os.PathLike[str],
    quick: bool = False,
    data_dir: str | os.PathLike[str] | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    figures: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Path]:
    """Run the settings that are missing in ``out/parts``, then write ``out/tables``; name → path of each table.

    It can be interrupted at any time: the next call continues where it stopped, and the tables come out the same.

    Parameters
    ----------
    out
        Folder for finished settings and tables.
    quick
        Use smaller experiments on data that come with packages.
    data_dir
        Folder of the data sets; see ``sparsemean.lab.datasets``.
    seeds
        How many seeds each setting is run with.
    jobs
        Number of processes; by default one for each core.
    figures
        Names of the wanted figures; all by default.
    progress
        Called with (done, total, label, seconds) after every setting.
    """
    return reproduce_settings(catalogue(quick, seeds, figures), out, data_dir, jobs, progress)


def reproduce_settings(
    wanted: dict[str, list[Setting]],
    out: str | os.PathLike[str],
    data_dir: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Path]:
    """Like ``reproduce``, for your own settings by figure."""
    if jobs is not None and jobs < 1:
        raise InvalidInput(f"jobs is a number of processes, at least 1; got {jobs!r}")
    folder = None if data_dir is None else os.fspath(Path(data_dir).resolve())
    finished, tables = Checkpoints(Path(out) / "parts"), Path(out) / "tables"
    settings: dict[str, Setting] = {}
    for setting in (setting for of_figure in wanted.values() for setting in of_figure):
        settings.setdefault(setting.key, setting)  # a run that several figures show bears the first one's name
    missing = longest_first(setting for setting in settings.values() if finished.read(setting) is None)
    check_data(missing, folder)
    tables.mkdir(parents=True, exist_ok=True)
    _run(missing, finished, jobs or affordable_jobs(missing), folder, progress, len(settings))
    paths = {figure: _write(figure, chosen, finished, tables) for figure, chosen in wanted.items()}
    return {**paths, "claims": judge_all(tables)}


def affordable_jobs(settings: Iterable[Setting]) -> int:
    """One per core that this process may use; fewer where large data sets would not fit into memory."""
    try:
        cores = len(os.sched_getaffinity(0))
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on every system
        return os.cpu_count() or 1
    large = any(setting.data in datasets.ENTRIES for setting in settings)
    return max(1, min(cores, memory // LARGE_JOB)) if large else cores


def check_data(settings: Iterable[Setting], data_dir: str | None) -> None:
    """Raise at once, not an hour later, if files of a data set are missing, or the package that brings it."""
    needed = {setting.data for setting in settings}
    if datasets.digits.NAME in needed:
        require(*datasets.digits.PACKAGE)
    for name in sorted(needed & set(datasets.ENTRIES)):
        located(datasets.ENTRIES[name], places(data_dir))


def _run(
    missing: list[Setting],
    finished: Checkpoints,
    jobs: int,
    data_dir: str | None,
    progress: Progress | None,
    total: int,
) -> None:
    """Run all settings, also after one failed; then raise one error about all that failed."""
    failed: list[str] = []
    with closing(run_all(missing, jobs, data_dir)) as outcomes:
        for number, done in enumerate(outcomes, start=total - len(missing) + 1):
            if done.error is None:
                finished.write(done.setting, done.rows)
            else:
                failed.append(done.error)
            if progress is not None:
                progress(number, total, done.setting.label, done.seconds)
    if failed:
        more = f"\n… and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
        raise SettingFailed(
            f"{len(failed)} of {total} settings failed; the others are kept, and need not be run again:\n"
            + "\n".join(failed[:SHOWN])
            + more
        )


def _write(figure: str, settings: list[Setting], finished: Checkpoints, tables: Path) -> Path:
    rows: list[TableRow] = []
    for setting in sorted(settings, key=_order):
        measured = finished.read(setting)
        if measured is None:
            raise SettingFailed(f"{setting.label}: its part {finished.path(setting)} is gone; run it again")
        rows.extend(labelled(setting, measured))
    path = tables / f"{figure}.csv"
    write_table(path, rows, theory_table.COLUMNS if figure == THEORY else None)
    return path


def _order(setting: Setting) -> tuple[str, str, str, int, float, str, str, int]:
    share = -1.0 if setting.share is None else setting.share
    options = repr(setting.options)
    return (*(setting.task, setting.data, setting.split, setting.nodes, share), options, setting.scheme, setting.seed)
