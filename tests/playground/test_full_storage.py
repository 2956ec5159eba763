"""A browser without room, a proxy in front of the server, a file that is too large: all is told."""

import json

from playwright.sync_api import FilePayload, Page, Route, expect

from tests.playground.chromium import User, skip_unless_chromium
from tests.playground.conversation_files import Json
from tests.playground.test_import import choose
from tests.playground.test_settings import offer_preset_file

_ROOM = 300_000  # bytes
_FULL_STORAGE = """() => {
  Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };
}"""


def test_an_import_that_fills_the_disk_says_what_has_come(user: User, page: Page) -> None:
    skip_unless_chromium(page)
    quota = {"origin": user.url, "quotaSize": _ROOM}
    page.context.new_cdp_session(page).send("Storage.overrideQuotaForOrigin", quota)
    files = [
        (f"{name}.json", {"title": name, "tree": {"nodes": [{"id": 1, "message": message}]}})
        for name, message in (
            ("small", {"role": "user", "content": "hello"}),
            ("large", {"role": "user", "content": "x" * 10 * _ROOM}),
            ("never read", {"role": "user", "content": "hello"}),
        )
    ]
    said = choose(user, *files)
    assert "1 conversation was imported." in said
    assert "The import has ended: The browser has no more room for conversations" in said
    expect(page.locator("#conversations .title")).to_have_text(["small"])


def test_presets_that_the_browser_does_not_keep_are_told(user: User, page: Page) -> None:
    page.evaluate(_FULL_STORAGE)
    user.open_settings()
    page.get_by_role("button", name="Save these settings").click()
    page.fill("#preset-name", "short")
    page.press("#preset-name", "Enter")
    expect(page.locator(".preset-state.fault")).to_contain_text("until this page is closed")
    expect(page.locator("#preset")).to_have_value("short")


def test_too_many_presets_are_refused_and_not_cut(user: User, page: Page) -> None:
    user.open_settings()
    presets: dict[str, Json] = {f"name {number}": {} for number in range(201)}
    offer_preset_file(user, {"format": "ouzel.presets", "presets": presets})
    state = page.locator(".preset-state.fault")
    expect(state).to_contain_text("The file has 201 presets; at most 200 can come at once.")
    expect(page.locator("#preset option")).to_have_count(1)
    page.set_input_files(
        "#preset-file",
        FilePayload(name="x.json", mimeType="application/json", buffer=b"x" * 5_000_001),
    )
    expect(state).to_contain_text("too large")


def test_a_page_of_a_proxy_in_place_of_an_answer_is_told(user: User, page: Page) -> None:
    def sign_in(route: Route) -> None:
        route.fulfill(status=200, content_type="text/html", body="<html>Sign in</html>")

    page.route("**/v1/models*", sign_in)
    page.goto(user.url)
    expect(page.locator("#failure")).to_contain_text("A proxy, or a page to sign in")
    page.unroute("**/v1/models*")
    page.locator("#failure button").first.click()
    page.wait_for_selector("body.ready")


def test_a_browser_with_more_presets_than_a_file_keeps_them_all(user: User, page: Page) -> None:
    presets: dict[str, Json] = {f"name {number}": {} for number in range(201)}
    kept = json.dumps({"format": "ouzel.presets", "presets": presets})
    page.evaluate("text => localStorage.setItem('ouzel.presets', text)", kept)
    user.open()
    user.open_settings()
    expect(page.locator("#preset option")).to_have_count(202)
