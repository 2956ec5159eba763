"""Each conversation has an address, and all tabs and browsers with the same key find it there."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.api.serving import RunningServer
from tests.playground.accessibility import violations
from tests.playground.chromium import User
from tests.playground.stored import records, wait_until_stored

pytestmark = pytest.mark.release("the playground: addresses of conversations")


def ask_and_store(user: User, text: str) -> str:
    """Asks in the shown conversation, and returns its address once the answer is stored."""
    user.ask(text)
    wait_until_stored(user, user.page.locator(".message").count())
    expect(user.page).to_have_url(re.compile("#/c/"))
    return user.page.url


def test_back_forward_and_reload_show_the_conversation_of_the_address(user: User) -> None:
    page = user.page
    first = ask_and_store(user, "first")
    page.click("#new")
    expect(page).to_have_url(user.url + "/#/")
    second = ask_and_store(user, "second")
    page.go_back()
    expect(page).to_have_url(first)
    expect(page.locator("#title")).to_have_text("first")
    page.go_forward()
    expect(page).to_have_url(second)
    expect(page.locator("#title")).to_have_text("second")
    user.reload()
    user.expect_texts("second", "second")
    page.locator("#conversations .title", has_text="first").click()
    expect(page).to_have_url(first)
    page.locator(".skip").focus()
    page.keyboard.press("Enter")  # a link to a place on the page is no address of a conversation
    expect(page.locator("#prompt")).to_be_focused()
    expect(page).to_have_url(first)
    user.expect_texts("first", "first")


def test_an_address_opens_in_a_browser_that_does_not_know_the_conversation(
    user: User, browser: Browser, parrot: RunningServer
) -> None:
    address = ask_and_store(user, "from elsewhere")
    user.page.get_by_role("button", name="Rename from elsewhere").click()
    user.page.get_by_role("textbox", name="Title").fill("a better name")
    user.page.keyboard.press("Enter")
    expect(user.page.locator("#title")).to_have_text("a better name")
    context = browser.new_context()
    other = User(context.new_page(), parrot.url)
    other.page.goto(address)
    expect(other.page.locator("#title")).to_have_text("a better name")
    other.expect_texts("from elsewhere", "from elsewhere")
    other.expect_titles("a better name")
    other.ask("and on")
    wait_until_stored(other, 4)
    user.ask("at the same time")  # this browser does not know that the other one added messages
    expect(user.page.locator("#notice")).to_contain_text("went on in another tab")
    other.page.reload()
    expect(other.page.locator(".message")).to_have_count(4)
    assert other.texts[-1] == "and on"
    context.close()


def test_an_unknown_address_says_so_and_offers_a_new_conversation(user: User) -> None:
    page = user.page
    for key in ("conv_unknown", "local-unknown", "%", "../../v1/models", "__proto__"):
        page.goto(f"{user.url}/#/c/{key}")
        expect(page.locator("#lost")).to_contain_text("This conversation is not here.")
        assert page.url.endswith(f"#/c/{key}")
    assert violations(page) == []
    page.reload()
    expect(page.locator("#lost")).to_be_visible()
    page.get_by_role("button", name="Begin a new conversation").click()
    expect(page).to_have_url(user.url + "/#/")
    expect(page.locator("#welcome")).to_be_visible()
    expect(page.locator("#lost")).to_be_hidden()


def test_the_address_follows_a_conversation_to_the_browser(user: User) -> None:
    page = user.page
    assert "#/c/conv_" in ask_and_store(user, "kept there")
    page.route("**/v1/conversations/**", lambda route: route.fulfill(status=500, body="{}"))
    user.ask("kept here")
    expect(page).to_have_url(re.compile("#/c/local-"))
    user.reload()
    user.expect_texts("kept there", "kept there", "kept here", "kept here")


def test_another_tab_shows_what_changes(user: User, parrot: RunningServer) -> None:
    address = ask_and_store(user, "begun")
    other = User(user.page.context.new_page(), parrot.url)
    other.page.goto(address)
    expect(other.page.locator(".message")).to_have_count(2)
    ask_and_store(user, "more")  # a tab that adds to it earlier begins another conversation
    expect(other.page.locator(".message .content").last).to_have_text("more")
    expect(other.page.locator(".message")).to_have_count(4)
    other.ask("and more")
    expect(user.page.locator(".message")).to_have_count(6)
    assert len(records(user)) == 1
    user.page.get_by_role("button", name="Pin begun").click()
    expect(other.page.locator("#conversations .group")).to_have_text(["Pinned"])
    user.page.get_by_role("button", name="Delete begun").click()
    expect(other.page.locator("#conversations .title")).to_have_count(0)
    expect(other.page.locator("#notice")).to_contain_text("was deleted in another tab")
    user.page.get_by_role("button", name="Undo").click()
    expect(other.page.locator("#conversations .title")).to_have_text(["begun"])
    expect(user.page.locator(".message")).to_have_count(6)


@pytest.mark.parametrize("is_private", [False, True])
def test_a_link_in_the_list_opens_another_tab(
    user: User, parrot: RunningServer, is_private: bool
) -> None:
    """A tab that may keep nothing still has the addresses of conversations on the server."""
    address = ask_and_store(user, "here")
    link = user.page.locator("#conversations .title")
    assert address.endswith(link.get_attribute("href") or "-")
    tab = user.page.context.new_page()
    if is_private:
        tab.add_init_script("delete window.indexedDB; window.indexedDB = undefined;")
    tab.goto(address)
    expect(tab.locator(".message")).to_have_count(2)
