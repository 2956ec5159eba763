"""The completion box goes on with a text, in a browser, by any model that writes texts."""

import json
from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.api.serving import RunningServer
from tests.playground.accessibility import LOOKS, violations
from tests.playground.base_model import serving_base_model
from tests.playground.chromium import User, read_body, tell_bodies
from tests.playground.middle_engine import MIDDLE

pytestmark = pytest.mark.release("the playground: texts without a chat")

UserAt = Callable[[RunningServer], User]
_MARKED = "document.querySelector('#completion mark').textContent"


@pytest.fixture(scope="module")
def base() -> Iterator[RunningServer]:
    """Starts a server of a model without a chat template, which fills in the middle."""
    with serving_base_model(max_model_len=65536) as server:
        yield server


def _write(user: User, text: str, *, max_tokens: int | None = None) -> None:
    """Writes a text, and limits the tokens of each run."""
    if max_tokens is not None:
        user.open_settings()
        user.page.fill("#set-max_tokens", str(max_tokens))
        user.page.click("#close-settings")
    user.page.fill("#completion-text", text)


def _press(user: User, name: str) -> None:
    user.click(name, user.page.locator("#completion"))


def _wait(user: User) -> None:
    expect(user.page.locator("#completion p[role=status]")).not_to_be_empty()


def _text(user: User) -> str:
    return user.page.locator("#completion-text").input_value()


def test_a_model_without_a_chat_template_opens_the_box(
    user_at: UserAt, base: RunningServer
) -> None:
    user = user_at(base)
    expect(user.page.locator("#completion-text")).to_be_focused()
    expect(user.page.locator("#composer")).to_be_hidden()
    _write(user, "abc", max_tokens=6)
    user.page.locator("#completion-text").press("Control+Enter")
    _wait(user)
    assert _text(user) == "abcabcabc"
    user.wait_until(f"{_MARKED} === 'abcabc'")
    expect(user.page.locator("#completion-text")).to_be_focused()
    expect(user.page.locator("#completion p[role=status]")).to_contain_text("6 tokens")


def test_a_run_is_undone_and_shown_again(user_at: UserAt, base: RunningServer) -> None:
    user = user_at(base)
    _write(user, "abc", max_tokens=3)
    for text in ("abcabc", "abcabcabc"):
        _press(user, "Continue")
        _wait(user)
        assert _text(user) == text
        expect(user.page.get_by_role("button", name="Undo")).to_be_enabled()
    _press(user, "Undo")
    assert _text(user) == "abcabc"
    _press(user, "Undo")
    assert _text(user) == "abc"
    expect(user.page.get_by_role("button", name="Undo")).to_be_disabled()
    expect(user.page.locator("#completion-text")).to_be_focused()
    _press(user, "Redo")
    assert _text(user) == "abcabc"
    _press(user, "Clear")
    assert _text(user) == ""
    _press(user, "Undo")
    assert _text(user) == "abcabc"


def test_the_middle_is_filled_in_at_the_cursor(user_at: UserAt, base: RunningServer) -> None:
    user = user_at(base)
    expect(user.page.locator("#completion-hint")).to_contain_text("fill in what is missing")
    _write(user, "abyz")
    user.page.evaluate("document.querySelector('#completion-text').setSelectionRange(2, 2)")
    tell_bodies(user.page)
    with user.page.expect_request("**/v1/completions") as sent:
        _press(user, "Fill in at the cursor")
    body = read_body(sent.value)
    assert (body["prompt"], body["suffix"]) == ("ab", "yz")
    _wait(user)
    assert _text(user) == f"ab{MIDDLE}yz"
    user.wait_until(f"{_MARKED} === {json.dumps(MIDDLE)}")
    expect(user.page.locator("#completion p[role=status]")).to_contain_text("ended its text")


def test_a_chat_model_continues_texts_by_a_link(user: User) -> None:
    user.page.get_by_role("link", name="Continue a text").click()
    expect(user.page.locator("#title")).to_have_text("Continue a text")
    expect(user.page.locator("#completion-hint")).to_contain_text("at the end only")
    expect(user.page.get_by_role("button", name="Fill in at the cursor")).to_be_hidden()
    _write(user, "xy", max_tokens=2)
    _press(user, "Continue")
    _wait(user)
    assert _text(user) == "xyxy"
    user.reload()
    expect(user.page.locator("#completion-text")).to_be_focused()  # the address stays
    assert _text(user) == "xyxy"
    user.page.click("#new")
    expect(user.page.locator("#composer")).to_be_visible()
    expect(user.page.locator("#completion")).to_be_hidden()
    user.page.go_back()
    expect(user.page.locator("#completion-text")).to_be_focused()


def test_a_conversation_of_the_list_is_shown_in_place_of_the_box(user: User) -> None:
    user.ask("hello")
    user.page.get_by_role("link", name="Continue a text").click()
    expect(user.page.locator("#completion")).to_be_visible()
    user.page.click("#conversations .title")
    expect(user.page.locator("#completion")).to_be_hidden()
    expect(user.page.locator(".message")).to_have_count(2)


def test_a_run_is_stopped_by_escape(user_at: UserAt, base: RunningServer) -> None:
    user = user_at(base)
    _write(user, "abc", max_tokens=60_000)
    _press(user, "Continue")
    user.wait_until(f"{_MARKED}.length > 3")
    user.page.keyboard.press("Escape")
    _wait(user)
    expect(user.page.locator("#completion p[role=status]")).to_contain_text("Stopped")
    assert _text(user).startswith("abcabc")
    _press(user, "Undo")
    assert _text(user) == "abc"


def test_stop_texts_and_token_probabilities(user_at: UserAt, base: RunningServer) -> None:
    user = user_at(base)
    user.open_settings()
    user.page.fill("#set-stop", "c")
    user.page.check("#set-showsTokens")
    user.page.click("#close-settings")
    _write(user, "abcd")
    _press(user, "Continue")
    _wait(user)
    assert _text(user) == "abcdab"
    expect(user.page.locator("#completion .token")).to_have_text(["a", "b"])
    user.page.locator("#completion .tokens").focus()
    user.page.keyboard.press("ArrowRight")
    expect(user.page.locator("#completion .token-card")).to_contain_text("a 100")


def test_a_refused_run_is_told_and_leaves_the_text(user_at: UserAt, base: RunningServer) -> None:
    user = user_at(base)
    fault = user.page.locator("#completion p[role=alert]")
    _write(user, "a" * 70_000)
    _press(user, "Continue")
    expect(fault).to_contain_text("65536")
    assert _text(user) == "a" * 70_000
    user.open_settings()
    user.page.fill("#set-temperature", "9")
    user.page.click("#close-settings")
    _press(user, "Continue")
    expect(fault).to_contain_text("temperature must be <= 2")
    expect(user.page.get_by_role("button", name="Continue", exact=True)).to_be_visible()


def test_the_copy_below_the_text_has_its_lines(user_at: UserAt, base: RunningServer) -> None:
    """The mark stands under the right letters only if both texts are laid out alike."""
    user = user_at(base)
    _write(user, "one two three four " * 60 + "\n\n\tend\n")
    heights = user.page.evaluate(
        """() => ["#completion-text", "#completion .copy"].map((name) => {
          const { scrollHeight, clientHeight, clientWidth } = document.querySelector(name);
          return [scrollHeight, clientHeight, clientWidth];
        })"""
    )
    assert heights[0] == heights[1]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_box_obeys_the_rules_of_accessibility(
    page: Page, base: RunningServer, width: int, scheme: Literal["light", "dark"]
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    user = User(page, base.url)
    user.open()
    assert violations(page) == []
    user.open_settings()
    page.check("#set-showsTokens")
    page.click("#close-settings")
    _write(user, "abc", max_tokens=6)
    _press(user, "Continue")
    _wait(user)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
