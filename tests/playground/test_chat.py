"""A chat by clicks and keys: answers stream, stop, branch, continue, and are shown with figures."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from playwright.sync_api import Page, expect

from tests.api.serving import RunningServer, running_server
from tests.playground.chromium import User


@pytest.fixture(scope="module")
def slow() -> Iterator[RunningServer]:
    with running_server({"step_s": 0.01}) as server:
        yield server


UserAt = Callable[[RunningServer], User]


def test_an_answer_comes_with_its_figures(user: User) -> None:
    assert user.ask("Hello, parrot") == "Hello, parrot"
    figures = user.page.locator(".figures").inner_text()
    assert re.fullmatch(
        r"14 tokens · [\d.]+ tokens/s · first after [\d.]+ m?s · prompt \d+", figures
    )
    user.ask("Hello, parrot")
    assert re.search(r"prompt \d+$", user.page.locator(".figures").last.inner_text())


def test_an_answer_streams_and_is_stopped_by_a_key_or_a_click(
    slow: RunningServer, user_at: UserAt
) -> None:
    user = user_at(slow)
    by_key = partial(user.page.keyboard.press, "Escape")
    by_click = partial(user.page.click, "#stop")
    for stop in (by_key, by_click):
        user.send("word " * 200)
        expect(user.page.locator(".message.assistant .content").last).to_contain_text("word word")
        stop()
        user.wait_for_answer()
        assert user.page.locator(".note").last.inner_text() == "Stopped."
        assert len(user.answer) < 1000
    while slow.engine.num_unfinished > 0:  # the server hears of it a moment after the page
        user.page.wait_for_timeout(20)


def test_a_notice_disappears_when_it_is_no_longer_true(
    slow: RunningServer, user_at: UserAt
) -> None:
    user = user_at(slow)
    user.send("abc " * 300)
    expect(user.page.locator(".message.assistant .content").last).to_contain_text("abc abc")
    user.page.locator(".message").first.get_by_role("button", name="Edit").click()
    user.page.keyboard.type("other")
    user.page.keyboard.press("Control+Enter")
    expect(user.page.locator("#notice")).to_contain_text("An answer is being made")
    user.page.click("#stop")
    user.wait_for_answer()
    expect(user.page.locator("#notice")).to_be_empty()


def test_a_stopped_answer_goes_on_in_a_branch(slow: RunningServer, user_at: UserAt) -> None:
    user = user_at(slow)
    user.send("abc " * 300)
    expect(user.page.locator(".message.assistant .content").last).to_contain_text("abc abc")
    user.page.keyboard.press("Escape")
    user.wait_for_answer()
    before = user.answer
    user.click("Continue")
    user.page.keyboard.press("Escape")
    user.wait_for_answer()
    assert user.answer.startswith(before)
    assert "2 / 2" in user.message(1).inner_text()


def test_edits_and_new_answers_are_branches(user: User) -> None:
    user.ask("one")
    user.ask("two")
    user.click("Edit", user.message(0))
    user.page.fill(".editor", "another one")
    user.click("Send as another branch", user.message(0))
    user.wait_for_answer()
    assert user.texts == ["another one", "another one"]
    user.click("Branch before", user.message(0))
    assert user.texts == ["one", "one", "two", "two"]
    user.click("Regenerate", user.message(1))
    user.wait_for_answer()
    assert user.texts == ["one", "one"]
    user.click("Branch before", user.message(1))
    assert user.texts == ["one", "one", "two", "two"]
    user.page.keyboard.press("Tab")  # the focus has not left the message
    assert user.message(1).evaluate("node => node.contains(document.activeElement)")
    user.click("Edit", user.message(0))
    user.page.fill(".editor", " ")
    user.click("Send as another branch", user.message(0))
    assert user.page.locator(".editor").is_visible()


def test_an_answer_can_be_edited_and_the_model_reads_the_edit(user: User) -> None:
    user.ask("one")
    user.click("Edit", user.message(1))
    user.page.fill(".editor", "edited")
    user.click("Keep as another branch", user.message(1))
    assert user.texts == ["one", "edited"]
    user.click("Request", user.message(1))
    user.close_dialog()
    user.ask("two")
    user.click("Request")
    expect(user.page.locator("pre.request")).to_contain_text('"content": "edited"')


def test_reasoning_is_folded(user: User) -> None:
    assert user.ask("<think>because</think>so") == "so"
    reasoning = user.page.locator(".message.assistant .reasoning")
    assert reasoning.evaluate("node => node.open") is False
    reasoning.locator("summary").click()
    assert "because" in reasoning.inner_text()


def test_a_refusal_is_shown_and_can_be_tried_again(user: User) -> None:
    user.open_settings()
    user.page.fill("#set-stop", "\n".join("abcdefghij" * 7))
    user.ask("hello")
    assert "stop" in user.page.locator(".note.error").inner_text()
    user.page.fill("#set-stop", "")
    user.click("Try again")
    user.wait_for_answer()
    assert user.texts == ["hello", "hello"]


def test_after_an_engine_fault_the_received_text_and_the_error_are_shown(user: User) -> None:
    user.ask("begin |fail|")
    assert "scripted failure" in user.page.locator(".note.error").inner_text()


def test_the_request_is_shown_in_three_languages(user: User) -> None:
    user.open_settings()
    user.page.fill("#set-temperature", "0.5")
    user.page.fill("#set-top_k", "7")
    user.page.fill("#set-system", "Be 'kind'.")
    user.ask("hello")
    user.click("Request")
    shown = user.page.locator("pre.request")
    assert f"curl {user.url}/v1/chat/completions" in shown.inner_text()
    assert "Be 'kind'." in shown.inner_text()
    dialog = user.page.locator("dialog")
    user.click("Python", dialog)
    assert '"top_k": 7' in shown.inner_text() and "extra_body" in shown.inner_text()
    compile(shown.inner_text(), "shown", "exec")
    user.click("JavaScript", dialog)
    assert "new OpenAI" in shown.inner_text() and '"temperature": 0.5' in shown.inner_text()


def test_a_program_prints_calls_where_there_are_tools(user: User) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    texts = '<tool_call>\n{"name": "look", "arguments": {"at": 5}}\n</tool_call>'
    body = {
        "messages": [{"role": "user", "content": texts}],
        "model": "parrot",
        "tools": [tool],
        "stream": True,
    }
    script = """async body =>
      (await import("/playground/modules/dialogs/request_dialog.js")).pythonText(body)"""
    program = user.page.evaluate(script, body)
    done = subprocess.run(
        [sys.executable, "-"], input=program, capture_output=True, text=True, check=True
    )
    assert " ".join(done.stdout.split()) == 'look {"at": 5}'


def test_a_command_for_curl_holds_a_long_request(user: User) -> None:
    """The picture is longer than the longest argument of a program."""
    body = {"content": "it's\n$HOME `x` \\ 😀 " + "A" * 200_000}
    script = """async body =>
      (await import("/playground/modules/dialogs/request_dialog.js")).curlText(body)"""
    command = "curl() { cat; }\n" + user.page.evaluate(script, body)
    assert (
        json.loads(
            subprocess.run(
                ["bash"], input=command, capture_output=True, text=True, check=True
            ).stdout
        )
        == body
    )


def test_many_parentheses_behind_an_address_take_little_time(user: User) -> None:
    """A pattern with quadratic time would stop the page for a minute."""
    script = """async text =>
      (await import("/playground/modules/markdown/inline.js")).parseInline(text).items.length"""
    assert user.page.evaluate(script, "http://a" + ")" * 100_000) == 3


def test_a_connection_that_breaks_is_named(user: User) -> None:
    script = """async () => {
      const { Api } = await import("/playground/modules/api.js");
      const start = (controller) => controller.error(new TypeError("network error"));
      window.fetch = async () => new Response(new ReadableStream({ start }));
      return await Array.fromAsync(new Api().stream("v1/chat/completions", {}))
        .catch((error) => error.message);
    }"""
    assert user.page.evaluate(script) == "The answer broke off: the connection was lost."


def test_a_text_is_copied_where_the_page_has_no_clipboard(user: User, page: Page) -> None:
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    text = "copy me:\n\tif x:\n\t    y"
    user.ask(text)
    copy = user.message(1).get_by_role("button", name="Cop")
    copy.click()
    copy.click()
    expect(copy).to_have_text("Copied")
    expect(copy).to_have_text("Copy")
    page.focus("#prompt")
    page.keyboard.press("Control+v")
    expect(page.locator("#prompt")).to_have_value(text)


def test_keys_of_an_input_method_do_nothing_else(user: User, page: Page) -> None:
    """Keys that an input method uses for itself send, store and stop nothing."""
    user.ask("hello")
    expect(page.locator("#conversations .title")).to_have_count(1)
    user.click("Edit", user.message(0))
    page.get_by_role("button", name="Rename hello").click()
    press = """(node, [key, init]) =>
      node.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...init }))"""
    title = page.get_by_role("textbox", name="Title")
    for init in ({"isComposing": True}, {"keyCode": 229}):
        for key in ("Enter", "Escape"):
            for field in (title, page.locator("#prompt"), page.locator(".editor")):
                field.evaluate(press, [key, init])
    assert title.is_visible() and page.locator(".editor").is_visible()
    assert user.texts[1:] == ["hello"]


def test_an_answer_goes_on_while_another_conversation_is_looked_at(
    slow: RunningServer, user_at: UserAt
) -> None:
    user = user_at(slow)
    user.ask("first")
    user.page.click("#new")
    user.send("second " * 30)
    user.page.locator("#conversations .title", has_text="first").click()
    expect(user.page.locator("#title")).to_have_text("first")
    assert user.texts == ["first", "first"]
    user.page.locator("#conversations .title", has_text="second").click()
    user.wait_for_answer()
    assert user.answer == ("second " * 30).strip()


def test_the_page_stays_at_the_end_until_the_user_scrolls_up(
    slow: RunningServer, user_at: UserAt
) -> None:
    user = user_at(slow)
    thread = user.page.locator("#thread")
    user.send("\n\n".join(f"line {number}" for number in range(40)))
    user.wait_until("document.querySelector('#thread').scrollTop > 200")
    thread.evaluate("node => { node.scrollTop = 0 }")
    expect(user.page.locator("#to-end")).to_be_visible()
    user.wait_for_answer()
    user.page.click("#to-end")
    user.wait_until(
        "(n => n.scrollHeight - n.scrollTop - n.clientHeight < "
        "60)(document.querySelector('#thread'))"
    )


def test_the_page_scrolls_to_the_end_of_a_fast_answer(
    user: User,
) -> None:
    thread, to_end = user.page.locator("#thread"), user.page.locator("#to-end")
    user.ask("\n\n".join(f"line {number}" for number in range(200)))
    user.wait_until(
        "(n => n.scrollHeight - n.scrollTop - n.clientHeight < "
        "60)(document.querySelector('#thread'))"
    )
    expect(to_end).to_be_hidden()
    thread.evaluate("node => { node.scrollTop = 0 }")
    expect(to_end).to_be_visible()
    user.page.click("#new")
    expect(to_end).to_be_hidden()


def test_wrong_settings_are_named_and_nothing_is_sent(user: User) -> None:
    user.open_settings()
    user.page.fill("#set-temperature", "3")
    assert (
        user.page.locator(".fault:not(:empty)").inner_text() == "temperature must be <= 2, given 3"
    )
    user.send("hello")
    expect(user.page.locator("#notice")).to_contain_text("temperature must be <= 2, given 3")
    assert user.texts == []
    assert user.page.input_value("#prompt") == "hello"
    user.page.fill("#set-temperature", "1")
    expect(user.page.locator("#notice")).to_be_empty()
    user.page.fill("#set-seed", "9007199254740993")
    assert "seed must have fewer digits" in "".join(user.page.locator(".fault").all_inner_texts())


def test_settings_have_the_models_defaults_and_the_ranges_of_the_api(
    user: User, page: Page
) -> None:
    user.open_settings()
    assert page.get_attribute("#set-temperature", "placeholder") == "1"
    assert "≥ 0, ≤ 2" in page.locator(".field", has=page.locator("#set-temperature")).inner_text()
    page.fill("#set-temperature", "0.3")
    user.reload()
    user.open_settings()
    assert page.input_value("#set-temperature") == "0.3"
    page.get_by_role("button", name="Reset all settings").click()
    expect(page.locator("#set-temperature")).to_have_value("")
