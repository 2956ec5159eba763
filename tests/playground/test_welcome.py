"""An empty conversation offers examples, and tells people that they use the demo model."""

from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.serving import RunningServer, running_server
from tests.playground.accessibility import LOOKS, violations
from tests.playground.chromium import User, read_body, tell_bodies
from tests.prompts.families import QWEN

UserAt = Callable[[RunningServer], User]


@pytest.fixture(scope="module")
def plain() -> Iterator[RunningServer]:
    """Starts a server of a model that chats and does nothing else."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="module")
def tooled() -> Iterator[RunningServer]:
    """Starts a server of a model that calls tools and reasons."""
    output_format = OutputFormat(calls=HERMES, reasoning=THINKING_ONLY)
    with running_server(chat_template=QWEN, output_format=output_format) as server:
        yield server


def test_a_model_offers_only_what_it_can_do(
    user_at: UserAt, plain: RunningServer, tooled: RunningServer
) -> None:
    examples = user_at(plain).page.locator(".example")
    expect(examples).to_have_count(2)
    expect(examples.nth(1)).to_contain_text("Get an answer in JSON")
    examples = user_at(tooled).page.locator(".example")
    expect(examples).to_have_count(3)
    expect(examples.nth(1)).to_contain_text("Let it use a calculator")


def test_an_example_fills_the_composer_and_sets_what_it_needs(
    user_at: UserAt, tooled: RunningServer
) -> None:
    user = user_at(tooled)
    tell_bodies(user.page)
    user.page.locator(".example", has_text="calculator").press("Enter")
    expect(user.page.locator("#prompt")).to_be_focused()
    expect(user.page.locator("#prompt")).to_have_value("What is 1234 * 5678? Use the calculator.")
    with user.page.expect_request("**/v1/chat/completions") as sent:
        user.page.keyboard.press("Enter")
    tools = read_body(sent.value)["tools"]
    assert [tool["function"]["name"] for tool in tools] == ["calculator"]
    user.wait_for_answer()

    # the next conversation begins without the settings of the example
    user.page.click("#new")
    with user.page.expect_request("**/v1/chat/completions") as sent:
        user.send("hello")
    assert "tools" not in read_body(sent.value)


def test_one_example_after_another_sets_only_its_own(user_at: UserAt, plain: RunningServer) -> None:
    user = user_at(plain)
    tell_bodies(user.page)
    user.page.locator(".example", has_text="JSON").click()
    user.page.locator(".example", has_text="Ask a question").click()
    with user.page.expect_request("**/v1/chat/completions") as sent:
        user.page.keyboard.press("Enter")
    assert "response_format" not in read_body(sent.value)


def test_the_demo_model_says_how_to_serve_a_real_one(user_at: UserAt, plain: RunningServer) -> None:
    expect(user_at(plain).page.locator(".demo-line")).to_be_empty()
    with running_server(is_demo=True) as server:
        page = user_at(server).page
        expect(page.locator(".demo-line code")).to_have_text(
            "ouzel serve Qwen/Qwen3-4B --weights int4"
        )
        page.click(".demo-line a")
        expect(page.locator("h2").first).to_have_text("Base URLs")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_welcome_obeys_the_rules_of_accessibility(
    page: Page, tooled: RunningServer, width: int, scheme: Literal["light", "dark"]
) -> None:
    page.set_viewport_size({"width": width, "height": 480})
    page.emulate_media(color_scheme=scheme)
    user = User(page, tooled.url)
    user.open()
    expect(page.locator(".example")).to_have_count(3)
    assert violations(page) == []
    # the greeting is in sight, and the examples below it are not
    assert page.evaluate("document.querySelector('#thread').scrollTop") == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
