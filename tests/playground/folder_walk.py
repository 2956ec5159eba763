"""Files conversations into folders, and gives them tags, as a user does."""

from playwright.sync_api import Locator, expect

from tests.playground.chromium import User
from tests.playground.states import Look


def row(user: User, title: str) -> Locator:
    """Returns the row of a conversation in the list."""
    return user.page.locator("#conversations li", has_text=title)


def folder(user: User, name: str) -> Locator:
    """Returns a folder of the list."""
    return user.page.locator("#conversations .folder", has=user.page.get_by_text(name, exact=True))


def open_filing(user: User, title: str) -> Locator:
    """Opens the dialog for the folder and the tags of a conversation."""
    place = row(user, title)
    user.point_at(place.locator(".title"))
    user.use(place.locator(".row-tools .file"))
    expect(user.page.locator("#filing-folder")).to_be_focused()
    return user.page.locator("dialog[open]")


def move_to_new_folder(user: User, title: str, name: str) -> None:
    """Moves a conversation into a folder that is not there yet."""
    dialog = open_filing(user, title)
    user.choose("#filing-folder", "new")
    user.write("#filing-name", name)
    user.page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)


def add_tag(user: User, tag: str) -> None:
    """Adds a tag in the dialog."""
    user.write("#filing-tag", tag)
    user.page.keyboard.press("Enter")
    expect(user.page.locator("#filing-tag")).to_have_value("")


def walk_through_folders(user: User, look: Look) -> None:
    """Files, tags, finds, renames and unfiles the newest of two conversations."""
    page = user.page
    user.open()
    for text in ("about otters", "about herons"):
        user.ask(text)
        page.keyboard.press("Alt+KeyN")
    page.keyboard.press("Alt+KeyF")
    dialog = open_filing(user, "herons")
    look("no folder yet")
    user.choose("#filing-folder", "new")
    expect(page.locator("#filing-name")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.locator(".fault")).not_to_be_empty()
    look("a folder without a name")
    user.write("#filing-name", "Birds")
    add_tag(user, "wild life")
    add_tag(user, "water")
    look("two tags")
    user.use(dialog.locator(".tag button").first)
    expect(page.locator("#filing-tag")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(folder(user, "Birds").locator("li")).to_have_count(1)
    look("a folder")
    user.use(page.locator("#conversations .tag"))
    expect(page.locator("#search")).to_have_value("#water")
    expect(page.locator("#conversations .title")).to_have_count(1)
    look("conversations with a tag")
    user.write("#search", "")
    user.use(folder(user, "Birds").locator(".fold"))
    expect(folder(user, "Birds").locator("li")).to_have_count(0)
    look("a folded folder")
    head = folder(user, "Birds").locator(".folder-head")
    user.point_at(head.locator(".fold"))
    user.use(head.locator(".row-tools button").nth(1))
    look("a new name for a folder")
    page.keyboard.insert_text("Waders")
    page.keyboard.press("Enter")
    expect(folder(user, "Waders").locator(".fold")).to_be_focused()
    head = folder(user, "Waders").locator(".folder-head")
    user.point_at(head.locator(".fold"))
    user.use(head.locator(".row-tools button").last)
    expect(page.locator("#conversations .folder")).to_have_count(0)
    look("a folder is gone")
    user.use(page.locator("#notice .action"))
    expect(folder(user, "Waders").locator(".fold")).to_be_focused()
