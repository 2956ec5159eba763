"""The page is small and safe, and works with keys, screen readers, phones and proxies."""

import re
from collections.abc import Callable, Iterator
from typing import Literal

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from ouzel.api.site.playground import PREVIEW
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.config import ServerConfig
from ouzel.playground import DIRECTORY, file_names
from tests.api.serving import RunningServer, running_server
from tests.playground.accessibility import LOOKS, Violations, violations
from tests.playground.chromium import Troubles, User, browser_name
from tests.playground.states import CHAT_WALKS
from tests.playground.stored import wait_until_stored

UserAt = Callable[[RunningServer], User]
MAX_PAGE_BYTES = 400_000
HTML = {"accept": "text/html"}


@pytest.fixture(scope="module")
def guarded() -> Iterator[RunningServer]:
    with running_server(config=ServerConfig(api_key=("sk-right",))) as server:
        yield server


def test_every_file_is_served_with_a_strict_policy(parrot: RunningServer) -> None:
    with parrot.client() as http:
        for path in ["/", *(f"/playground/{name}" for name in file_names())]:
            response = http.get(path, headers=HTML)
            assert response.status_code == 200, path
            policy = response.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            is_preview = path == f"/playground/{PREVIEW}"
            assert ("unsafe" in policy) == is_preview == policy.startswith("sandbox allow-scripts;")
            assert "allow-same-origin" not in policy
            permissions = response.headers.get("permissions-policy", "")
            if path.endswith((".html", "/")):
                assert f"microphone=({'' if is_preview else 'self'})" in permissions, path
            assert response.headers["x-content-type-options"] == "nosniff"
            again = http.get(path, headers=HTML | {"if-none-match": response.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
        assert http.get("/playground/absent.js").status_code == 404
        assert http.get("/playground/../__init__.py").status_code == 404


def test_no_script_or_style_stands_in_a_page_and_no_text_becomes_html() -> None:
    for name in [name for name in file_names() if not name.endswith(".png")]:
        text = (DIRECTORY / name).read_text()
        if name == PREVIEW:  # texts become HTML here, in an origin of its own without a network
            assert text.count("document.write(") == text.count("<script>") == 1
            continue
        if name.endswith(".html"):
            assert not re.search(
                r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=|javascript:", text
            ), name
        forbidden = (
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser"
            r"|\beval\(|new Function|srcdoc"
        )
        assert not re.search(forbidden, text), name
        assert not re.search(
            r"https?://(?!www\.w3\.org/)", text.replace("https://…", "")
        ) or name.endswith(".js"), name
        assert name.endswith(".json") or len(text.splitlines()) <= 300, name


def test_the_page_is_light(page: Page, parrot: RunningServer) -> None:
    sizes: list[int] = []
    page.on(
        "response",
        lambda response: sizes.append(len(response.body())) if response.status == 200 else None,
    )
    User(page, parrot.url).open()
    page.wait_for_load_state("networkidle")
    assert 20_000 < sum(sizes) < MAX_PAGE_BYTES


def test_a_key_is_asked_for_and_stays_in_the_tab(guarded: RunningServer, page: Page) -> None:
    page.goto(guarded.url)
    page.wait_for_selector("dialog #api-key")
    page.fill("#api-key", "sk-\N{HORIZONTAL ELLIPSIS}")  # no header can hold it
    page.keyboard.press("Enter")
    assert page.locator("#api-key:invalid").is_visible()
    page.fill("#api-key", "sk-wrong")
    page.keyboard.press("Enter")
    expect(page.locator("dialog .fault")).to_contain_text("Incorrect API key")
    page.fill("#api-key", "sk-right")
    page.keyboard.press("Enter")
    page.wait_for_selector("body.ready")
    user = User(page, guarded.url)
    assert user.ask("hello") == "hello"
    user.click("Request")
    assert "Bearer $API_KEY" in page.locator("pre.request").inner_text()
    assert "sk-right" not in page.locator("pre.request").inner_text()
    page.keyboard.press("Escape")
    user.reload()
    other = page.context.new_page()
    other.goto(guarded.url)
    expect(other.locator("dialog #api-key")).to_be_visible()
    assert page.evaluate("Object.values(localStorage).join()").count("sk-") == 0


def test_the_page_names_a_missing_key_and_offers_another_try(
    guarded: RunningServer, page: Page
) -> None:
    page.goto(guarded.url)
    page.locator("dialog #api-key").wait_for()
    page.keyboard.press("Escape")
    expect(page.locator("#failure")).to_contain_text("An API key is needed.")
    again = page.get_by_role("button", name="Try again")
    expect(again).to_be_focused()
    again.click()
    expect(page.locator("dialog #api-key")).to_be_visible()


def test_the_keyboard_alone_suffices(user: User) -> None:
    keys = user.page.keyboard
    keys.type("by keys")
    keys.press("Enter")
    user.wait_for_answer()
    assert user.answer == "by keys"
    keys.press("Alt+ArrowUp")
    keys.press("Control+a")
    keys.type("once more")
    keys.press("Control+Enter")
    user.wait_for_answer()
    assert user.answer == "once more"
    keys.press("Alt+KeyS")
    user.wait_until("document.querySelector('#settings').contains(document.activeElement)")
    keys.press("Alt+KeyS")
    expect(user.page.locator("#settings")).to_be_hidden()
    keys.press("Alt+KeyF")
    keys.type("nothing like it")
    expect(user.page.locator("#conversations")).to_contain_text("Nothing found")
    keys.press("Control+a")
    keys.press("Delete")
    keys.press("Alt+KeyN")
    user.expect_texts()
    user.wait_until("document.activeElement.id === 'prompt'")
    keys.press("Alt+KeyH")
    expect(user.page.locator("dialog .shortcuts")).to_be_visible()
    keys.press("Escape")
    keys.press("Alt+KeyF")
    keys.press("Tab")
    keys.press("Enter")
    expect(user.page.locator("#title")).to_have_text("by keys")


def test_dialogs_open_with_the_focus_on_their_field_or_heading(user: User) -> None:
    focused = user.page.locator("dialog[open] :focus")
    user.ask("hello")

    user.page.click("#open-tokenizer")
    expect(focused).to_have_id("tokenizer-text")
    user.page.keyboard.press("Escape")
    user.page.keyboard.press("Alt+KeyH")
    expect(focused).to_have_text("Shortcuts")
    user.page.keyboard.press("Escape")
    user.click("Request")
    expect(focused).to_have_text("Request")


def test_a_double_click_opens_one_dialog(user: User) -> None:
    """A person may click twice while the module of a dialog is loaded."""
    page = user.page
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/manage_dialog.js", hold)
    page.click("#manage", click_count=2)
    while held == []:
        page.wait_for_timeout(20)
    held[0].continue_()
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def test_parts_that_cannot_be_loaded_say_so_and_come_at_the_next_try(
    page: Page, parrot: RunningServer
) -> None:
    user = User(page, parrot.url)
    parts = ["chat/message_view", "dialogs/shortcuts_dialog", "settings/panel"]
    for part in parts:
        page.route(f"**/modules/{part}.js", lambda route: route.abort())
    user.open()
    notice = page.locator("#notice")
    for opener in ("#open-shortcuts", "#toggle-settings"):
        page.click(opener)
        expect(notice).to_contain_text("could not be loaded")
        notice.locator("button").last.click()
    user.send("hello")
    expect(notice).to_contain_text("could not be loaded")
    assert page.locator(".message").count() == 0
    for part in parts:
        page.unroute(f"**/modules/{part}.js")
    notice.get_by_role("button", name="Try again").click()
    if browser_name(page) == "firefox":  # keeps a module that failed as failed
        notice.get_by_role("button", name="Load the page again").click()
    expect(page.locator(".message")).to_have_count(2)
    page.click("#toggle-settings")
    expect(page.locator("#set-temperature")).to_be_visible()
    page.click("#open-shortcuts")
    expect(page.locator("dialog[open] h2")).to_have_text("Shortcuts")


def test_a_part_that_stays_away_comes_when_the_page_is_loaded_again(
    page: Page, parrot: RunningServer
) -> None:
    user = User(page, parrot.url)
    part = "**/modules/chat/message_view.js"
    page.route(part, lambda route: route.fulfill(status=404, content_type="text/javascript"))
    user.open()
    notice = page.locator("#notice")
    user.send("hello")
    expect(notice).to_contain_text("The server may be away.")
    notice.get_by_role("button", name="Try again").click()
    expect(notice).to_contain_text("the server answers")
    wait_until_stored(user, 2)  # the page shows stored messages when it is loaded again
    page.unroute(part)
    notice.get_by_role("button", name="Load the page again").click()
    expect(page.locator(".message")).to_have_count(2)


def test_answers_are_announced_to_screen_readers(user: User) -> None:
    user.page.evaluate(
        """() => {
          window.told = [];
          const region = document.querySelector("#announcer");
          const take = () => region.textContent && told.push(region.textContent);
          new MutationObserver(take).observe(region, { childList: true });
        }"""
    )
    user.ask("hello")
    user.wait_until("told.includes('The answer is complete')")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_state_obeys_the_rules_of_accessibility(
    page: Page, parrot: RunningServer, width: int, scheme: Literal["light", "dark"]
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    user = User(page, parrot.url)
    user.open()
    look = Violations(page)
    for walk in CHAT_WALKS:
        walk(user, look)
    assert look.found == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_about_the_server_keeps_the_rules_of_accessibility(
    page: Page, parrot: RunningServer, scheme: Literal["light", "dark"]
) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{parrot.url}/about")
    assert violations(page) == []


def test_a_prefix_of_a_proxy_stays_in_the_urls(page: Page) -> None:
    with running_server(config=ServerConfig(root_path="/llm")) as server:
        user = User(page, f"{server.url}/llm/")
        user.open()
        assert user.ask("hello") == "hello"
        user.click("Request")
        assert f"{server.url}/llm/v1/chat/completions" in page.locator("pre.request").inner_text()


def test_a_server_without_playground_has_the_index_page_there() -> None:
    with running_server(config=ServerConfig(playground=False)) as server, server.client() as http:
        assert "Base URLs" in http.get("/", headers=HTML).text
        assert http.get("/playground/index.html").status_code == 404


def test_a_server_that_is_gone_is_named_and_found_again(page: Page) -> None:
    with running_server() as server:
        user = User(page, server.url)
        user.open()
        user.ask("hello")
        page.route("**/v1/**", lambda route: route.abort())
        user.send("are you there?")
        user.skip_waits()
        expect(page.locator(".note.error")).to_contain_text("The server cannot be reached.")
        page.unroute("**/v1/**")
        user.click("Try again")
        user.wait_for_answer()
        assert user.answer == "are you there?"


def test_every_model_of_the_server_can_be_chosen(user: User, parrot: RunningServer) -> None:
    user.page.click("#model")
    names = user.page.locator("dialog .model-name")
    expect(names).to_have_text(["org/parrot", "parrot"])
    expect(names.first).to_be_focused()
    names.last.click()
    user.ask("hello")
    user.click("Request")
    assert '"model": "parrot"' in user.page.locator("pre.request").inner_text()


def test_the_page_works_in_a_browser_without_storage(page: Page, parrot: RunningServer) -> None:
    page.add_init_script(
        """for (const name of ["localStorage", "sessionStorage", "indexedDB"]) {
          Object.defineProperty(
            window, name, { get() { throw new DOMException("forbidden", "SecurityError"); } });
        }"""
    )
    user = User(page, parrot.url)
    user.open()
    page.click("#theme")
    assert page.locator("#theme").inner_text() == "Theme: light"
    assert user.ask("hello") == "hello"
    expect(page.locator("#notice")).to_contain_text("gone when this page is closed")
    page.get_by_role("button", name="Delete hello").click()
    expect(page.locator("#conversations .title")).to_have_count(0)
    user.expect_texts()


def test_the_list_on_a_phone_closes_when_a_conversation_is_chosen(user: User, page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    user.ask("hello")
    page.keyboard.press("Alt+KeyF")
    page.locator("#new").click()
    expect(page.locator("#sidebar")).to_be_hidden()
    expect(page.locator("#prompt")).to_be_focused()
    page.keyboard.press("Alt+KeyF")
    page.locator("#conversations .title").click()
    expect(page.locator("#sidebar")).to_be_hidden()
    user.expect_texts("hello", "hello")


def test_the_theme_stays(user: User) -> None:
    user.page.click("#theme")
    user.page.click("#theme")
    assert user.page.locator("#theme").inner_text() == "Theme: dark"
    user.reload()
    assert user.page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_first_paint_needs_no_api(page: Page, parrot: RunningServer) -> None:
    """The page's frame is painted before the server has answered any request to its API."""
    troubles = Troubles(page)
    page.route("**/v1/models", lambda route: None)
    page.goto(parrot.url)
    expect(page.locator("#new")).to_be_visible()
    while page.evaluate("performance.getEntriesByType('paint').length") == 0:
        page.wait_for_timeout(20)
    page.unroute_all(behavior="ignoreErrors")
    assert troubles.found == []


def test_clients_other_than_browsers_get_json(parrot: RunningServer) -> None:
    assert httpx.get(parrot.url).json()["keeps_conversations"] is True


def test_the_page_names_the_purpose_of_a_model_that_cannot_chat(user_at: UserAt) -> None:
    with running_server(
        engine_factory="tests.engine.vector_runner:create_embedder",
        has_chat_template=False,
        sentences=SentenceFiles(modes=("mean",)),
    ) as server:
        user = user_at(server)
        expect(user.page.locator("#no-chat")).to_contain_text(
            "parrot makes embeddings and does not chat"
        )
        expect(user.page.locator("#composer")).to_be_hidden()
        user.open_settings()
