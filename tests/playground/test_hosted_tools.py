"""Tools that the server runs, in the playground: calls, decisions, sources and files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal  # Any: JSON

import httpx
import pytest
from playwright.sync_api import Page, expect

from ouzel.config.media_hosts import read_media_hosts
from ouzel.hosted_tools.mcp.records import RemoteServer
from ouzel.hosted_tools.web_search.pages import Pages
from ouzel.hosted_tools.web_search.providers import make_provider
from ouzel.responses.hosted.kinds import HostedKinds
from ouzel.responses.hosted.mcp_kind import McpKind
from ouzel.responses.hosted.web_search_kind import WebSearchKind
from tests.api.responses.test_tools import write_call
from tests.api.responses.thinking import thinking_server
from tests.api.seeing import seeing_server
from tests.api.serving import RunningServer
from tests.hosted_tools.mcp_server import make_server, running
from tests.hosted_tools.web_servers import Web, running_web
from tests.playground.accessibility import LOOKS, Violations
from tests.playground.chromium import User
from tests.playground.keyboard import KeyboardUser
from tests.playground.pseudo_language import Check, PseudoUser
from tests.playground.states import Look
from tests.prompts.media.papers import coloured

pytestmark = pytest.mark.release("the playground: tools of the server")

ADD = write_call("add", {"a": 2, "b": 3})
OFFERS: list[dict[str, object]] = [
    {"type": "web_search"},
    {"type": "mcp", "server_label": "sums"},
]


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with running_web() as web:
        yield web


@pytest.fixture(scope="module")
def hosting(web: Web, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Starts a server with an MCP server and a search engine."""
    with running(make_server().streamable_http_app()) as port:
        sums = RemoteServer("sums", f"http://127.0.0.1:{port}/mcp", {}, is_operators=True)
        hosts = read_media_hosts((f"127.0.0.1:{web.port}",))
        pages = Pages(hosts, timeout_s=60.0)
        mcp = McpKind({"sums": sums}, hosts, timeout_s=60.0, max_answer_bytes=10**6)
        provider = make_provider("searxng", web.url(""), "", timeout_s=60.0)
        hosted = HostedKinds((mcp, WebSearchKind(provider, pages)), offers=OFFERS)
        path: Path = tmp_path_factory.mktemp("store") / "responses.sqlite3"
        with thinking_server(f"sqlite:///{path}", max_model_len=32768, hosted=hosted) as server:
            yield server
        pages.close()


@pytest.fixture
def user(page: Page, hosting: RunningServer) -> User:
    user = User(page, hosting.url)
    user.open()
    return user


def offer(user: User, *names: str, asks: bool = True) -> None:
    user.open_settings()
    for name in names:
        user.switch(f'[id="hosted-{name}"]')
    user.switch("#set-asksForApproval", is_on=asks)


def cards(user: User, index: int = -1) -> list[str]:
    """Returns the titles of the tools that an answer used."""
    answer = user.page.locator(".message.assistant").nth(index)
    return answer.locator(".hosted code").all_inner_texts()


def test_a_call_is_shown_with_its_arguments_and_its_result(user: User) -> None:
    offer(user, "mcp:sums", asks=False)
    user.ask(ADD)
    assert cards(user) == ["sums: 4 tools", "sums.add"]
    card = user.page.locator(".tool-call").nth(1)
    assert json.loads(card.locator(".tool-arguments").inner_text()) == {"a": 2, "b": 3}
    card.locator("summary").click()
    assert card.locator(".tool-output pre").inner_text() == "the sum is 5"
    assert "the sum is 5" in user.page.locator(".message.assistant .markdown").inner_text()
    assert user.page.locator(".message-footer .figures").inner_text()


def test_a_call_runs_once_after_a_person_has_allowed_it(user: User) -> None:
    offer(user, "mcp:sums")
    user.ask(ADD)
    assert cards(user) == ["sums: 4 tools", "sums.add"]
    user.click("Allow")
    user.wait_for_answer()
    assert user.page.locator(".message.approval .content").inner_text() == "Allowed."
    assert cards(user) == ["sums.add"]
    assert "the sum is 5" in user.answer
    assert user.page.get_by_role("button", name="Allow", exact=True).count() == 0
    user.ask("Thank you")
    assert cards(user) == []


def test_a_call_that_is_not_allowed_does_not_run(user: User) -> None:
    offer(user, "mcp:sums")
    user.ask(ADD)
    user.click("Do not allow")
    user.wait_for_answer()
    assert cards(user) == []
    assert "The user did not allow this call." in user.answer


def test_each_of_two_calls_is_decided(user: User) -> None:
    offer(user, "mcp:sums")
    user.ask(ADD + write_call("fail", {}))
    requests = user.page.locator(".tool-call:has(.approval)")
    user.click("Allow", requests.nth(0))
    expect(requests.nth(1).get_by_role("button", name="Allow", exact=True)).to_be_focused()
    user.click("Do not allow", requests.nth(1))
    user.wait_for_answer()
    decisions = user.page.locator(".message.approval .content").inner_text()
    assert decisions.split("\n") == ["Allowed.", "Not allowed."]
    assert cards(user) == ["sums.add"]


def test_a_failed_call_is_marked(user: User) -> None:
    offer(user, "mcp:sums", asks=False)
    user.ask(write_call("fail", {}))
    card = user.page.locator(".tool-call.failed")
    card.locator("summary").click()
    assert "Error executing tool fail" in card.locator(".tool-output pre").inner_text()


def test_a_stopped_call_does_not_run_again(user: User) -> None:
    offer(user, "mcp:sums")
    user.ask(write_call("hang", {}))
    user.click("Allow")
    expect(user.page.locator(".message.assistant").last.locator("code")).to_have_text("sums.hang")
    user.page.keyboard.press("Escape")
    user.wait_for_answer()
    assert user.page.locator(".tool-call.failed").count() == 1
    user.ask("Go on")
    assert cards(user) == []
    assert "Go on" in user.answer


def test_sources_are_links(user: User, web: Web) -> None:
    offer(user, "web_search")
    user.ask(write_call("web_search", {"query": "otters"}))
    assert cards(user) == ["Searches the web: otters"]
    link = user.page.locator(".citations a").first
    assert link.inner_text() == "Otters"
    assert link.get_attribute("href") == web.url("/otters")
    assert link.get_attribute("rel") == "noopener noreferrer"
    source = user.page.locator(".citations li").first.inner_text()
    assert source.split()[:3] == ["1", "Otters", f"127.0.0.1:{web.port}"]
    footnote = user.page.locator(".message.assistant .markdown .footnote a").first
    assert footnote.inner_text() == "1"
    footnote.hover()
    expect(user.page.locator("#source-card .source-title")).to_have_text("Otters")


def test_a_stored_conversation_comes_back_with_calls_and_sources(user: User) -> None:
    offer(user, "mcp:sums", "web_search")
    user.ask(ADD)
    user.click("Allow")
    user.wait_for_answer()
    user.ask(write_call("web_search", {"query": "otters"}))
    expect(user.page.locator(".citations a")).to_have_count(2)
    before = user.page.locator(".messages").inner_text()
    user.open()
    user.page.locator("#conversations .title").first.click()
    expect(user.page.locator(".citations a")).to_have_count(2)
    after = user.page.locator(".messages").inner_text()
    assert drop_figures(after) == drop_figures(before)
    user.ask("Once more")  # the server accepts the items that it has stored
    assert user.page.locator(".note.error").count() == 0


def drop_figures(text: str) -> list[str]:
    return [line for line in text.split("\n") if "tokens" not in line]


HOSTILE = "<img src=x onerror=alert(1)>"


def test_hostile_texts_of_tools_stay_text(user: User) -> None:
    script = """async ([text, address]) => {
      const { HostedView } = await import("/playground/modules/chat/hosted_view.js");
      const view = new HostedView(() => {}, () => {});
      const call = { server_label: text, name: text, arguments: text, error: text };
      const outputs = [{ type: "image", url: address }, { type: "logs", logs: text }];
      view.draw([
        { id: '"]x', type: "mcp_call", ...call },
        { id: '"]y', type: "mcp_approval_request", ...call },
        { id: "c", type: "code_interpreter_call", code: text, outputs },
        { id: "w", type: "web_search_call", action: { type: "open_page", url: address } },
        { id: "s", type: "shell_call", action: { commands: [text] }, output: [{ stdout: text }] },
      ], true);
      view.element.querySelectorAll(".approval button")[0].click();
      document.querySelector("main").append(view.element);
      return view.element.querySelectorAll("img, a").length;
    }"""
    for address in ("javascript:alert(1)", "data:text/html,x", HOSTILE, ""):
        assert user.page.evaluate(script, [HOSTILE, address]) == 0, address


def walk_through_tools(user: User, look: Look) -> None:
    offer(user, "mcp:sums", "web_search")
    look("settings")
    user.close_settings()
    user.ask(write_call("web_search", {"query": "otters"}))
    user.ask(ADD + write_call("fail", {}))
    requests = user.page.locator(".tool-call:has(.approval)")
    user.click("Allow", requests.nth(0))
    look("question")
    user.click("Allow", requests.nth(1))
    user.wait_for_answer()
    user.use(user.page.locator(".tool-output summary").last)
    look("answer")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_state_obeys_the_rules_of_accessibility(
    user: User, width: int, scheme: Literal["light", "dark"]
) -> None:
    page = user.page
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    user.open()
    look = Violations(page)
    walk_through_tools(user, look)
    assert look.found == {}


@pytest.mark.release("the playground without a pointer, in each of its states")
def test_tools_are_used_by_keys_alone(page: Page, hosting: RunningServer) -> None:
    user = KeyboardUser(page, hosting.url)
    user.open()
    walk_through_tools(user, lambda state: None)


def test_every_text_about_tools_is_translated(page: Page, hosting: RunningServer) -> None:
    user = PseudoUser(page, hosting.url)
    user.open()
    look = Check(user, ".source-title", ".source-host", ".source-name")
    walk_through_tools(user, look)
    assert look.found == {}


def test_the_request_is_code_for_the_responses_api(user: User) -> None:
    offer(user, "mcp:sums")
    user.page.fill("#set-max_tokens", "50")
    user.ask("Hello")
    user.click("Request")
    shown = user.page.locator(".request")
    text = shown.inner_text()
    assert "/v1/responses " in text
    body = json.loads(text[text.index("{") : text.rindex("}") + 1])
    entry = {"type": "mcp", "server_label": "sums", "require_approval": "always"}
    assert (body["tools"], body["max_output_tokens"]) == ([entry], 50)
    user.page.get_by_role("button", name="Python", exact=True).click()
    assert "client.responses.create(" in shown.inner_text()
    compile(shown.inner_text(), "request", "exec")


def test_schemas_and_own_functions_work_beside_hosted_tools(user: User) -> None:
    offer(user, "mcp:sums")
    user.page.check("#tool-calculator")
    user.ask(write_call("calculator", {"expression": "6 * 7"}))
    expect(user.page.locator(".message.tool .content")).to_have_text("42")
    user.wait_for_answer()
    assert "42" in user.answer


def test_the_list_of_models_names_the_tools_to_those_who_may_ask(hosting: RunningServer) -> None:
    listed: dict[str, Any] = httpx.get(f"{hosting.url}/v1/models").json()
    assert listed["hosted_tools"] == OFFERS


def test_a_server_without_tools_offers_none(parrot: RunningServer, page: Page) -> None:
    user = User(page, parrot.url)
    user.open()
    user.open_settings()
    assert user.page.locator("#set-asksForApproval").count() == 0
    assert "hosted_tools" not in httpx.get(f"{parrot.url}/v1/models").json()


def test_a_pdf_is_attached_by_its_name(page: Page, tmp_path: Path) -> None:
    with seeing_server(tmp_path) as server:
        user = User(page, server.url)
        user.open()
        user.choose_picture("plan.pdf", coloured(2), media_type="application/pdf")
        expect(page.locator("#attachments .file-state")).to_contain_text("2 pages")
        user.ask("What is it?")
        expect(user.message(0).locator(".file-name")).to_have_text("plan.pdf")


def test_a_broken_pdf_is_not_sent(page: Page, tmp_path: Path) -> None:
    with seeing_server(tmp_path) as server:
        user = User(page, server.url)
        user.open()
        user.choose_picture("plan.pdf", b"%PDF-1.4 broken", media_type="application/pdf")
        why = "The server refuses it: must be a PDF that is complete"
        expect(page.locator("#attachments .file-state")).to_contain_text(why)
        user.send("What is it?")
        expect(page.locator("#notice")).to_contain_text(f"Nothing was sent. plan.pdf: {why}")
        expect(page.locator("#prompt")).to_have_value("What is it?")
