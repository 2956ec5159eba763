"""Configures every test: event loop, markers, the number of processes, and the Postgres server.

Asynchronous tests run on uvloop, as the server does. The tests of the engine client also run on
asyncio's own loop.
"""

import asyncio
import functools
import gc
import logging
import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol  # Any: the output of a worker

import pytest
import uvloop

from tests.authorities import trust_one_authority
from tests.postgres import (
    DEBIAN_DIRECTORY,
    REQUIRED_VARIABLE,
    PostgresServer,
    postgres_binaries,
    running_postgres,
)
from tests.serve import running
from tests.slow_modules import SLOW_DIRECTORIES, SLOW_MODULES
from tests.work_groups import WorkerDeaths

SERVES, RELEASE, MODULES, FAST = "serves", "release", "modules of a release", "fast"
NUM_SLOWEST = 20
# reason of a `release` marker -> number of tests left to a release
LEFT = pytest.StashKey[dict[str, int]]()
MODULE_OF_A_RELEASE = re.compile(r"^pytestmark = pytest\.mark\.release\(\s*\"(.*)\"\s*\)$", re.M)
MODULE_THAT_SERVES = re.compile(
    r"^from tests\.serve(\.running)? import .*|^pytestmark = .*pytest\.mark\.serves\b", re.M
)
# path -> reason of the `release` marker of a module left to a release
LEFT_MODULES: dict[str, str] = {}


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    both = item.path.match("engine_client/test_client.py")
    return {"uvloop": uvloop.new_event_loop} | ({"asyncio": asyncio.new_event_loop} if both else {})


def pytest_configure(config: pytest.Config) -> None:
    """Restores SIGINT and SIGHUP, which programs started by tests would else inherit as ignored.

    A shell lets background programs ignore SIGINT; `nohup` lets programs ignore SIGHUP.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    config.add_cleanup(trust_one_authority())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(WorkerDeaths())


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Restores the loggers after tests that run a command, which configures logging."""
    loggers = [logging.getLogger(name) for name in ("", "ouzel")]
    before = [(logger.level, logger.handlers[:]) for logger in loggers]
    yield
    for logger, (level, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.handlers[:] = handlers


@pytest.fixture(autouse=True)
def default_signals() -> Iterator[None]:
    """Gives each test Python's own handlers of SIGINT and SIGTERM.

    Commands handle signals until their process ends, and some tests run a command in this process.
    A handler left by an earlier module would let a SIGINT, which a test sends to itself, end this
    process.
    """
    _reset_signals()
    yield
    _reset_signals()


def _reset_signals() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


# Markers


def pytest_addoption(parser: pytest.Parser) -> None:
    help = f"Run also the tests marked `{RELEASE}`: long tests that each release must pass"
    parser.addoption(f"--{RELEASE}", action="store_true", help=help)
    help = "Leave out the tests that start servers or take long: the inner loop, under a minute"
    parser.addoption(f"--{FAST}", action="store_true", help=help)


@pytest.fixture(scope="session")
def before_release(pytestconfig: pytest.Config) -> bool:
    """Tells whether tests with many cases run all of them."""
    return bool(pytestconfig.getoption(RELEASE))


@pytest.hookimpl(tryfirst=True)  # before pytest evaluates `-m`
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if starts_servers(item):
            item.add_marker(SERVES)
    left = {
        item: marker.args[0]
        for item in items
        if (marker := item.get_closest_marker(RELEASE)) is not None
    }
    if left and not config.getoption(RELEASE):
        config.stash[LEFT] = dict(Counter(left.values()))
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]


def starts_servers(item: pytest.Item) -> bool:
    """Tells whether the test's module imports from `tests.serve.running`."""
    assert isinstance(item, pytest.Function)
    return _imports_running(item.module)


@functools.cache
def _imports_running(module: ModuleType) -> bool:
    return any(
        getattr(value, "__module__", "") == running.__name__ for value in vars(module).values()
    )


@pytest.hookimpl(tryfirst=True)  # before fixtures start a server
def pytest_runtest_setup(item: pytest.Item) -> None:
    running.unmarked_test = "" if item.get_closest_marker(SERVES) else item.nodeid


# Collecting. Each process collects all tests, so the cost counts several times.


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects without garbage collection: the sixteen thousand tests live until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignores modules that only a release runs, and slow modules with `--fast`, before import."""
    if config.getoption(FAST) and _is_slow(collection_path, config.rootpath):
        return True
    if config.getoption(RELEASE) or collection_path.suffix != ".py":
        return None
    marker = MODULE_OF_A_RELEASE.search(collection_path.read_text())
    if marker is None:
        return None
    LEFT_MODULES[str(collection_path.relative_to(config.rootpath))] = marker[1]
    return True


def _is_slow(path: Path, root: Path) -> bool:
    name = path.relative_to(root).as_posix()
    if path.suffix != ".py":
        return name in SLOW_DIRECTORIES
    is_test = path.name.startswith("test_")
    return name in SLOW_MODULES or (is_test and bool(MODULE_THAT_SERVES.search(path.read_text())))


# Several processes


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Returns two processes for each core and one more, at most five.

    Tests wait for servers, so a core has time for more than one process; each may take a GiB. Fast
    tests never wait, so they get one process for each core. A single file runs in this process.
    """
    is_one_file = len(config.args) == 1 and config.args[0].partition("::")[0].endswith(".py")
    num_cores = len(os.sched_getaffinity(0))
    if config.getoption(FAST):
        return 0 if is_one_file else min(num_cores, 4)
    return 0 if is_one_file else min(2 * num_cores + 1, 5)


class Worker(Protocol):
    """A node of xdist, which ships no types."""

    config: pytest.Config
    workeroutput: dict[str, Any]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Sends the number of tests left to a release from a worker to the reporting process."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[RELEASE] = session.config.stash.get(LEFT, {})
        output[MODULES] = LEFT_MODULES


def pytest_testnodedown(node: Worker) -> None:
    """Stores a worker's counts; they hold for each worker, since all collect the same tests."""
    if hasattr(node, "workeroutput"):
        node.config.stash[LEFT] = node.workeroutput[RELEASE]
        LEFT_MODULES.update(node.workeroutput[MODULES])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    _show_slowest_files(terminalreporter)
    left = config.stash.get(LEFT, {})
    if left or LEFT_MODULES:
        terminalreporter.section(f"left to `uv run pytest --{RELEASE}`")
        for what, number in left.items():
            terminalreporter.line(f"{number} tests: {what}")
        for path, what in sorted(LEFT_MODULES.items()):
            terminalreporter.line(f"{path}: {what}")


def _show_slowest_files(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists the slowest files and directories of a run with many files, including set-up."""
    files_s: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                files_s[report.nodeid.partition("::")[0]] += report.duration
    if len(files_s) <= NUM_SLOWEST:
        return
    directories_s: defaultdict[str, float] = defaultdict(float)
    for file, duration_s in files_s.items():
        directories_s[file.rpartition("/")[0]] += duration_s
    total_s = sum(files_s.values())
    for kind, durations_s in (("files", files_s), ("directories", directories_s)):
        terminalreporter.section(
            f"the {NUM_SLOWEST} slowest {kind}, of {total_s:.0f} s in all processes"
        )
        slowest = sorted(durations_s, key=durations_s.__getitem__, reverse=True)[:NUM_SLOWEST]
        for path in slowest:
            terminalreporter.line(f"{durations_s[path]:6.1f} s  {path}")


# Postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    binaries = postgres_binaries()
    if binaries is None:
        missing = f"no Postgres server is installed (binaries below {DEBIAN_DIRECTORY} or on PATH)"
        if os.environ.get(REQUIRED_VARIABLE) == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    with running_postgres(binaries) as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """Creates an empty database and returns its URL."""
    return postgres_server.new_database()
