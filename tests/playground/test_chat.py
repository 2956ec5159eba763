"""A chat by clicks and keys: answers stream, stop, branch, go on, and are shown with their figures."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from playwright.sync_api import Page, expect

from tests.api.serving import RunningServer, running_server
from tests.playground.chromium import Person
from tests.prompts.families import QWEN

STRICT = (
    "{%- for message in messages %}{%- if loop.index0 % 2 == 1 and message.role == 'user' %}"
    "{{- raise_exception('user and assistant must take turns') }}{%- endif %}{%- endfor %}" + QWEN
)


@pytest.fixture(scope="module")
def slow() -> Iterator[RunningServer]:
    with running_server({"step_s": 0.01}) as server:
        yield server


PersonAt = Callable[[RunningServer], Person]


def test_an_answer_comes_with_its_figures(person: Person) -> None:
    assert person.asks("Hello, parrot") == "Hello, parrot"
    figures = person.page.locator(".figures").inner_text()
    assert re.fullmatch(
        r"14 tokens · [\d.]+ tokens/s · first after [\d.]+ m?s · prompt \d+", figures
    )
    person.asks("Hello, parrot")
    assert re.search(r"prompt \d+$", person.page.locator(".figures").last.inner_text())


def test_an_answer_streams_and_is_stopped_by_a_key_or_a_click(
    slow: RunningServer, person_at: PersonAt
) -> None:
    person = person_at(slow)
    by_key, by_click = (
        partial(person.page.keyboard.press, "Escape"),
        partial(person.page.click, "#stop"),
    )
    for stop in (by_key, by_click):
        person.writes("word " * 200)
        expect(person.page.locator(".message.assistant .content").last).to_contain_text("word word")
        stop()
        person.waits()
        assert person.page.locator(".note").last.inner_text() == "Stopped."
        assert len(person.answer) < 1000
    while slow.engine.num_unfinished > 0:  # the server hears of it a moment after the page
        person.page.wait_for_timeout(20)


def test_a_notice_goes_when_it_is_true_no_more(slow: RunningServer, person_at: PersonAt) -> None:
    person = person_at(slow)
    person.writes("abc " * 300)
    expect(person.page.locator(".message.assistant .content").last).to_contain_text("abc abc")
    person.page.locator(".message").first.get_by_role("button", name="Edit").click()
    person.page.keyboard.type("other")
    person.page.keyboard.press("Control+Enter")
    expect(person.page.locator("#notice")).to_contain_text("An answer is being made")
    person.page.click("#stop")
    person.waits()
    expect(person.page.locator("#notice")).to_be_empty()


def test_a_stopped_answer_goes_on_in_a_branch(slow: RunningServer, person_at: PersonAt) -> None:
    person = person_at(slow)
    person.writes("abc " * 300)
    expect(person.page.locator(".message.assistant .content").last).to_contain_text("abc abc")
    person.page.keyboard.press("Escape")
    person.waits()
    before = person.answer
    person.clicks("Continue")
    person.page.keyboard.press("Escape")
    person.waits()
    assert person.answer.startswith(before)
    assert "2 / 2" in person.message(1).inner_text()


def test_edits_and_new_answers_are_branches(person: Person) -> None:
    person.asks("one")
    person.asks("two")
    person.clicks("Edit", person.message(0))
    person.page.fill(".editor", "another one")
    person.clicks("Send as another branch", person.message(0))
    person.waits()
    assert person.said == ["another one", "another one"]
    person.clicks("Branch before", person.message(0))
    assert person.said == ["one", "one", "two", "two"]
    person.clicks("Regenerate", person.message(1))
    person.waits()
    assert person.said == ["one", "one"]
    person.clicks("Branch before", person.message(1))
    assert person.said == ["one", "one", "two", "two"]
    person.page.keyboard.press("Tab")  # the focus has not left the message
    assert person.message(1).evaluate("node => node.contains(document.activeElement)")
    person.clicks("Edit", person.message(0))
    person.page.fill(".editor", " ")
    person.clicks("Send as another branch", person.message(0))
    assert person.page.locator(".editor").is_visible()


def test_an_answer_can_be_edited_and_the_edit_is_what_the_model_reads(person: Person) -> None:
    person.asks("one")
    person.clicks("Edit", person.message(1))
    person.page.fill(".editor", "edited")
    person.clicks("Keep as another branch", person.message(1))
    assert person.said == ["one", "edited"]
    person.clicks("Request", person.message(1))
    person.page.keyboard.press("Escape")
    person.asks("two")
    person.clicks("Request")
    assert '"content": "edited"' in person.page.locator("pre.request").inner_text()


def test_reasoning_is_folded(person: Person) -> None:
    assert person.asks("<think>because</think>so") == "so"
    reasoning = person.page.locator(".message.assistant .reasoning")
    assert reasoning.evaluate("node => node.open") is False
    reasoning.locator("summary").click()
    assert "because" in reasoning.inner_text()


def test_a_refusal_is_shown_and_can_be_tried_again(person: Person) -> None:
    person.opens_settings()
    person.page.fill("#set-stop", "\n".join("abcdefghij" * 7))
    person.asks("hello")
    assert "stop" in person.page.locator(".note.error").inner_text()
    person.page.fill("#set-stop", "")
    person.clicks("Try again")
    person.waits()
    assert person.said == ["hello", "hello"]


def test_a_message_behind_a_failed_one_takes_its_place(person_at: PersonAt) -> None:
    """The chat template refuses two messages of a person in a row, as the templates of Mistral and Gemma do."""
    with running_server(chat_template=STRICT) as strict:
        person = person_at(strict)
        person.opens_settings()
        person.page.fill("#set-stop", "\n".join("abcdefghij" * 7))
        person.asks("fails")
        expect(person.page.locator(".note.error")).to_contain_text("stop")
        person.page.fill("#set-stop", "")

        person.asks("once more")
        person.asks("and on")

        assert person.said == ["once more", "once more", "and on", "and on"]
        expect(person.page.locator(".note.error")).to_have_count(0)
        assert "2 / 2" in person.message(0).inner_text()
        person.clicks("Branch before", person.message(0))
        assert person.said[0] == "fails"
        person.page.wait_for_selector(".note.error")


def test_an_engine_fault_leaves_what_came_and_says_so(person: Person) -> None:
    person.asks("begin |fail|")
    assert "scripted failure" in person.page.locator(".note.error").inner_text()


def test_the_request_is_shown_in_three_languages(person: Person) -> None:
    person.opens_settings()
    person.page.fill("#set-temperature", "0.5")
    person.page.fill("#set-top_k", "7")
    person.page.fill("#set-system", "Be 'kind'.")
    person.asks("hello")
    person.clicks("Request")
    shown = person.page.locator("pre.request")
    assert f"curl {person.url}/v1/chat/completions" in shown.inner_text()
    assert "Be 'kind'." in shown.inner_text()
    dialog = person.page.locator("dialog")
    person.clicks("Python", dialog)
    assert '"top_k": 7' in shown.inner_text() and "extra_body" in shown.inner_text()
    compile(shown.inner_text(), "shown", "exec")
    person.clicks("JavaScript", dialog)
    assert "new OpenAI" in shown.inner_text() and '"temperature": 0.5' in shown.inner_text()


def test_a_program_prints_calls_where_there_are_tools(person: Person) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    said = '<tool_call>\n{"name": "look", "arguments": {"at": 5}}\n</tool_call>'
    body = {
        "messages": [{"role": "user", "content": said}],
        "model": "parrot",
        "tools": [tool],
        "stream": True,
    }
    script = "async body => (await import('/playground/modules/dialogs/request_dialog.js')).pythonText(body)"
    program = person.page.evaluate(script, body)
    done = subprocess.run(
        [sys.executable, "-"], input=program, capture_output=True, text=True, check=True
    )
    assert " ".join(done.stdout.split()) == 'look {"at": 5}'


def test_a_command_for_curl_holds_a_long_request(person: Person) -> None:
    """A picture is longer than one argument of a program may be."""
    body = {"content": "it's\n$HOME `x` \\ 😀 " + "A" * 200_000}
    script = "async body => (await import('/playground/modules/dialogs/request_dialog.js')).curlText(body)"
    command = "curl() { cat; }\n" + person.page.evaluate(script, body)
    assert (
        json.loads(
            subprocess.run(
                ["bash"], input=command, capture_output=True, text=True, check=True
            ).stdout
        )
        == body
    )


def test_many_parentheses_behind_an_address_are_no_work(person: Person) -> None:
    """They took a minute, in which the page stood still."""
    script = "async text => (await import('/playground/modules/markdown/inline.js')).parseInline(text).items.length"
    assert person.page.evaluate(script, "http://a" + ")" * 100_000) == 3


def test_a_connection_that_breaks_is_named(person: Person) -> None:
    script = """async () => {
      const { Api } = await import("/playground/modules/api.js");
      const start = (controller) => controller.error(new TypeError("network error"));
      window.fetch = async () => new Response(new ReadableStream({ start }));
      return await Array.fromAsync(new Api().stream("v1/chat/completions", {})).catch((error) => error.message);
    }"""
    assert person.page.evaluate(script) == "The answer broke off: the connection was lost."


def test_a_text_is_copied_where_the_page_has_no_clipboard(person: Person, page: Page) -> None:
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    person.asks("copy me")
    copy = person.message(1).get_by_role("button", name="Cop")
    copy.click()
    copy.click()
    expect(copy).to_have_text("Copied")
    expect(copy).to_have_text("Copy")
    page.focus("#prompt")
    page.keyboard.press("Control+v")
    assert page.input_value("#prompt") == "copy me"


def test_keys_of_an_input_method_are_its_own(person: Person, page: Page) -> None:
    """Enter takes a word then and Escape leaves it: nothing is sent, kept or stopped."""
    person.asks("hello")
    expect(page.locator("#conversations .title")).to_have_count(1)
    person.clicks("Edit", person.message(0))
    page.get_by_role("button", name="Rename hello").click()
    press = "(node, [key, init]) => node.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, ...init }))"
    title = page.get_by_role("textbox", name="Title")
    for init in ({"isComposing": True}, {"keyCode": 229}):
        for key in ("Enter", "Escape"):
            for field in (title, page.locator("#prompt"), page.locator(".editor")):
                field.evaluate(press, [key, init])
    assert title.is_visible() and page.locator(".editor").is_visible()
    assert person.said[1:] == ["hello"]


def test_an_answer_goes_on_while_another_conversation_is_looked_at(
    slow: RunningServer, person_at: PersonAt
) -> None:
    person = person_at(slow)
    person.asks("first")
    person.page.click("#new")
    person.writes("second " * 30)
    person.page.locator("#conversations .title", has_text="first").click()
    expect(person.page.locator("#title")).to_have_text("first")
    assert person.said == ["first", "first"]
    person.page.locator("#conversations .title", has_text="second").click()
    person.waits()
    assert person.answer == ("second " * 30).strip()


def test_the_page_stays_at_the_end_until_a_person_scrolls_up(
    slow: RunningServer, person_at: PersonAt
) -> None:
    person = person_at(slow)
    thread = person.page.locator("#thread")
    person.writes("\n\n".join(f"line {number}" for number in range(40)))
    person.waits_for("document.querySelector('#thread').scrollTop > 200")
    thread.evaluate("node => { node.scrollTop = 0 }")
    expect(person.page.locator("#to-end")).to_be_visible()
    person.waits()
    person.page.click("#to-end")
    person.waits_for(
        "(n => n.scrollHeight - n.scrollTop - n.clientHeight < 60)(document.querySelector('#thread'))"
    )


def test_the_end_of_a_fast_answer_is_in_sight_and_a_new_conversation_has_none_to_go_to(
    person: Person,
) -> None:
    thread, to_end = person.page.locator("#thread"), person.page.locator("#to-end")
    person.asks("\n\n".join(f"line {number}" for number in range(200)))
    person.waits_for(
        "(n => n.scrollHeight - n.scrollTop - n.clientHeight < 60)(document.querySelector('#thread'))"
    )
    expect(to_end).to_be_hidden()
    thread.evaluate("node => { node.scrollTop = 0 }")
    expect(to_end).to_be_visible()
    person.page.click("#new")
    expect(to_end).to_be_hidden()


def test_wrong_settings_are_named_and_nothing_is_sent(person: Person) -> None:
    person.opens_settings()
    person.page.fill("#set-temperature", "3")
    assert (
        person.page.locator(".fault:not(:empty)").inner_text()
        == "temperature must be <= 2, given 3"
    )
    person.writes("hello")
    assert "temperature must be <= 2, given 3" in person.page.locator("#notice").inner_text()
    assert person.said == []
    assert person.page.input_value("#prompt") == "hello"
    person.page.fill("#set-temperature", "1")
    expect(person.page.locator("#notice")).to_be_empty()
    person.page.fill("#set-seed", "9007199254740993")
    assert "seed must have fewer digits" in "".join(person.page.locator(".fault").all_inner_texts())


def test_settings_have_the_models_defaults_and_the_ranges_of_the_api(
    person: Person, page: Page
) -> None:
    person.opens_settings()
    assert page.get_attribute("#set-temperature", "placeholder") == "1"
    assert "≥ 0, ≤ 2" in page.locator(".field", has=page.locator("#set-temperature")).inner_text()
    page.fill("#set-temperature", "0.3")
    page.reload()
    person.opens_settings()
    assert page.input_value("#set-temperature") == "0.3"
    page.get_by_role("button", name="Set everything back").click()
    expect(page.locator("#set-temperature")).to_have_value("")
