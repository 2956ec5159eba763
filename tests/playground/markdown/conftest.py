"""Fixtures: they open an empty page in the browser, and make a `Drawing` on it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.playground.chromium import HANG_MS, Troubles
from tests.playground.markdown.drawing import Drawing
from tests.playground.pages import Pages, serving_pages


@pytest.fixture(scope="session")
def pages() -> Iterator[Pages]:
    with serving_pages() as pages:
        yield pages


@pytest.fixture(scope="module")
def page_of_all(browser: Browser) -> Iterator[tuple[Page, Troubles]]:
    """One page for all tests of a module, because hundreds of browser contexts would be slow."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(HANG_MS)
    yield page, Troubles(page)
    context.close()


@pytest.fixture
def page(page_of_all: tuple[Page, Troubles], pages: Pages) -> Iterator[Page]:
    """Empties the page, or loads it again if a test has navigated away."""
    page, troubles = page_of_all
    if page.url == pages.url:
        page.evaluate("document.querySelector('main').replaceChildren()")
    else:
        page.goto(pages.url)
    yield page
    # the work that the page deferred for a text
    page.evaluate("new Promise(done => setTimeout(done, 0))")
    found, troubles.found = troubles.found, []
    assert found == []


@pytest.fixture
def drawing(page: Page) -> Drawing:
    return Drawing(page)
