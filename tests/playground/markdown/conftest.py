"""An empty page on which Markdown is drawn."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.playground.markdown.drawing import Drawing
from tests.playground.pages import Pages, serving_pages


@pytest.fixture(scope="session")
def pages() -> Iterator[Pages]:
    with serving_pages() as pages:
        yield pages


@pytest.fixture
def drawing(page: Page, pages: Pages) -> Drawing:
    page.set_default_timeout(0)
    page.goto(pages.url)
    return Drawing(page)
