"""An answer outlives its page: it goes on after a reload, in another tab, on another connection."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.api.serving import RunningServer, running_server
from tests.playground.accessibility import violations
from tests.playground.chromium import User, posts, read_body, tell_bodies
from tests.playground.stored import wait_until_stored
from tests.playground.two_models import SECOND, serving_two_models

pytestmark = pytest.mark.release("the playground: answers that go on without their page")

LONG = ("word " * 100).strip()
UserAt = Callable[[RunningServer], User]


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    store_url = f"sqlite:///{tmp_path_factory.mktemp('resumed') / 'store.sqlite3'}"
    with running_server({"step_s": 0.01}, store_url=store_url) as server:
        yield server


@pytest.fixture(scope="module")
def storeless() -> Iterator[RunningServer]:
    with running_server({"step_s": 0.01}) as server:
        yield server


def reopen(user: User) -> None:
    """Loads the page again, and opens the newest conversation."""
    user.open()
    user.page.locator("#conversations .title").first.click()
    expect(user.page.locator(".message")).not_to_have_count(0)


def begin(user: User) -> str:
    """Asks for a long answer. Returns the id of its response when the browser keeps it."""
    user.send(LONG)
    expect(user.page.locator(".message.assistant .content")).to_contain_text("word word")
    while not (response_id := kept(user).get("responseId")):
        user.page.wait_for_timeout(20)
    assert isinstance(response_id, str)
    return response_id


def kept(user: User) -> dict[str, object]:
    """Returns the entry of the answer that is being made; empty if there is none."""
    text = user.page.evaluate(
        "localStorage[Object.keys(localStorage).find((key) => key.startsWith('ouzel.answer.'))]"
    )
    found: dict[str, object] = {} if text is None else json.loads(text)
    return found


def wait_until_deleted(server: RunningServer, user: User, response_id: str) -> None:
    with server.client() as http:
        while http.get(f"/v1/responses/{response_id}").status_code != 404:
            user.page.wait_for_timeout(20)


def test_an_answer_goes_on_after_a_reload_and_leaves_nothing_behind(
    slow: RunningServer, user_at: UserAt
) -> None:
    user = user_at(slow)
    posted = posts(user.page)
    response_id = begin(user)
    reopen(user)
    expect(user.page.locator(".message.assistant .content")).to_have_text(LONG)
    user.wait_for_answer()
    user.expect_texts(LONG, LONG)
    assert [url for url in posted if url.endswith("/v1/responses")] == [f"{slow.url}/v1/responses"]
    wait_until_stored(user, 2)
    wait_until_deleted(slow, user, response_id)
    user.wait_until("!Object.keys(localStorage).some((key) => key.startsWith('ouzel.answer.'))")
    reopen(user)
    expect(user.page.locator(".message")).to_have_count(2)
    user.expect_texts(LONG, LONG)


def test_an_answer_that_has_ended_meanwhile_is_fetched(
    slow: RunningServer, user_at: UserAt
) -> None:
    user = user_at(slow)
    begin(user)
    user.page.goto("about:blank")
    while slow.engine.num_unfinished > 0:
        user.page.wait_for_timeout(20)
    reopen(user)
    expect(user.page.locator(".message.assistant .figures")).to_contain_text("tokens · prompt")
    user.expect_texts(LONG, LONG)


def test_the_text_of_a_response_that_is_gone_stays(slow: RunningServer, user_at: UserAt) -> None:
    user = user_at(slow)
    response_id = begin(user)
    user.wait_until(
        "Object.entries(localStorage).some(([, text]) => text.includes('word wo')"
        " && text.includes('resp_') && JSON.parse(text).said?.content.length > 4)"
    )
    user.page.goto("about:blank")
    with slow.client() as http:
        assert http.delete(f"/v1/responses/{response_id}").status_code == 200
    reopen(user)
    expect(user.page.locator(".note.error")).to_contain_text("no longer has the rest")
    assert user.texts[1].startswith("word") and len(user.texts[1]) < len(LONG)
    user.click("Try again")
    user.wait_for_answer()
    assert user.answer == LONG


def test_a_lost_connection_is_made_again(slow: RunningServer, user_at: UserAt) -> None:
    user = user_at(slow)
    begin(user)
    slow.break_connections()
    expect(user.page.locator(".note.wait")).to_contain_text("The server cannot be reached.")
    user.click("Try now")
    user.wait_for_answer()
    user.expect_texts(LONG, LONG)


def test_an_answer_that_is_lost_for_long_can_be_got_later(
    slow: RunningServer, user_at: UserAt
) -> None:
    user = user_at(slow)
    begin(user)
    user.page.route("**/v1/responses/*?stream=*", lambda route: route.abort())
    slow.break_connections()
    user.skip_waits()
    expect(user.page.locator(".note.error")).to_contain_text("the connection was lost")
    user.page.unroute("**/v1/responses/*?stream=*")
    user.click("Try again")
    user.wait_for_answer()
    user.expect_texts(LONG, LONG)
    expect(user.page.locator(".note.error")).to_have_count(0)


def test_a_stopped_answer_ends_on_the_server_and_keeps_its_text(
    slow: RunningServer, user_at: UserAt
) -> None:
    user = user_at(slow)
    response_id = begin(user)
    user.page.keyboard.press("Escape")
    user.wait_for_answer()
    wait_until_deleted(slow, user, response_id)
    while slow.engine.num_unfinished > 0:
        user.page.wait_for_timeout(20)
    wait_until_stored(user, 2)
    text = user.answer
    reopen(user)
    expect(user.page.locator(".message")).to_have_count(2)
    assert user.answer == text
    assert len(text) < len(LONG)


def test_an_answer_that_is_stopped_before_it_begins_ends_on_the_server(
    slow: RunningServer, user_at: UserAt
) -> None:
    user = user_at(slow)
    held: list[Route] = []
    user.page.route("**/v1/responses", lambda route: held.extend([route]))
    user.send(LONG)
    while held == []:
        user.page.wait_for_timeout(20)
    user.page.keyboard.press("Escape")
    user.wait_for_answer()
    with user.page.expect_request(lambda request: request.method == "DELETE") as deletion:
        held[0].continue_()
    request: Request = deletion.value
    assert "/v1/responses/resp_" in request.url
    while slow.engine.num_unfinished > 0:
        user.page.wait_for_timeout(20)


def test_another_tab_waits_for_the_answer_and_shows_it(
    slow: RunningServer, user_at: UserAt
) -> None:
    user = user_at(slow)
    begin(user)
    other = User(user.page.context.new_page(), slow.url)
    reopen(other)
    expect(other.page.locator(".note")).to_have_text(
        "Another tab of this browser is getting the answer."
    )
    user.wait_for_answer()
    expect(other.page.locator(".message")).to_have_count(2)
    other.expect_texts(LONG, LONG)
    assert len(other.titles) == 1
    assert len(user.titles) == 1


def test_a_deleted_conversation_leaves_no_response(slow: RunningServer, user_at: UserAt) -> None:
    user = user_at(slow)
    response_id = begin(user)
    user.open()  # a page that has not opened the conversation
    user.page.get_by_role("button", name="Delete word").first.click()
    wait_until_deleted(slow, user, response_id)
    assert kept(user) == {}


def test_without_a_store_the_text_stays_and_can_be_continued(
    storeless: RunningServer, user_at: UserAt
) -> None:
    user = user_at(storeless)
    user.send(LONG)
    while "word word" not in json.dumps(kept(user)):
        user.page.wait_for_timeout(20)
    reopen(user)
    expect(user.page.locator(".note")).to_have_text("Broken off.")
    assert user.answer.startswith("word")
    assert violations(user.page) == []
    wait_until_stored(user, 2)
    assert kept(user) == {}
    user.click("Continue")
    user.wait_for_answer()
    assert "2 / 2" in user.page.locator(".message").last.inner_text()


def test_a_page_that_is_left_keeps_the_text_until_then(
    storeless: RunningServer, user_at: UserAt, page: Page
) -> None:
    page.add_init_script(
        "const every = setInterval;"  # nothing is kept each second
        "window.setInterval = (act, ms) => (ms === 1000 ? 0 : every(act, ms));"
    )
    user = user_at(storeless)
    user.send(LONG)
    while not (entry := kept(user)):
        page.wait_for_timeout(20)
    said = entry["said"]
    assert isinstance(said, dict)
    content = page.locator(".message.assistant .content")
    while len(text := content.inner_text().strip()) <= len(said["content"]):
        page.wait_for_timeout(20)
    reopen(user)
    expect(page.locator(".note")).to_have_text("Broken off.")
    assert user.answer.startswith(text)


def test_a_person_who_keeps_conversations_in_the_browser_leaves_no_response_on_the_server(
    slow: RunningServer, user_at: UserAt, page: Page
) -> None:
    page.goto(slow.url)
    page.evaluate("localStorage.setItem('ouzel.settings', '{\"isOnServer\": false}')")
    user = user_at(slow)
    with page.expect_request("**/v1/chat/completions"):
        user.send("ok")
    user.wait_for_answer()
    user.expect_texts("ok", "ok")


def test_tools_behind_a_resumed_answer_of_another_model_go_to_that_model(
    page: Page, tmp_path: Path
) -> None:
    expression = " + ".join(["1"] * 100)
    arguments = json.dumps({"name": "calculator", "arguments": {"expression": expression}})
    store_url = f"sqlite:///{tmp_path / 'store.sqlite3'}"
    with serving_two_models(store_url=store_url, step_s=0.005, calls_tools=True) as server:
        user = User(page, server.url)
        user.open()
        user.open_settings()
        page.check("#tool-calculator")
        page.uncheck("#set-runsBuiltinTools")
        user.ask(f"<tool_call>\n{arguments}\n</tool_call>")
        wait_until_stored(user, 2)
        page.check("#set-runsBuiltinTools")
        user.click("Regenerate with another model")
        page.locator("dialog").get_by_role("button", name=SECOND, exact=True).click()
        while not kept(user).get("responseId"):
            page.wait_for_timeout(20)
        tell_bodies(page)
        page.goto("about:blank")
        for engine in [each.model.engine for each in server.catalogue]:
            while engine.num_unfinished > 0:
                page.wait_for_timeout(20)
        with page.expect_request(
            lambda request: request.method == "POST" and request.url.endswith("/v1/responses")
        ) as asked:
            reopen(user)
        assert read_body(asked.value)["model"] == SECOND
        user.wait_for_answer()
