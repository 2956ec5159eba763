"""The page says so where its texts or the database of the browser are missing."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.api.serving import RunningServer
from tests.playground.chromium import HANG_MS, User

_NEWER = """new Promise((resolve) => {
  const request = indexedDB.open("ouzel", 99);
  request.onsuccess = () => { request.result.close(); resolve(); };
})"""
# The database never answers, and the page does not wait ten seconds for it.
_SILENT = """
  IDBFactory.prototype.open = () => new EventTarget();
  const wait = setTimeout;
  window.setTimeout = (act, ms = 0) => wait(act, ms === 10_000 ? 0 : ms);
"""


def test_conversations_of_a_newer_page_are_told_and_kept(user: User, page: Page) -> None:
    user.ask("hello")
    expect(page.locator("#conversations .title")).to_have_count(1)
    page.goto(f"{page.url.partition('#')[0]}playground/icon.svg")  # no page has the database open
    page.evaluate(_NEWER)
    user.open()
    expect(page.locator("#notice")).to_contain_text("newer version of this page")
    user.ask("and now")
    assert page.evaluate(
        "indexedDB.databases().then((all) => all.map(({ version }) => version))"
    ) == [99]


def test_a_page_opens_without_an_answer_of_the_database(page: Page, parrot: RunningServer) -> None:
    page.add_init_script(_SILENT)
    user = User(page, parrot.url)
    user.open()
    expect(page.locator("#notice")).to_contain_text("does not open its store")


@pytest.mark.parametrize("status", [404, 500])
def test_a_page_without_texts_says_so(browser: Browser, parrot: RunningServer, status: int) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.set_default_timeout(HANG_MS)
    page.route("**/texts/*.json", lambda route: route.fulfill(status=status, body="{}"))
    page.goto(parrot.url)
    expect(page.locator("#failure")).to_contain_text(f"could not be loaded (status {status})")
    context.close()
