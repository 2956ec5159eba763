"""The tests here always run in Firefox. The choice for the other tests has no effect on them."""

import pytest
from playwright.sync_api import Browser


@pytest.fixture(scope="package")
def browser(firefox: Browser) -> Browser:
    return firefox
