"""A person uses the playground in Firefox, and each state obeys the rules of accessibility.

`just firefox` runs these tests, and all other tests of the playground in Firefox too.
"""

import io
import re
from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from PIL import Image
from playwright.sync_api import Browser, FloatRect, Page, expect

from tests.api.serving import RunningServer, running_server
from tests.playground.accessibility import Violations, violations
from tests.playground.chromium import User
from tests.playground.rooms import ROOMS
from tests.playground.states import CHAT_WALKS

pytestmark = pytest.mark.release("the playground in Firefox")

UserAt = Callable[[RunningServer], User]


@pytest.fixture(scope="module")
def slow() -> Iterator[RunningServer]:
    with running_server({"step_s": 0.01}) as server:
        yield server


def test_the_browser_is_firefox(user: User) -> None:
    assert re.search(r"Gecko/\S+ Firefox/\d", user.page.evaluate("navigator.userAgent"))


def test_a_person_asks_stops_edits_and_turns_between_branches(
    slow: RunningServer, user_at: UserAt
) -> None:
    user = user_at(slow)
    user.send("word " * 200)
    expect(user.page.locator(".message.assistant .content")).to_contain_text("word word")
    user.page.keyboard.press("Escape")
    user.wait_for_answer()
    expect(user.page.locator(".message").last).to_contain_text("Stopped.")
    user.click("Edit", user.message(0))
    user.page.fill(".editor", "another question")
    user.click("Send as another branch", user.message(0))
    user.wait_for_answer()
    user.expect_texts("another question", "another question")
    user.click("Branch before", user.message(0))
    assert user.texts[0].startswith("word word")


def test_formulas_are_drawn(user: User) -> None:
    user.ask("So $x^2$ and\n\n$$\\frac{a}{b}$$")
    fraction = user.page.locator(".message.assistant mfrac")
    parts = [fraction.locator("> *").nth(index).bounding_box() for index in (0, 1)]
    assert parts[0] is not None and parts[1] is not None
    assert parts[0]["y"] + parts[0]["height"] <= parts[1]["y"]  # a stands over b


def test_a_file_and_settings_go_with_the_question(user: User) -> None:
    user.page.set_input_files(
        "#file-picker", {"name": "otters.md", "mimeType": "text/markdown", "buffer": b"# Otters"}
    )
    expect(user.page.locator("#attachments .file-name")).to_have_text("otters.md")
    expect(user.page.locator("#attachments progress:visible")).to_have_count(0)
    user.open_settings()
    user.page.fill("#set-system", "Be kind.")
    user.page.fill("#set-max_tokens", "5")
    user.page.click("#close-settings")
    user.ask("What is it?")
    expect(user.page.locator(".message").last).to_contain_text("Cut off")
    user.click("Request")
    assert "Be kind." in user.page.locator("pre.request").inner_text()


def test_conversations_theme_and_language_outlive_the_page(user: User) -> None:
    user.ask("to be found")
    user.page.click("#theme")
    user.page.click("#theme")
    user.page.select_option("#language", "ar")
    user.page.wait_for_selector("html[dir=rtl] body.ready")
    assert user.page.evaluate("document.documentElement.dataset.theme") == "dark"
    user.page.locator("#conversations .title").click()
    expect(user.page.locator(".message")).to_have_count(2)
    assert violations(user.page) == []


def test_scrollbars_have_the_colours_of_the_theme(browser: Browser, parrot: RunningServer) -> None:
    """Uses a page of its own: Playwright's pictures break the policy of the page in Firefox."""
    context = browser.new_context()
    user = User(context.new_page(), parrot.url)
    user.open()
    user.ask("a\n\n" * 60)
    user.page.click("#theme")
    user.page.click("#theme")
    assert user.page.evaluate("document.documentElement.dataset.theme") == "dark"
    box = user.page.locator("#thread").bounding_box()
    assert box is not None
    edge = box["x"] + box["width"] - 8
    clip = FloatRect(x=edge, y=box["y"] + 50, width=4, height=200)
    picture = Image.open(io.BytesIO(user.page.screenshot(clip=clip))).convert("L")
    assert max(picture.tobytes()) < 200  # the brightest point
    context.close()


def test_a_person_needs_only_keys(user: User) -> None:
    keys = user.page.keyboard
    keys.type("by keys")
    keys.press("Enter")
    user.wait_for_answer()
    user.wait_until("document.activeElement.id === 'prompt'")
    keys.press("Alt+KeyS")
    user.wait_until("document.querySelector('#settings').contains(document.activeElement)")
    keys.press("Alt+KeyS")
    expect(user.page.locator("#settings")).to_be_hidden()
    keys.press("Alt+KeyN")
    expect(user.page.locator(".message")).to_have_count(0)
    keys.press("Alt+KeyH")
    expect(user.page.locator("dialog .shortcuts")).to_be_visible()
    keys.press("Escape")
    keys.press("Alt+KeyF")
    keys.press("Tab")
    keys.press("Enter")
    expect(user.page.locator("#title")).to_have_text("by keys")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 640, 360])
def test_every_state_obeys_the_rules_of_accessibility(
    page: Page, parrot: RunningServer, width: int, theme: Literal["light", "dark"]
) -> None:
    """Chooses colours by the page's own button."""
    page.set_viewport_size({"width": width, "height": 800})
    user = User(page, parrot.url)
    user.open()
    page.evaluate("theme => localStorage.setItem('ouzel.theme', theme)", theme)
    user.open()
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    look = Violations(page)
    for walk in CHAT_WALKS:
        walk(user, look)
    assert look.found == {}


@pytest.mark.parametrize("name", ROOMS)
def test_a_person_walks_through_every_room(page: Page, name: str) -> None:
    """Each state must obey the rules of accessibility, too."""
    room = ROOMS[name]
    look = Violations(page)
    with room.serving() as server:
        room.walk(User(page, server.url), look)
    assert look.found == {}
