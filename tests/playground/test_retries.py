"""Requests that a busy server refuses are sent again by themselves, and no others."""

import threading
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from ouzel.config import LimitsConfig
from tests.api.serving import RunningServer, running_server
from tests.playground.accessibility import violations
from tests.playground.chromium import User, posts

pytestmark = pytest.mark.release("the playground: requests that are sent again")

UserAt = Callable[[RunningServer], User]
PATH = "**/v1/responses"
_BODY = '{"error": {"message": "too many requests wait"}}'


class Refusals:
    """Answers the requests of the page for an answer with a status, until `is_over`."""

    def __init__(self, page: Page, status: int, headers: dict[str, str] | None = None) -> None:
        self.number = 0
        self.is_over = False
        self._status = status
        self._headers = headers or {}
        page.route(PATH, self._take)

    def _take(self, route: Route) -> None:
        if self.is_over:
            route.continue_()
            return
        self.number += 1
        if self._status == 0:
            route.abort()
        else:
            route.fulfill(status=self._status, body=_BODY, headers=self._headers)


def listen(user: User) -> None:
    """Collects the announcements for screen readers in `window.announced`."""
    user.page.evaluate(
        """() => {
          window.announced = [];
          const region = document.getElementById("announcer");
          const take = () => region.textContent && window.announced.push(region.textContent);
          new MutationObserver(take).observe(region, { childList: true });
        }"""
    )


@pytest.mark.parametrize("status", [429, 503, 529, 0])
def test_a_request_that_is_refused_for_now_is_sent_again(status: int, user: User) -> None:
    refusals = Refusals(user.page, status)
    listen(user)
    user.send("hello")
    note = user.page.locator(".note.wait")
    what = "cannot be reached" if status == 0 else "is busy"
    expect(note).to_contain_text(f"The server {what}. Next try in ")
    refusals.is_over = True
    user.wait_for_answer()  # no click is needed
    user.expect_texts("hello", "hello")
    expect(note).to_have_count(0)
    heard = user.page.evaluate("window.announced")
    assert len([text for text in heard if "tries again by itself" in text]) == 1


def test_the_time_that_the_server_names_is_waited(user: User) -> None:
    refusals = Refusals(user.page, 429, {"retry-after": "3000"})
    user.send("hello")
    expect(user.page.locator(".note.wait")).to_contain_text("in 2,9")
    assert violations(user.page) == []
    refusals.is_over = True
    user.page.get_by_role("button", name="Try now").focus()
    user.page.keyboard.press("Enter")
    user.wait_for_answer()
    assert user.answer == "hello"
    assert user.page.evaluate("document.activeElement !== document.body")


@pytest.mark.parametrize("way", ["key", "button"])
def test_waiting_is_stopped(way: str, user: User) -> None:
    refusals = Refusals(user.page, 503, {"retry-after": "3000"})
    user.send("hello")
    expect(user.page.locator(".note.wait")).to_be_visible()
    if way == "key":
        user.page.keyboard.press("Escape")
    else:
        user.click("Stop")
    user.wait_for_answer()
    expect(user.page.locator(".note")).to_have_text("Stopped.")
    refusals.is_over = True
    assert user.ask("and now") == "and now"
    assert refusals.number == 1


def test_after_five_tries_the_error_is_shown(user: User) -> None:
    refusals = Refusals(user.page, 429, {"retry-after": "3000"})  # the page makes no try by itself
    user.send("hello")
    for number in range(1, 6):
        expect(user.page.locator(".note.wait")).to_be_visible()
        assert refusals.number == number
        user.click("Try now")
        user.wait_until(f"{number} === 5 || document.querySelector('.note.wait') !== null")
        while refusals.number == number:
            user.page.wait_for_timeout(20)
    expect(user.page.locator(".note.error")).to_contain_text("too many requests wait")
    assert refusals.number == 6
    refusals.is_over = True
    user.click("Try again")
    user.wait_for_answer()
    assert user.answer == "hello"


@pytest.mark.parametrize("status", [400, 404, 413, 500])
def test_other_refusals_are_not_sent_again(status: int, user: User) -> None:
    refusals = Refusals(user.page, status, {"retry-after": "0"})
    user.ask("hello")
    expect(user.page.locator(".note.error")).to_contain_text("too many requests wait")
    assert refusals.number == 1


def test_what_may_have_run_tools_is_not_sent_again(user: User) -> None:
    """A request that got lost may have reached the server; a busy server has run nothing."""
    script = """async ([status, tools]) => {
      const { Api } = await import("/playground/modules/api.js");
      const { streamAnswer } = await import("/playground/modules/chat/answer.js");
      let number = 0;
      window.fetch = async () => {
        number += 1;
        if (status === 0) throw new TypeError("lost");
        return new Response("{}", { status, headers: { "retry-after": "0" } });
      };
      const onWait = (wait) => wait?.skip();
      const body = { input: [], tools };
      const { signal } = new AbortController();
      await streamAnswer(new Api(), body, { signal, onDelta() {}, onWait });
      return number;
    }"""
    function, server_tool = [{"type": "function"}], [{"type": "mcp"}]
    assert user.page.evaluate(script, [0, server_tool]) == 1
    assert user.page.evaluate(script, [0, function]) == 6
    assert user.page.evaluate(script, [429, server_tool]) == 6


def test_an_answer_that_has_begun_is_not_asked_for_again(user: User) -> None:
    numbers = posts(user.page)
    user.ask("begin |fail|")
    expect(user.page.locator(".note.error")).to_be_visible()
    assert len([url for url in numbers if url.endswith("/v1/responses")]) == 1


def test_a_full_server_answers_when_it_has_room(user_at: UserAt) -> None:
    options = {"step_s": 0.05, "max_num_seqs": 1}
    with running_server(options, LimitsConfig(max_queued_requests=1)) as full:
        user = user_at(full)
        stops = [threading.Event() for _ in range(2)]
        threads = [threading.Thread(target=occupy, args=(full, stop)) for stop in stops]
        for thread in threads:
            thread.start()
        while full.engine.num_unfinished < len(threads):
            user.page.wait_for_timeout(20)
        user.send("hello")
        expect(user.page.locator(".note.wait")).to_contain_text("The server is busy.")
        for stop in stops:
            stop.set()
        for thread in threads:
            thread.join()
        user.wait_for_answer()
        user.expect_texts("hello", "hello")


def occupy(server: RunningServer, stop: threading.Event) -> None:
    """Reads a long answer until `stop` is set."""
    body = {
        "model": "parrot",
        "messages": [{"role": "user", "content": "word " * 200}],
        "stream": True,
    }
    with server.client() as http, http.stream("POST", "/v1/chat/completions", json=body) as answer:
        for _ in answer.iter_lines():
            if stop.is_set():
                return
