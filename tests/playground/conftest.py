"""Fixtures: they start a browser and servers, and open a page that must show no faults.

Playwright runs an event loop in this thread, and no asynchronous test can run beside it.
The loop stops after the last test of the package.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.serving import RunningServer, running_server
from tests.playground.accessibility import mirror
from tests.playground.chromium import (
    HANG_MS,
    REQUIRED_VARIABLE,
    SLOW_VARIABLE,
    Troubles,
    User,
    chromium_path,
    launch_chromium,
    running_playwright,
    slow_down,
)
from tests.playground.firefox.browser import (
    CHOICE_VARIABLE,
    firefox_path,
    running_firefox,
)
from tests.playground.firefox.browser import REQUIRED_VARIABLE as NEEDS_FIREFOX
from tests.prompts.families import QWEN


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with running_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="package")
def firefox(playwright: Playwright) -> Iterator[Browser]:
    path = require(firefox_path(), "Firefox", NEEDS_FIREFOX)
    with running_firefox(playwright, path) as browser:
        yield browser


@pytest.fixture(scope="package")
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Starts Chromium, or Firefox where the environment says so."""
    if os.environ.get(CHOICE_VARIABLE) == "firefox":
        yield request.getfixturevalue("firefox")
        return
    path = require(chromium_path(), "Chromium", REQUIRED_VARIABLE)
    browser = launch_chromium(request.getfixturevalue("playwright"), path)
    yield browser
    browser.close()


def require(path: Path | None, name: str, variable: str) -> Path:
    """Returns the path of a browser; without one skips the test, or fails it if `variable` is 1."""
    if path is not None:
        return path
    missing = f"no {name} is installed here"
    if os.environ.get(variable) == "1":
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Opens a page in a browser that has loaded nothing yet.

    The browser keeps no offline copy, whose requests the page's routes do not see.
    """
    is_still = request.node.get_closest_marker("still") is not None
    context = browser.new_context(
        viewport={"width": 1280, "height": 800},
        service_workers="block",
        reduced_motion="reduce" if is_still else "no-preference",
    )
    context.set_default_timeout(HANG_MS)
    page = context.new_page()
    if os.environ.get(SLOW_VARIABLE) == "1":
        slow_down(page)
    if request.node.get_closest_marker("right_to_left"):
        mirror(page)
    troubles = Troubles(page)
    yield page
    context.close()
    assert troubles.found == []


@pytest.fixture(scope="package")
def parrot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Starts a server that repeats the user's text as its answer, and stores conversations."""
    path: Path = tmp_path_factory.mktemp("playground") / "store.sqlite3"
    with running_server(
        {"max_model_len": 65536},
        chat_template=QWEN,
        output_format=OutputFormat(calls=HERMES, reasoning=THINKING_ONLY),
        store_url=f"sqlite:///{path}",
    ) as server:
        yield server


@pytest.fixture
def user(page: Page, parrot: RunningServer) -> User:
    user = User(page, parrot.url)
    user.open()
    return user


@pytest.fixture
def user_at(page: Page) -> Callable[[RunningServer], User]:
    """Returns a function that opens the playground of another server."""

    def come(server: RunningServer) -> User:
        user = User(page, server.url)
        user.open()
        return user

    return come
