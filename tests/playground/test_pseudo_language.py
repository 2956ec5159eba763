"""Every text that a person can see or hear on the page is translated, or is data.

The tests of tools and of files have tests like these for their states.
"""

import pytest
from playwright.sync_api import Page, expect

from tests.api.serving import RunningServer, running_server
from tests.playground.pseudo_language import Check, PseudoUser
from tests.playground.states import CHAT_WALKS, Walk
from tests.playground.two_models import ADMIN_KEY, serving_two_models


@pytest.mark.parametrize("walk", CHAT_WALKS, ids=lambda walk: walk.__name__)
def test_every_text_of_the_chat_is_translated(
    page: Page, parrot: RunningServer, walk: Walk
) -> None:
    user = PseudoUser(page, parrot.url)
    user.open()
    user.ask("hello")
    look = Check(user)
    walk(user, look)
    assert look.found == {}


def test_every_text_of_the_figures_is_translated(page: Page) -> None:
    with running_server() as server:
        user = PseudoUser(page, server.url)
        look = Check(user)
        page.goto(f"{server.url}/playground/figures.html")
        page.wait_for_selector("body.ready")
        look("figures")
        page.locator(".chart summary").first.click()
        page.locator(".chart svg").first.focus()
        page.keyboard.press("ArrowLeft")
        look("a table")
        assert look.found == {}


def test_every_text_about_models_is_translated(page: Page) -> None:
    with serving_two_models(admin_key=ADMIN_KEY) as server:
        user = PseudoUser(page, server.url)
        user.open()
        look = Check(user)
        page.click("#model")
        expect(page.locator("dialog .models > li")).to_have_count(2)
        look("models")
        page.fill("#admin-key", ADMIN_KEY)
        page.press("#admin-key", "Enter")
        expect(page.locator("#pull-name")).to_be_visible()
        look("models for the holder of the key")
        assert look.found == {}


def test_a_text_without_translation_is_found(page: Page, parrot: RunningServer) -> None:
    user = PseudoUser(page, parrot.url)
    user.open()
    page.evaluate("""() => {
      document.querySelector("#send").textContent = "Send";
      document.querySelector("#prompt").placeholder = "⟦Write⟧ here";
    }""")
    assert user.find_texts_without_marks() == [
        "textarea#prompt. placeholder: here",
        "button#send.primary: Send",
    ]
