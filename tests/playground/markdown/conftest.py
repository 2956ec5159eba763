"""An empty page on which Markdown is drawn."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.playground.chromium import Troubles
from tests.playground.markdown.drawing import Drawing
from tests.playground.pages import Pages, serving_pages


@pytest.fixture(scope="session")
def pages() -> Iterator[Pages]:
    with serving_pages() as pages:
        yield pages


@pytest.fixture(scope="module")
def page_of_all(browser: Browser) -> Iterator[tuple[Page, Troubles]]:
    """A browser context for each of hundreds of texts would take most of their time."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(0)
    yield page, Troubles(page)
    context.close()


@pytest.fixture
def page(page_of_all: tuple[Page, Troubles], pages: Pages) -> Iterator[Page]:
    """Is empty. The page is loaded for the first test of a module, and where a test has left the page."""
    page, troubles = page_of_all
    if page.url == pages.url:
        page.evaluate("document.querySelector('main').replaceChildren()")
    else:
        page.goto(pages.url)
    yield page
    page.evaluate("new Promise(done => setTimeout(done, 0))")  # what a text had put off until now
    found, troubles.found = troubles.found, []
    assert found == []


@pytest.fixture
def drawing(page: Page) -> Drawing:
    return Drawing(page)
