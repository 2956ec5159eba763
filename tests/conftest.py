"""What holds for every test: its event loop, its markers, how many processes share the run, and its Postgres server.

Asynchronous tests run on uvloop, as the server does; those of the engine client on asyncio's own loop as well.
"""

import asyncio
import logging
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import pytest
import uvloop

from tests.cli import running
from tests.postgres import (
    DEBIAN_DIRECTORY,
    REQUIRED_VARIABLE,
    PostgresServer,
    postgres_binaries,
    running_postgres,
)
from tests.work_groups import WorkerDeaths

SERVES, RELEASE = "serves", "release"
LEFT = pytest.StashKey[dict[str, int]]()  # to a release: how many tests, by what their marker says


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    both = item.path.name == "test_engine_client.py"
    return {"uvloop": uvloop.new_event_loop} | ({"asyncio": asyncio.new_event_loop} if both else {})


def pytest_configure(config: pytest.Config) -> None:
    """A shell lets what it starts in the background ignore SIGINT, and so would the programs that tests interrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(WorkerDeaths())


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Commands say what their process logs; for some tests that is this process."""
    loggers = [logging.getLogger(name) for name in ("", "ouzel")]
    before = [(logger.level, logger.handlers[:]) for logger in loggers]
    yield
    for logger, (level, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.handlers[:] = handlers


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """Commands handle signals until their process ends; for some tests that is this process."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


# Markers


def pytest_addoption(parser: pytest.Parser) -> None:
    help = f"Run the tests that are marked `{RELEASE}` too: what each release must pass, and takes long"
    parser.addoption(f"--{RELEASE}", action="store_true", help=help)


@pytest.fixture(scope="session")
def before_release(pytestconfig: pytest.Config) -> bool:
    """Tells whether tests that try many cases take all of them."""
    return bool(pytestconfig.getoption(RELEASE))


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if starts_servers(item):
            item.add_marker(SERVES)
    left = {item: marker.args[0] for item in items if (marker := item.get_closest_marker(RELEASE)) is not None}
    if left and not config.getoption(RELEASE):
        config.stash[LEFT] = dict(Counter(left.values()))
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]


def starts_servers(item: pytest.Item) -> bool:
    """A module of tests that has something of `tests.cli.running` starts servers."""
    assert isinstance(item, pytest.Function)
    return any(getattr(value, "__module__", "") == running.__name__ for value in vars(item.module).values())


@pytest.hookimpl(tryfirst=True)  # before fixtures start a server
def pytest_runtest_setup(item: pytest.Item) -> None:
    running.unmarked_test = "" if item.get_closest_marker(SERVES) else item.nodeid


# Several processes


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Five at most, as each may take a GiB, and more than two for a core, as tests wait for servers.

    None for a single file, which would only wait for one.
    """
    is_one_file = len(config.args) == 1 and config.args[0].partition("::")[0].endswith(".py")
    return 0 if is_one_file else min(2 * len(os.sched_getaffinity(0)) + 1, 5)


class Worker(Protocol):
    """A node of xdist, which ships no types."""

    config: pytest.Config
    workeroutput: dict[str, dict[str, int]]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Workers tell the process that reports what they left to a release."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[RELEASE] = session.config.stash.get(LEFT, {})


def pytest_testnodedown(node: Worker) -> None:
    """Workers all collect the same tests, so that the last one's counts are everybody's."""
    if hasattr(node, "workeroutput"):
        node.config.stash[LEFT] = node.workeroutput[RELEASE]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if left := config.stash.get(LEFT, {}):
        terminalreporter.section(f"left to `uv run pytest --{RELEASE}`")
        for what, number in left.items():
            terminalreporter.line(f"{number} tests: {what}")


# Postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    binaries = postgres_binaries()
    if binaries is None:
        missing = f"no Postgres server is installed here (binaries below {DEBIAN_DIRECTORY} or on the PATH)"
        if os.environ.get(REQUIRED_VARIABLE) == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    with running_postgres(binaries) as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """Of an empty database."""
    return postgres_server.new_database()
