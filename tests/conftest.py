"""What all tests share: repeatable hypothesis runs, compiled kernels, the large data sets, and no skips on CI."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from .browser import Browser, browser, chromium

ROOT = Path(__file__).parent.parent

# Workers share the cores: threads of torch and BLAS would spin while they wait for each other. Read at their import.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: the worker with the engines waits for their processes most of the time."""
    return (os.cpu_count() or 1) + 1


# Kernels take a minute to compile, and each process that does not find them in numba's cache compiles its own. Where
# there are workers, two processes fill the cache while these collect, and no test begins before they are done.
compiling: list[subprocess.Popen[bytes]] = []


def pytest_sessionstart(session: pytest.Session) -> None:
    if session.config.pluginmanager.has_plugin("dsession"):  # of xdist, and only where it hands out the tests
        for half in ("samples", "epochs"):
            command = [sys.executable, str(ROOT / "tests" / "compile_kernels.py"), half]
            compiling.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))


def pytest_xdist_node_collection_finished() -> None:
    for process in compiling:
        process.wait()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Eleven thousand tests, and torch, stay until the end: no pass of the garbage collector need look at them."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


yielded: list[pytest.Item] = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Workers yield the cores to the engines, whose processes answer each other in a hundred short steps.

    A worker does so with its first other test: what it has started before goes on as it was.
    """
    if hasattr(os, "nice") and hasattr(item.config, "workerinput") and not yielded:
        group = item.get_closest_marker("xdist_group")
        if group is None or group.args != ("engines",):
            yielded.append(item)
            os.nice(5)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the large data sets: SPARSEMEAN_DATA, else ``shared/data`` beside the repository."""
    path = Path(os.environ.get("SPARSEMEAN_DATA", ROOT.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"no data sets at {path}: set SPARSEMEAN_DATA to their folder")
    return path


def skipped_on_ci(config: pytest.Config) -> list[str]:
    """What was skipped where nothing may be: on CI a skipped test is a test that nobody runs."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") != "true" or reporter is None:
        return []
    # A skip's longrepr is (file, line, reason).
    return [f"{report.nodeid}: {report.longrepr[2]}" for report in reporter.stats.get("skipped", [])]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and skipped_on_ci(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if skipped := skipped_on_ci(config):
        terminalreporter.section("skipped tests fail on CI", red=True)
        for line in skipped:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def tab() -> Iterator[Browser]:
    """A real browser, headless."""
    program = chromium()
    if program is None:
        pytest.skip("no Chromium on this machine: install chromium to see the page tested in a real browser")
    with browser(program) as opened:
        yield opened
