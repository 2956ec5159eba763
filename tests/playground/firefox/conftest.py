"""The tests here run in Firefox, whichever browser the other tests of the playground take."""

import pytest
from playwright.sync_api import Browser


@pytest.fixture(scope="package")
def browser(firefox: Browser) -> Browser:
    return firefox
