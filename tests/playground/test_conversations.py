"""Conversations are kept on the server or in the browser, found, renamed, exported and deleted."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.api.seeing import data_url, seeing_server, sizes_seen
from tests.api.serving import RunningServer, running_server
from tests.playground.chromium import Person
from tests.prompts.media.files import saved
from tests.prompts.vision.pictures import picture

PersonAt = Callable[[RunningServer], Person]


@pytest.fixture(scope="module")
def forgetful() -> Iterator[RunningServer]:
    """Keeps nothing."""
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


def come_back(person: Person, title: str) -> None:
    """A new page of the same browser opens a conversation."""
    person.page.reload()
    person.page.wait_for_selector("body.ready")
    person.page.locator("#conversations .title", has_text=title).click()
    expect(person.page.locator("#title")).to_have_text(title)


def records(person: Person) -> list[dict[str, object]]:
    script = "async () => (await import('/playground/modules/storage/database.js')).all()"
    found: list[dict[str, object]] = person.page.evaluate(script)
    return found


def wait_until_kept(person: Person, number: int = 1) -> None:
    """Until the newest conversation has been kept with so many messages."""
    script = """async () => {
      const all = await (await import("/playground/modules/storage/database.js")).all();
      const newest = all.sort((one, other) => other.updated - one.updated)[0];
      return newest === undefined ? 0 : (newest.saved ?? newest.content.nodes).length;
    }"""
    while person.page.evaluate(script) < number:
        person.page.wait_for_timeout(20)


def test_a_conversation_is_on_the_server_with_its_branches(
    person: Person, parrot: RunningServer
) -> None:
    person.asks("<think>why</think>one")
    person.asks("two")
    person.clicks("Edit", person.message(2))
    person.page.fill(".editor", "another two")
    person.clicks("Send as another branch", person.message(2))
    person.waits()
    wait_until_kept(person, 6)
    [record] = records(person)
    assert record["isOnServer"] is True and "content" not in record
    items = httpx.get(
        f"{parrot.url}/v1/conversations/{record['key']}/items", params={"order": "asc"}
    ).json()["data"]
    kinds = [item["type"] for item in items]
    assert kinds == ["message", "reasoning", "message", *["message"] * 4]
    come_back(person, "<think>why</think>one")
    assert person.said == ["<think>why</think>one", "one", "another two", "another two"]
    person.clicks("Branch before", person.message(2))
    assert person.said[2:] == ["two", "two"]
    assert person.page.locator(".message.assistant .reasoning").first.is_visible()
    person.asks("three")
    wait_until_kept(person, 8)
    come_back(person, "<think>why</think>one")
    assert person.said[4:] == ["three", "three"]


def test_what_was_asked_outlives_the_page_and_no_half_answer_is_kept(
    slow: RunningServer, person_at: PersonAt
) -> None:
    person = person_at(slow)
    person.writes("word " * 100)
    expect(person.page.locator(".message.assistant .content")).to_contain_text("word word")
    wait_until_kept(person, 1)
    [title] = person.titles
    come_back(person, title)
    assert person.said == [("word " * 100).strip()]
    assert records(person)[0]["isOnServer"] is True
    person.asks("more")
    wait_until_kept(person, 3)
    come_back(person, title)
    assert person.said == ["more", "more"]  # the question without an answer is the other branch


def test_a_conversation_is_renamed_and_deleted_while_it_is_answered(
    slow: RunningServer, person_at: PersonAt
) -> None:
    person = person_at(slow)
    person.writes("word " * 300)
    wait_until_kept(person, 1)
    person.page.click("#new")
    person.writes("ok")
    rename = person.page.get_by_role("button", name="Rename word")
    rename.click()
    title = person.page.get_by_role("textbox", name="Title")
    title.fill("half")
    person.waits()
    wait_until_kept(person, 2)  # the list has changed meanwhile
    expect(title).to_be_focused()
    title.press("Enter")
    expect(person.page.get_by_role("button", name="Rename half")).to_have_count(1)
    person.page.get_by_role("button", name="Delete half").click()
    person.clicks("Delete it", person.page.locator("dialog"))
    expect(person.page.locator("#conversations .title")).to_have_text(["ok"])
    expect(person.page.locator("#conversations .title")).to_be_focused()
    while slow.engine.num_unfinished > 0:
        person.page.wait_for_timeout(20)
    assert person.said == ["ok", "ok"]


def test_two_tabs_lose_nothing_of_each_other(person: Person, parrot: RunningServer) -> None:
    person.asks("begun")
    wait_until_kept(person, 2)
    other = Person(person.page.context.new_page(), parrot.url)
    other.comes()
    other.page.locator("#conversations .title").click()
    expect(other.page.locator("#title")).to_have_text("begun")
    person.asks("<think>here</think>here")
    wait_until_kept(person, 4)
    other.asks("there")
    expect(other.page.locator("#notice")).to_contain_text("went on in another tab")
    wait_until_kept(other, 4)
    assert other.said == ["begun", "begun", "there", "there"]
    person.page.reload()
    titles = person.page.locator("#conversations .title")
    expect(titles).to_have_count(2)
    found = []
    for index in range(2):
        titles.nth(index).click()
        expect(person.page.locator(".message")).to_have_count(4)
        found.append(person.said[-1])
        person.page.click("#new")
    assert found == ["there", "here"]


def test_one_that_comes_slowly_is_not_shown_over_another(person: Person, page: Page) -> None:
    person.asks("slow one")
    wait_until_kept(person, 2)
    [record] = records(person)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(f"**/v1/conversations/{record['key']}", hold)
    page.click("#new")
    page.locator("#conversations .title").click()
    while not held:
        page.wait_for_timeout(20)
    person.writes("another")
    with page.expect_response(lambda response: response.url.endswith("/items?order=asc&limit=100")):
        held[0].continue_()
    person.waits()
    assert person.said == ["another", "another"]


def test_a_long_title_is_cut_between_characters(person: Person) -> None:
    person.asks("a" * 58 + "😀" * 9)
    wait_until_kept(person, 2)
    [record] = records(person)
    assert (record["title"], record["isOnServer"]) == ("a" * 58 + "😀…", True)


def test_one_that_the_server_no_longer_has_is_said_to_be_gone(
    person: Person, parrot: RunningServer
) -> None:
    person.asks("soon gone")
    wait_until_kept(person, 2)
    [record] = records(person)
    assert httpx.delete(f"{parrot.url}/v1/conversations/{record['key']}").status_code == 200
    person.page.reload()
    person.page.locator("#conversations .title").click()
    expect(person.page.locator("#notice")).to_contain_text(
        "The server no longer has this conversation."
    )


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_the_browser_keeps_them_where_the_server_does_not(
    parrot: RunningServer, forgetful: RunningServer, person_at: PersonAt, is_asked_for: bool
) -> None:
    person = person_at(parrot if is_asked_for else forgetful)
    person.opens_settings()
    if is_asked_for:
        person.page.uncheck("#set-isOnServer")
    else:
        assert "keeps no conversations" in person.page.locator("#settings").inner_text()
    person.asks("only here")
    wait_until_kept(person, 2)
    assert [record["isOnServer"] for record in records(person)] == [False]
    come_back(person, "only here")
    assert person.said == ["only here", "only here"]
    assert person.page.locator(".figures").count() == 1


def test_they_are_found_by_words_of_titles_and_texts(person: Person) -> None:
    person.asks("about apples")
    wait_until_kept(person, 2)
    person.page.click("#new")
    person.asks("about pears\n\nand a hidden word")
    wait_until_kept(person, 2)
    expect(person.page.locator("#conversations .title")).to_have_text(
        ["about pears", "about apples"]
    )
    for words, found in [
        ("APPLES", ["about apples"]),
        ("hidden about", ["about pears"]),
        ("plums", []),
    ]:
        person.page.fill("#search", words)
        assert person.titles == found
    assert "Nothing found" in person.page.locator("#conversations").inner_text()


def test_one_is_renamed_and_its_new_name_stays(person: Person, parrot: RunningServer) -> None:
    person.asks("first")
    wait_until_kept(person, 2)
    person.page.get_by_role("button", name="Rename first").click()
    person.page.get_by_role("textbox", name="Title").fill("A better name")
    person.page.keyboard.press("Enter")
    expect(person.page.locator("#title")).to_have_text("A better name")
    person.asks("second")
    wait_until_kept(person, 4)
    [record] = records(person)
    kept = httpx.get(f"{parrot.url}/v1/conversations/{record['key']}").json()
    assert kept["metadata"]["title"] == "A better name"
    come_back(person, "A better name")


def test_one_is_deleted_after_a_question(person: Person, parrot: RunningServer) -> None:
    person.asks("to be deleted")
    wait_until_kept(person, 2)
    [record] = records(person)
    dialog = person.page.locator("dialog")
    person.page.get_by_role("button", name="Delete to be deleted").click()
    person.clicks("Leave it", dialog)
    assert person.titles == ["to be deleted"]
    person.page.get_by_role("button", name="Delete to be deleted").click()
    person.clicks("Delete it", dialog)
    expect(person.page.locator("#conversations .title")).to_have_count(0)
    assert person.said == []
    assert httpx.get(f"{parrot.url}/v1/conversations/{record['key']}").status_code == 404


def test_one_is_exported_in_two_forms(person: Person, tmp_path: Path) -> None:
    person.asks("<think>hm</think>ex/port ..\\me")
    wait_until_kept(person, 2)
    texts = {}
    for form, ending in [("Markdown, as it is shown", "md"), ("JSON, with all branches", "json")]:
        person.page.get_by_role("button", name="Export").click()
        with person.page.expect_download() as begun:
            person.clicks(form, person.page.locator("dialog"))
        assert begun.value.suggested_filename == f"think-hm-think-ex-port-me.{ending}"
        begun.value.save_as(tmp_path / ending)
        texts[ending] = (tmp_path / ending).read_text()
    assert "## Answer\n\n> hm\n\nex/port ..\\me" in texts["md"]
    assert [each["role"] for each in json.loads(texts["json"])["messages"]] == ["user", "assistant"]


def test_a_picture_that_is_still_being_read_goes_with_its_question(
    seeing: RunningServer, person_at: PersonAt
) -> None:
    person = person_at(seeing)
    person.page.evaluate("""() => {
      const read = FileReader.prototype.readAsDataURL;
      window.goOn = new Promise(resolve => { window.readNow = resolve });
      FileReader.prototype.readAsDataURL = function (file) { window.goOn.then(() => read.call(this, file)) };
    }""")
    person.chooses_picture("owl.png", saved(picture(28, 28), "PNG"))
    person.writes("look")
    assert person.page.locator(".message").count() == 0
    person.page.evaluate("readNow()")
    expect(person.page.locator(".message.user .picture")).to_have_count(1)
    person.waits()


def test_pictures_are_chosen_dropped_pasted_and_kept(
    seeing: RunningServer, person_at: PersonAt
) -> None:
    person = person_at(seeing)
    png = saved(picture(56, 28), "PNG")
    person.chooses_picture("a.png", png)
    for event in ("drop", "paste"):
        person.page.evaluate(
            """async ([url, kind]) => {
              const transfer = new DataTransfer();
              const bytes = Uint8Array.from(atob(url.split(",")[1]), (character) => character.charCodeAt(0));
              transfer.items.add(new File([bytes], `${kind}.png`, { type: "image/png" }));
              const field = kind === "drop" ? "dataTransfer" : "clipboardData";
              const init = { bubbles: true, cancelable: true, [field]: transfer };
              const made = kind === "drop" ? new DragEvent("drop", init) : new ClipboardEvent("paste", init);
              document.querySelector("#prompt").dispatchEvent(made);
            }""",
            [data_url(28, 28), event],
        )
    expect(person.page.locator("#pictures img")).to_have_count(3)
    person.page.get_by_role("button", name="Remove paste.png").click()
    person.asks("what is it?")
    assert sizes_seen() == [(28, 56), (28, 28)]
    assert person.page.locator(".message.user .picture").count() == 2
    wait_until_kept(person, 2)
    come_back(person, "what is it?")
    assert person.page.locator(".message.user .picture").count() == 2
    person.asks("and now?")
    assert sizes_seen() == [(28, 56), (28, 28)]
    first = person.message(0)
    person.clicks("Edit", first)
    person.clicks("Remove image 1", first)
    person.clicks("Send as another branch", first)
    person.waits()
    assert sizes_seen() == [(28, 28)]


def test_text_is_pasted_and_dropped_as_text(person: Person, page: Page) -> None:
    """A spreadsheet gives a picture of its cells beside them."""
    script = """([type, types]) => {
      const transfer = new DataTransfer();
      for (const type of types) transfer.items.add("text", type);
      if (types.length > 1) transfer.items.add(new File(["x"], "cells.png", { type: "image/png" }));
      const init = { bubbles: true, cancelable: true, dataTransfer: transfer, clipboardData: transfer };
      const event = type === "paste" ? new ClipboardEvent(type, init) : new DragEvent(type, init);
      return document.querySelector("#prompt").dispatchEvent(event);
    }"""
    assert page.evaluate(script, ["paste", ["text/plain", "text/html"]])
    assert page.evaluate(script, ["dragover", ["text/plain"]]) and page.evaluate(
        script, ["drop", ["text/plain"]]
    )
    assert page.locator("#notice").inner_text() == ""


def test_what_is_no_picture_and_a_model_that_does_not_see_are_named(
    seeing: RunningServer, parrot: RunningServer, person_at: PersonAt
) -> None:
    person = person_at(seeing)
    person.chooses_picture("<b>.exe", b"MZ", media_type="application/octet-stream")
    expect(person.page.locator("#notice")).to_contain_text(
        "Not a picture that can be sent: <b>.exe"
    )
    person = person_at(parrot)
    assert not person.page.locator("#add-picture").is_visible()
    person.chooses_picture("<b>.exe", b"MZ", media_type="application/octet-stream")
    expect(person.page.locator("#notice")).to_contain_text("This model reads text only")
