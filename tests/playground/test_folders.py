"""Conversations are moved into folders, by a dialog or with the pointer, and stay there."""

from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.api.serving import RunningServer, running_server
from tests.playground.accessibility import Violations
from tests.playground.chromium import User, browser_name
from tests.playground.folder_walk import (
    add_tag,
    folder,
    move_to_new_folder,
    open_filing,
    row,
    walk_through_folders,
)
from tests.playground.keyboard import KeyboardUser
from tests.playground.stored import records, wait_until_stored

# Fills the browser with conversations of one message; each has a title, and may have labels.
FILL = """async (given) => {
  const { Library } = await import("/playground/modules/storage/library.js");
  const { message } = await import("/playground/modules/chat/conversation.js");
  const library = new Library(null, { onChange: () => {}, onTrouble: console.error });
  const noon = new Date().setHours(0, 0, 1, 0);
  await library.add(given.map((each, index) => ({
    updated: noon - index * 1000, isNamed: true, isPinned: false, activeLeaf: 1, ...each,
    nodes: [{ id: 1, parent: null, message: message("user", { content: `On ${each.title}` }) }],
  })));
  library.records.tellAll();
}"""

# Sends the events of a drag from one element to another, as browsers do.
_DRAG = """(dragged, target) => {
  const dataTransfer = new DataTransfer();
  const send = (node, type) =>
    node.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }));
  send(dragged, "dragstart");
  if (!send(target, "dragover")) send(target, "drop");
  send(dragged, "dragend");
}"""


def labels(user: User) -> dict[str, tuple[object, object]]:
    """Returns the folder and the tags of each stored conversation by its title."""
    return {
        str(record["title"]): (record.get("folder"), record.get("tags")) for record in records(user)
    }


def wait_for_server_labels(server: RunningServer, key: object, text: str | None) -> None:
    """Waits until the server has the labels of a conversation in its metadata."""
    address = f"{server.url}/v1/conversations/{key}"
    while httpx.get(address).json()["metadata"].get("labels") != text:
        pass


def test_a_folder_and_tags_are_on_the_server_and_in_another_browser(
    user: User, parrot: RunningServer, browser: Browser
) -> None:
    page = user.page
    user.ask("about herons")
    wait_until_stored(user, 2)
    dialog = open_filing(user, "herons")
    add_tag(user, "wild life")
    add_tag(user, "#Water")
    add_tag(user, "WATER")
    expect(dialog.locator(".tag")).to_have_count(2)
    page.keyboard.press("Escape")
    assert labels(user) == {"about herons": (None, None)}
    move_to_new_folder(user, "herons", "  Birds\t of  prey ")
    open_filing(user, "herons")
    add_tag(user, "water")
    user.click("Save", dialog)
    expect(row(user, "herons").locator(".tag")).to_have_text(["#water"])
    [record] = records(user)
    assert (record["folder"], record["tags"]) == ("Birds of prey", ["water"])
    wait_for_server_labels(parrot, record["key"], "Birds of prey\nwater")
    user.ask("and on")
    wait_until_stored(user, 4)
    wait_for_server_labels(parrot, record["key"], "Birds of prey\nwater")
    page.reload()
    expect(folder(user, "Birds of prey").locator(".title")).to_have_text(["about herons"])
    context = browser.new_context(service_workers="block")
    other = User(context.new_page(), parrot.url)
    other.page.goto(page.url)
    expect(other.page.locator("#conversations .fold bdi")).to_have_text(["Birds of prey"])
    assert labels(other) == {"about herons": ("Birds of prey", ["water"])}
    context.close()
    open_filing(user, "herons")
    user.choose("#filing-folder", "none")
    user.click("Remove the tag water", dialog)
    user.click("Save", dialog)
    expect(page.locator("#conversations .folder")).to_have_count(0)
    wait_for_server_labels(parrot, record["key"], None)
    assert labels(user) == {"about herons": (None, None)}


def test_a_conversation_is_begun_in_a_folder(user: User, parrot: RunningServer) -> None:
    page = user.page
    page.evaluate(FILL, [{"title": "old", "folder": "Work"}])
    folder(user, "Work").locator(".folder-head").hover()
    user.click("New conversation in Work", folder(user, "Work"))
    expect(page.locator("#prompt")).to_be_focused()
    expect(page.locator("#title")).to_have_text("New conversation in Work")
    folder(user, "Work").locator(".folder-head").hover()
    user.click("Rename the folder Work", folder(user, "Work"))
    page.get_by_role("textbox", name="Name of the folder").fill("Tasks")
    page.keyboard.press("Enter")
    expect(page.locator("#conversations .fold bdi")).to_have_text(["Tasks"])
    user.ask("new one")
    wait_until_stored(user, 2)
    assert labels(user) == {"old": ("Tasks", None), "new one": ("Tasks", None)}
    [key] = [record["key"] for record in records(user) if record["title"] == "new one"]
    wait_for_server_labels(parrot, key, "Tasks")
    page.click("#new")
    expect(page.locator("#title")).to_have_text("New conversation")
    user.ask("outside")
    while "outside" not in labels(user):
        page.wait_for_timeout(20)
    assert labels(user)["outside"] == (None, None)


def test_a_folder_is_renamed_joined_with_another_and_deleted(user: User) -> None:
    page = user.page
    given = [
        {"title": "one", "folder": "Work", "tags": ["a"]},
        {"title": "two", "folder": "Work", "isPinned": True},
        {"title": "three", "folder": "play 10"},
        {"title": "four", "folder": "Play 9"},
        {"title": "five", "isPinned": True},
    ]
    page.evaluate(FILL, given)
    names = page.locator("#conversations .fold bdi")
    expect(names).to_have_text(["Play 9", "play 10", "Work"])
    user.expect_titles("five")  # folders are folded at first
    page.get_by_role("button", name="Work 2 conversations").click()
    user.expect_titles("two", "one", "five")
    assert page.locator("#conversations .group").last.inner_text() == "Pinned"
    head = folder(user, "Work").locator(".folder-head")
    head.hover()
    user.click("Rename the folder Work", head)
    page.keyboard.type("\u200b ")
    page.keyboard.press("Enter")
    expect(names).to_have_text(["Play 9", "play 10", "Work"])
    user.click("Rename the folder Work", head)
    page.keyboard.type("PLAY 9")
    page.keyboard.press("Enter")
    expect(names).to_have_text(["Play 9", "play 10"])
    user.expect_titles("two", "one", "four", "five")
    page.reload()
    user.expect_titles("two", "one", "four", "five")
    folder(user, "Play 9").locator(".folder-head").hover()
    user.click("Delete the folder Play 9; its conversations stay", folder(user, "Play 9"))
    expect(names).to_have_text(["play 10"])
    user.expect_titles("two", "five", "one", "four")
    assert labels(user)["one"] == (None, ["a"])
    user.click("Undo", page.locator("#notice"))
    expect(folder(user, "Play 9").locator(".fold")).to_be_focused()
    user.expect_titles("two", "one", "four", "five")
    assert labels(user)["one"] == ("Play 9", ["a"])


def drag(user: User, dragged: Locator, target: Locator) -> None:
    """Drags an element to another one.

    The driver of Firefox begins no drag: the function sends the events of the drag there.
    """
    if browser_name(user.page) == "firefox":
        dragged.evaluate(_DRAG, target.element_handle())
    else:
        dragged.drag_to(target)


def test_a_conversation_is_dragged_into_a_folder_and_out_of_it(user: User) -> None:
    page = user.page
    page.evaluate(FILL, [{"title": "one", "folder": "Work"}, {"title": "two"}, {"title": "three"}])
    drag(user, row(user, "two").locator(".title"), folder(user, "Work").locator(".fold"))
    user.expect_titles("three")
    fold = folder(user, "Work").locator(".fold")
    expect(fold.locator(".count")).to_have_text("2")
    fold.click()
    user.expect_titles("one", "two", "three")
    drag(user, row(user, "one").locator(".title"), page.locator("#conversations .group").last)
    user.expect_titles("two", "one", "three")
    assert labels(user) == {"one": (None, None), "two": ("Work", None), "three": (None, None)}
    expect(page.locator(".drop-here")).to_have_count(0)
    drag(user, row(user, "three").locator(".title"), page.locator("#prompt"))
    assert labels(user)["three"] == (None, None)


def test_tabs_stay_in_step_and_an_undo_brings_folder_and_tags_back(
    page: Page, user_at: Callable[[RunningServer], User]
) -> None:
    with running_server() as server:  # it has no store
        user = user_at(server)
        other = User(page.context.new_page(), server.url)
        other.open()
        page.bring_to_front()
        user.ask("about herons")
        wait_until_stored(user, 2)
        move_to_new_folder(user, "herons", "Birds")
        expect(folder(other, "Birds").locator(".count")).to_have_text("1")
        open_filing(user, "herons")
        add_tag(user, "water")
        user.click("Save", page.locator("dialog"))
        expect(row(other, "herons").locator(".tag")).to_have_text(["#water"])
        folder(other, "Birds").locator(".folder-head").hover()
        other.click("Rename the folder Birds", folder(other, "Birds"))
        other.page.keyboard.type("Waders")
        other.page.keyboard.press("Enter")
        expect(page.locator("#conversations .fold bdi")).to_have_text(["Waders"])
        folder(user, "Waders").locator(".fold").click()
        page.get_by_role("button", name="Delete about herons").click()
        expect(page.locator("#conversations .folder")).to_have_count(0)
        expect(other.page.locator("#conversations .folder")).to_have_count(0)
        page.get_by_role("button", name="Undo").click()
        expect(folder(user, "Waders").locator(".title")).to_be_focused()
        expect(folder(other, "Waders").locator(".count")).to_have_text("1")
        assert labels(user) == {"about herons": ("Waders", ["water"])}


@pytest.mark.right_to_left
def test_folders_are_used_by_keys_alone_on_a_narrow_page_from_right_to_left(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    look = Violations(page)
    with running_server() as server:
        walk_through_folders(KeyboardUser(page, server.url), look)
    assert look.found == {}
