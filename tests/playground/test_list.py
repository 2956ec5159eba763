"""The list of conversations: deletions are taken back, hits are shown, some are pinned, all go."""

from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.api.serving import RunningServer
from tests.playground.accessibility import LOOKS, violations
from tests.playground.chromium import User, read_body, tell_bodies
from tests.playground.stored import records, wait_until_stored

UserAt = Callable[[RunningServer], User]
# Fills the browser with conversations of one message, a day between each two.
_FILL = """async (titles) => {
  const { Library } = await import("/playground/modules/storage/library.js");
  const { message } = await import("/playground/modules/chat/conversation.js");
  const library = new Library(null, { onChange: () => {}, onTrouble: console.error });
  const noon = new Date().setHours(0, 0, 1, 0);
  await library.add(titles.map((title, index) => ({
    title, updated: noon - index * 24 * 3600 * 1000, isNamed: true, isPinned: false, activeLeaf: 1,
    nodes: [{ id: 1, parent: null, message: message("user", { content: `About ${title}` }) }],
  })));
  library.records.tellAll();
}"""
# The database of pages before conversations had addresses.
_OLD_DATABASE = """async () => {
  const open = (version, onupgradeneeded) => new Promise((resolve, reject) => {
    const request = indexedDB.open("ouzel", version);
    Object.assign(request, {
      onupgradeneeded, onsuccess: () => resolve(request.result), onerror: reject,
    });
  });
  const database = await open(1, ({ target }) => {
    target.result.createObjectStore("conversations", { keyPath: "key" });
  });
  const store = database.transaction("conversations", "readwrite").objectStore("conversations");
  const content = { title: "old", updated: 5000, activeLeaf: 2, nodes: [
    { id: 1, parent: null, message: { role: "user", content: "an old question", images: [] } },
    { id: 2, parent: 1, message: { role: "assistant", content: "an old answer" } },
  ] };
  store.put({ key: "local-old", title: "old", updated: 5000, words: "an old question",
              files: [], isOnServer: false, content });
  const files = [{ id: "file-1", name: "a", size: 1, use: "model", place: 0 }];
  store.put({ key: "conv_old", title: "on the server", updated: 6000, words: "far away",
              files, isOnServer: true, saved: [1, 2] });
  await new Promise((resolve) => { store.transaction.oncomplete = resolve; });
  database.close();
}"""


def titles(user: User) -> list[str]:
    return user.page.locator("#conversations .title").all_inner_texts()


def slow_the_clock(user: User) -> None:
    """Makes each answer look fast, because titles are made for fast models alone."""
    user.page.add_init_script(
        "const now = performance.now.bind(performance); performance.now = () => now() / 1e6;"
    )
    tell_bodies(user.page)
    user.open()


def test_records_of_an_older_page_keep_all_that_they_had(page: Page, parrot: RunningServer) -> None:
    page.goto(f"{parrot.url}/playground/icon.svg")
    page.evaluate(_OLD_DATABASE)
    user = User(page, parrot.url)
    user.open()
    user.expect_titles("on the server", "old")
    server_record, record = records(user)
    assert (record["key"], record["isOnServer"]) == ("local-old", False)
    assert "content" not in record and "words" not in record
    assert server_record["saved"] == [1, 2]
    assert server_record["files"] == [
        {"id": "file-1", "name": "a", "size": 1, "use": "model", "place": 0}
    ]
    page.locator("#conversations .title", has_text="old").click()
    expect(page.locator(".message")).to_have_count(2)
    user.expect_texts("an old question", "an old answer")
    page.fill("#search", "far")
    expect(page.locator("#conversations .title")).to_have_text(["on the server"])
    expect(page.locator("#conversations .snippet")).to_have_text(["far away"])


def test_a_deletion_is_taken_back_by_a_button_or_a_key(user: User, parrot: RunningServer) -> None:
    page = user.page
    user.ask("not to lose")
    wait_until_stored(user, 2)
    page.get_by_role("button", name="Delete not to lose").click()
    expect(page.locator("#notice")).to_contain_text("“not to lose” is deleted.")
    expect(page.locator("#conversations .title")).to_have_count(0)
    user.expect_texts()
    page.get_by_role("button", name="Undo").press("Enter")
    expect(page.locator("#conversations .title")).to_be_focused()
    expect(page.locator(".message")).to_have_count(2)
    page.get_by_role("button", name="Delete not to lose").press("Enter")
    expect(page.locator("#conversations .title")).to_have_count(0)
    page.fill("#prompt", "words")
    page.press("#prompt", "Control+z")  # takes back the typed text alone
    user.expect_titles()
    page.locator("#new").focus()
    page.keyboard.press("Control+z")
    expect(page.locator("#conversations .title")).to_have_text(["not to lose"])
    [record] = records(user)
    assert httpx.get(f"{parrot.url}/v1/conversations/{record['key']}").status_code == 200


@pytest.mark.parametrize("is_left", [True, False])
def test_a_deletion_is_done_when_its_time_is_over_or_the_page_is_left(
    user: User, parrot: RunningServer, is_left: bool
) -> None:
    page = user.page
    user.ask("to be deleted")
    wait_until_stored(user, 2)
    [record] = records(user)
    if not is_left:
        page.clock.install()
    page.get_by_role("button", name="Delete to be deleted").click()
    expect(page.locator("#notice")).to_contain_text("is deleted")
    assert httpx.get(f"{parrot.url}/v1/conversations/{record['key']}").status_code == 200
    if is_left:
        page.goto("about:blank")
    else:
        page.clock.fast_forward(12_000)
    while httpx.get(f"{parrot.url}/v1/conversations/{record['key']}").status_code != 404:
        page.wait_for_timeout(20)
    if is_left:
        user.open()
    user.wait_until("""(async () =>
      (await (await import("/playground/modules/storage/database.js")).all()).length === 0)()""")


def test_a_list_that_changes_under_the_pointer_loses_no_click(user: User) -> None:
    page = user.page
    user.ask("to be deleted")
    wait_until_stored(user, 2)
    page.get_by_role("button", name="Delete to be deleted").hover()
    page.mouse.down()
    page.locator("#search").dispatch_event("input")  # draws the list anew
    expect(page.locator("#announcer")).to_contain_text("1 found")
    page.mouse.up()
    expect(page.locator("#conversations .title")).to_have_count(0)
    expect(page.locator("#notice")).to_contain_text("is deleted")


def test_a_search_shows_the_words_and_leads_to_their_message(user: User) -> None:
    page = user.page
    user.ask("first\n\n" + "long\n\n" * 60 + "about <b>apples</b> & pears " + "end " * 40)
    user.ask("second")
    wait_until_stored(user, 4)
    page.click("#new")
    page.fill("#search", "APPLES")
    snippet = page.locator("#conversations .snippet")
    expect(snippet).to_contain_text("about <b>apples</b> & pears")
    assert snippet.locator("mark").inner_text() == "apples"
    assert violations(page) == []
    page.locator("#conversations .title").click()
    expect(page.locator(".message").first).to_be_focused()
    assert page.locator(".message").first.evaluate("node => node.getBoundingClientRect().top") < 200


def test_conversations_are_pinned_and_grouped_and_more_are_shown(user: User) -> None:
    page = user.page
    page.evaluate(_FILL, [f"number {index}" for index in range(320)])
    expect(page.locator("#conversations .title")).to_have_count(300)
    groups = page.locator("#conversations .group")
    assert groups.all_inner_texts()[:3] == ["Today", "Yesterday", "Last 7 days"]
    assert groups.count() > 9  # and months
    page.get_by_role("button", name="Pin number 290").click()
    expect(groups.first).to_have_text("Pinned")
    assert titles(user)[:2] == ["number 290", "number 0"]
    unpin = page.get_by_role("button", name="Unpin number 290")
    expect(unpin).to_be_focused()
    page.get_by_role("button", name="Show more").click()
    expect(page.locator("#conversations .title")).to_have_count(320)
    expect(page.locator("#conversations .title").nth(300)).to_be_focused()
    user.reload()
    assert titles(user)[:2] == ["number 290", "number 0"]
    unpin.click()
    expect(groups.first).to_have_text("Today")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_list_and_its_dialog_are_accessible(user: User, width: int, scheme: str) -> None:
    page = user.page
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.evaluate(_FILL, ["one", "two", "three", "four"])
    if not page.locator("#sidebar").is_visible():
        page.click("#toggle-sidebar")
    page.get_by_role("button", name="Pin two").click()
    expect(page.locator("#conversations .group").first).to_have_text("Pinned")
    page.get_by_role("button", name="Delete three").click()
    expect(page.locator("#notice")).to_contain_text("is deleted")
    assert violations(page) == []
    page.click("#manage")
    expect(page.locator("dialog")).to_contain_text("3 conversations")
    assert violations(page) == []
    page.get_by_role("button", name="Delete all").click()
    expect(page.locator("dialog").last).to_contain_text("3 conversations will be gone for good")
    assert violations(page) == []


def test_all_conversations_are_deleted_after_a_question(user: User, parrot: RunningServer) -> None:
    page = user.page
    user.ask("on the server")
    wait_until_stored(user, 2)
    [record] = records(user)
    page.evaluate(_FILL, ["one", "two"])
    page.click("#manage")
    page.get_by_role("button", name="Delete all").click()
    question = page.locator("dialog").last
    expect(question).to_contain_text("3 conversations will be gone for good")
    expect(question).to_contain_text("1 of them is on the server.")
    user.click("Cancel", question)
    assert len(titles(user)) == 3
    page.get_by_role("button", name="Delete all").click()
    user.click("Delete them", page.locator("dialog").last)
    expect(page.locator(".manage-state")).to_contain_text("3 conversations were deleted.")
    assert titles(user) == [] and records(user) == []
    assert httpx.get(f"{parrot.url}/v1/conversations/{record['key']}").status_code == 404


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("“Apples and pears”", "Apples and pears"),
        ("", "what about fruit?"),
        ("two\nlines", "what about fruit?"),
        ("a" * 81, "what about fruit?"),
    ],
)
def test_the_model_makes_a_title_after_the_first_answer(
    user: User, made: str, expected: str
) -> None:
    page = user.page
    asked: list[dict[str, object]] = []

    def answer(route: Route) -> None:
        body = read_body(route.request)
        if body.get("stream"):
            route.continue_()
            return
        asked.append(body)
        message = {"role": "assistant", "content": made}
        route.fulfill(json={"choices": [{"message": message, "finish_reason": "stop"}]})

    slow_the_clock(user)
    page.route("**/v1/chat/completions", answer)
    user.ask("what about fruit?")
    while not asked:
        page.wait_for_timeout(20)
    expect(page.locator("#title")).to_have_text(expected)
    assert len(asked[0]["messages"]) == 3  # type: ignore[arg-type]
    assert (asked[0]["temperature"], asked[0]["enable_thinking"]) == (0, False)
    user.ask("and on")
    wait_until_stored(user, 4)
    page.reload()
    expect(page.locator("#title")).to_have_text(expected)
    assert len(asked) == 1


def test_no_title_is_made_where_it_is_switched_off_or_a_person_gave_one(user: User) -> None:
    page = user.page
    held: list[Route] = []

    def hold(route: Route) -> None:
        body = read_body(route.request)
        route.continue_() if body.get("stream") else held.append(route)

    slow_the_clock(user)
    page.route("**/v1/chat/completions", hold)
    user.ask("one")
    while not held:
        page.wait_for_timeout(20)
    page.get_by_role("button", name="Rename one").click()
    page.get_by_role("textbox", name="Title").fill("mine")
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("mine")
    message = {"role": "assistant", "content": "the model's"}
    held[0].fulfill(json={"choices": [{"message": message, "finish_reason": "stop"}]})
    user.ask("more")
    wait_until_stored(user, 4)
    expect(page.locator("#title")).to_have_text("mine")
    user.open_settings()
    page.uncheck("#set-makesTitles")
    page.click("#new")
    user.ask("two")
    user.ask("three")
    wait_until_stored(user, 4)
    assert len(held) == 1 and titles(user) == ["two", "mine"]
