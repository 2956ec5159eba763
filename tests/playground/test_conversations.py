"""Conversations are stored on the server or in the browser, found, renamed, exported, deleted."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.api.seeing import data_url, seeing_server, sizes_seen
from tests.api.serving import RunningServer, running_server
from tests.playground.chromium import User
from tests.playground.stored import records, wait_until_stored
from tests.prompts.media.files import saved
from tests.prompts.vision.pictures import picture

UserAt = Callable[[RunningServer], User]


@pytest.fixture(scope="module")
def storeless() -> Iterator[RunningServer]:
    """Starts a server without a store."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = tmp_path_factory.mktemp("seeing")
    with seeing_server(directory, store_url=f"sqlite:///{directory / 'store.sqlite3'}") as server:
        yield server


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    store_url = f"sqlite:///{tmp_path_factory.mktemp('slow') / 'store.sqlite3'}"
    with running_server({"step_s": 0.01}, store_url=store_url) as server:
        yield server


def reopen(user: User, title: str) -> None:
    """Opens the page without the address of a conversation, and then a conversation of the list."""
    user.open()
    user.page.locator("#conversations .title", has_text=title).click()
    expect(user.page.locator("#title")).to_have_text(title)


def test_a_conversation_is_on_the_server_with_its_branches(
    user: User, parrot: RunningServer
) -> None:
    user.ask("<think>why</think>one")
    user.ask("two")
    user.click("Edit", user.message(2))
    user.page.fill(".editor", "another two")
    user.click("Send as another branch", user.message(2))
    user.wait_for_answer()
    wait_until_stored(user, 6)
    [record] = records(user)
    assert record["isOnServer"] is True and "content" not in record
    items = httpx.get(
        f"{parrot.url}/v1/conversations/{record['key']}/items", params={"order": "asc"}
    ).json()["data"]
    kinds = [item["type"] for item in items]
    assert kinds == ["message", "reasoning", "message", *["message"] * 4]
    reopen(user, "<think>why</think>one")
    user.expect_texts("<think>why</think>one", "one", "another two", "another two")
    user.click("Branch before", user.message(2))
    user.expect_texts("<think>why</think>one", "one", "two", "two")
    assert user.page.locator(".message.assistant .reasoning").first.is_visible()
    user.ask("three")
    wait_until_stored(user, 8)
    reopen(user, "<think>why</think>one")
    user.expect_texts("<think>why</think>one", "one", "two", "two", "three", "three")


def test_a_conversation_is_renamed_and_deleted_while_it_is_answered(
    slow: RunningServer, user_at: UserAt
) -> None:
    user = user_at(slow)
    user.send("word " * 300)
    wait_until_stored(user, 1)
    user.page.click("#new")
    user.send("ok")
    rename = user.page.get_by_role("button", name="Rename word")
    rename.click()
    title = user.page.get_by_role("textbox", name="Title")
    title.fill("half")
    user.wait_for_answer()
    wait_until_stored(user, 2)  # the list has changed meanwhile
    expect(title).to_be_focused()
    title.press("Enter")
    expect(user.page.get_by_role("button", name="Rename half")).to_have_count(1)
    user.page.get_by_role("button", name="Delete half").click()
    expect(user.page.locator("#conversations .title")).to_have_text(["ok"])
    expect(user.page.locator("#conversations .title")).to_be_focused()
    while slow.engine.num_unfinished > 0:
        user.page.wait_for_timeout(20)
    user.expect_texts("ok", "ok")


def test_two_tabs_with_one_conversation_lose_no_message(
    slow: RunningServer, user_at: UserAt
) -> None:
    user = user_at(slow)
    user.ask("begun")
    wait_until_stored(user, 2)
    other = User(user.page.context.new_page(), slow.url)
    other.page.goto(user.page.url)
    expect(other.page.locator(".message")).to_have_count(2)
    other.send("there " * 100)  # meanwhile the first tab adds to the conversation
    expect(other.page.locator(".message")).to_have_count(4)
    user.page.click("#new")
    user.page.locator("#conversations .title", has_text="begun").click()
    expect(user.page.locator("#title")).to_have_text("begun")
    user.ask("here")
    other.wait_for_answer()
    # One conversation has all of it, or there are two, as the tabs' answers end in any order.
    asked = {"begun", ("there " * 100).strip(), "here"}
    while not asked <= stored_answers(user, slow):
        user.page.wait_for_timeout(50)


def stored_answers(user: User, server: RunningServer) -> set[str]:
    """Returns the texts of all answers in the conversations that the browser knows."""
    with server.client() as http:
        paths = [f"/v1/conversations/{record['key']}/items?limit=100" for record in records(user)]
        items = [item for path in paths for item in http.get(path).json().get("data", [])]
    said = [item for item in items if item.get("role") == "assistant"]
    return {part["text"].strip() for item in said for part in item["content"]}


def test_a_conversation_that_loads_slowly_does_not_replace_another(user: User, page: Page) -> None:
    user.ask("slow one")
    wait_until_stored(user, 2)
    [record] = records(user)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(f"**/v1/conversations/{record['key']}", hold)
    page.click("#new")
    page.locator("#conversations .title").click()
    while not held:
        page.wait_for_timeout(20)
    user.send("another")
    with page.expect_response(lambda response: response.url.endswith("/items?order=asc&limit=100")):
        held[0].continue_()
    user.wait_for_answer()
    user.expect_texts("another", "another")


def test_a_long_title_is_cut_between_characters(user: User) -> None:
    user.ask("a" * 58 + "😀" * 9)
    wait_until_stored(user, 2)
    [record] = records(user)
    assert (record["title"], record["isOnServer"]) == ("a" * 58 + "😀…", True)


def test_a_conversation_deleted_on_the_server_is_reported_as_gone(
    user: User, parrot: RunningServer
) -> None:
    user.ask("soon gone")
    wait_until_stored(user, 2)
    user.page.click("#new")
    user.page.reload()  # so the page has no more to store of this conversation
    expect(user.page.locator("#conversations .title")).to_have_count(1)
    [record] = records(user)
    assert httpx.delete(f"{parrot.url}/v1/conversations/{record['key']}").status_code == 200
    user.page.locator("#conversations .title").click()
    expect(user.page.locator("#notice")).to_contain_text(
        "The server no longer has this conversation."
    )


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_the_browser_stores_conversations_if_the_server_does_not(
    parrot: RunningServer, storeless: RunningServer, user_at: UserAt, is_asked_for: bool
) -> None:
    user = user_at(parrot if is_asked_for else storeless)
    user.open_settings()
    if is_asked_for:
        user.page.uncheck("#set-isOnServer")
    else:
        assert "keeps no conversations" in user.page.locator("#settings").inner_text()
    user.ask("only here")
    wait_until_stored(user, 2)
    assert [record["isOnServer"] for record in records(user)] == [False]
    reopen(user, "only here")
    user.expect_texts("only here", "only here")
    assert user.page.locator(".figures").count() == 1


def test_conversations_are_found_by_words_of_titles_and_texts(user: User) -> None:
    user.ask("about apples")
    wait_until_stored(user, 2)
    user.page.click("#new")
    user.ask("about pears\n\nand a hidden word")
    wait_until_stored(user, 2)
    expect(user.page.locator("#conversations .title")).to_have_text(["about pears", "about apples"])
    for words, found in [
        ("APPLES", ["about apples"]),
        ("hidden about", ["about pears"]),
        ("plums", []),
    ]:
        user.page.fill("#search", words)
        expect(user.page.locator("#conversations .title")).to_have_text(found)
    assert "Nothing found" in user.page.locator("#conversations").inner_text()


def test_a_conversation_keeps_its_new_name(user: User, parrot: RunningServer) -> None:
    user.ask("first")
    wait_until_stored(user, 2)
    user.page.get_by_role("button", name="Rename first").click()
    user.page.get_by_role("textbox", name="Title").fill("A better name")
    user.page.keyboard.press("Enter")
    expect(user.page.locator("#title")).to_have_text("A better name")
    user.ask("second")
    wait_until_stored(user, 4)
    [record] = records(user)
    kept = httpx.get(f"{parrot.url}/v1/conversations/{record['key']}").json()
    assert kept["metadata"]["title"] == "A better name"
    reopen(user, "A better name")


def test_a_conversation_is_exported_in_two_formats(user: User, tmp_path: Path) -> None:
    user.ask("<think>hm</think>ex/port ..\\me")
    wait_until_stored(user, 2)
    texts = {}
    for form, ending in [("Markdown, as it is shown", "md"), ("JSON, with all branches", "json")]:
        user.page.get_by_role("button", name="Export <think>").click()
        with user.page.expect_download() as begun:
            user.click(form, user.page.locator("dialog"))
        assert begun.value.suggested_filename == f"think-hm-think-ex-port-me.{ending}"
        begun.value.save_as(tmp_path / ending)
        texts[ending] = (tmp_path / ending).read_text()
    assert "## Answer · org/parrot\n\n> hm\n\nex/port ..\\me" in texts["md"]
    assert [each["role"] for each in json.loads(texts["json"])["messages"]] == ["user", "assistant"]


def test_a_picture_that_is_still_being_read_goes_with_its_question(
    seeing: RunningServer, user_at: UserAt
) -> None:
    user = user_at(seeing)
    user.page.evaluate("""() => {
      const read = FileReader.prototype.readAsDataURL;
      window.goOn = new Promise(resolve => { window.readNow = resolve });
      FileReader.prototype.readAsDataURL = function (file) {
        window.goOn.then(() => read.call(this, file));
      };
    }""")
    user.choose_picture("owl.png", saved(picture(28, 28), "PNG"))
    user.send("look")
    assert user.page.locator(".message").count() == 0
    user.page.evaluate("readNow()")
    expect(user.page.locator(".message.user .picture")).to_have_count(1)
    user.wait_for_answer()


def test_pictures_are_chosen_dropped_pasted_and_stored(
    seeing: RunningServer, user_at: UserAt
) -> None:
    user = user_at(seeing)
    png = saved(picture(56, 28), "PNG")
    user.choose_picture("a.png", png)
    for event in ("drop", "paste"):
        user.page.evaluate(
            """async ([url, kind]) => {
              const transfer = new DataTransfer();
              const content = atob(url.split(",")[1]);
              const bytes = Uint8Array.from(content, (character) => character.charCodeAt(0));
              transfer.items.add(new File([bytes], `${kind}.png`, { type: "image/png" }));
              const field = kind === "drop" ? "dataTransfer" : "clipboardData";
              const init = { bubbles: true, cancelable: true, [field]: transfer };
              const made = kind === "drop"
                ? new DragEvent("drop", init) : new ClipboardEvent("paste", init);
              // Firefox takes no files for a ClipboardEvent that a script makes.
              Object.defineProperty(made, field, { value: transfer });
              document.querySelector("#prompt").dispatchEvent(made);
            }""",
            [data_url(28, 28), event],
        )
    expect(user.page.locator("#attachments img")).to_have_count(3)
    user.page.get_by_role("button", name="Remove paste.png").click()
    user.ask("what is it?")
    assert sizes_seen() == [(28, 56), (28, 28)]
    assert user.page.locator(".message.user .picture").count() == 2
    wait_until_stored(user, 2)
    reopen(user, "what is it?")
    assert user.page.locator(".message.user .picture").count() == 2
    user.ask("and now?")
    assert sizes_seen() == [(28, 56), (28, 28)]
    first = user.message(0)
    user.click("Edit", first)
    user.click("Remove image 1", first)
    user.click("Send as another branch", first)
    user.wait_for_answer()
    assert sizes_seen() == [(28, 28)]


def test_text_is_pasted_and_dropped_as_text(user: User, page: Page) -> None:
    """A spreadsheet offers a picture of its cells beside the text."""
    script = """([type, types]) => {
      const transfer = new DataTransfer();
      for (const type of types) transfer.items.add("text", type);
      if (types.length > 1) transfer.items.add(new File(["x"], "cells.png", { type: "image/png" }));
      const init = {
        bubbles: true, cancelable: true, dataTransfer: transfer, clipboardData: transfer,
      };
      const event = type === "paste" ? new ClipboardEvent(type, init) : new DragEvent(type, init);
      return document.querySelector("#prompt").dispatchEvent(event);
    }"""
    assert page.evaluate(script, ["paste", ["text/plain", "text/html"]])
    assert page.evaluate(script, ["dragover", ["text/plain"]]) and page.evaluate(
        script, ["drop", ["text/plain"]]
    )
    assert page.locator("#notice").inner_text() == ""


def test_a_file_that_is_no_picture_and_a_model_without_vision_are_named(
    seeing: RunningServer, parrot: RunningServer, user_at: UserAt
) -> None:
    user = user_at(seeing)
    user.choose_picture("<b>.exe", b"MZ\0", media_type="application/octet-stream")
    card = user.page.locator("#attachments li")
    expect(card).to_contain_text("<b>.exe")
    expect(card).to_contain_text("cannot read this kind of file. It takes texts, pictures")
    user = user_at(parrot)
    user.choose_picture("a.png", saved(picture(28, 28), "PNG"))
    expect(card).to_contain_text("a.png")
    expect(card).to_contain_text("org/parrot")
    user.send("look")
    assert user.page.locator(".message").count() == 0
