"""Fixtures: they start a browser and servers, and open a page that must show no faults.

Playwright runs an event loop in this thread, and no asynchronous test can run beside it.
The loop stops after the last test of the package.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.serving import RunningServer, running_server
from tests.playground.chromium import (
    REQUIRED_VARIABLE,
    Troubles,
    User,
    chromium_path,
    running_browser,
)
from tests.prompts.families import QWEN


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = chromium_path()
    if path is None:
        missing = "no Chromium is installed here"
        if os.environ.get(REQUIRED_VARIABLE) == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    with running_browser(path) as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Opens a page in a browser that has loaded nothing yet.

    The browser keeps no offline copy, whose requests the page's routes do not see.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 800}, service_workers="block")
    page = context.new_page()
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
