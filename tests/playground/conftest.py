"""A browser for these tests, and for each a page that must stay without troubles.

Playwright has an event loop in this thread while it runs, beside which no asynchronous test can: it ends with the
package.
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
    Person,
    Tabs,
    Troubles,
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
    with running_browser(path, "--process-per-site") as browser:
        yield browser


@pytest.fixture(scope="package")
def tabs(browser: Browser, parrot: RunningServer) -> Iterator[Tabs]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    kept = context.new_page()
    kept.goto(f"{parrot.url}/health")
    yield Tabs(kept)
    context.close()


@pytest.fixture
def page(tabs: Tabs) -> Iterator[Page]:
    """Opens a page in a browser that stores nothing of earlier pages but the server's files."""
    page = tabs.open()
    troubles = Troubles(page)
    yield page
    tabs.close()
    assert troubles.found == []


@pytest.fixture
def page_of_new_browser(browser: Browser) -> Iterator[Page]:
    """Opens a page in a browser that has loaded nothing yet."""
    context = browser.new_context()
    page = context.new_page()
    troubles = Troubles(page)
    yield page
    context.close()
    assert troubles.found == []


@pytest.fixture(scope="package")
def parrot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Says what the user said, calls and reasoning too where these are said, and keeps conversations."""
    path: Path = tmp_path_factory.mktemp("playground") / "store.sqlite3"
    with running_server(
        {"max_model_len": 65536},
        chat_template=QWEN,
        output_format=OutputFormat(calls=HERMES, reasoning=THINKING_ONLY),
        store_url=f"sqlite:///{path}",
    ) as server:
        yield server


@pytest.fixture
def person(page: Page, parrot: RunningServer) -> Person:
    person = Person(page, parrot.url)
    person.comes()
    return person


@pytest.fixture
def person_at(page: Page) -> Callable[[RunningServer], Person]:
    """Makes one who is at another server."""

    def come(server: RunningServer) -> Person:
        person = Person(page, server.url)
        person.comes()
        return person

    return come
