"""Tags and folders are found, exported and imported, and their names are never more than text."""

import json
from pathlib import Path

from playwright.sync_api import expect

from tests.playground.chromium import User
from tests.playground.conversation_files import OPEN_WEBUI
from tests.playground.folder_walk import add_tag, folder, move_to_new_folder, open_filing, row
from tests.playground.stored import wait_until_stored
from tests.playground.test_folders import FILL, labels
from tests.playground.test_hostile_texts import ATTEMPTS, untouched
from tests.playground.test_import import choose

_NAMES = """async (texts) => {
  const { folderName, tagName } = await import("/playground/modules/storage/labels.js");
  return texts.map((text) => [folderName(text), tagName(text)]);
}"""
# Names as they are written, and the folder and the tag of each
_CUT = {
    "": ("", ""),
    " \t\u3000\n": ("", ""),
    "\u200b\u2060\u00ad": ("", ""),
    "\u202e\u2066": ("", ""),
    "\u0301": ("", ""),
    "##": ("##", ""),
    "#two  words ": ("#two words", "two-words"),
    "\u202egpj.exe\u202c": ("gpj.exe", "gpj.exe"),
    "a\u2028b\0c": ("a b c", "a-b-c"),
    "e\u0301t\u00e9": ("\u00e9t\u00e9", "\u00e9t\u00e9"),
    "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645": (
        "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    )
    * 2,
    "👩\u200d🔬": ("👩\u200d🔬", "👩\u200d🔬"),
    "😀" * 70: ("😀" * 60, "😀" * 40),
    "x" * 10_000: ("x" * 60, "x" * 40),
    "constructor": ("constructor", "constructor"),
    "__proto__": ("__proto__", "__proto__"),
}


def test_names_have_a_limit_and_characters_that_can_be_seen(user: User) -> None:
    found = user.page.evaluate(_NAMES, list(_CUT))
    assert {name: tuple(pair) for name, pair in zip(_CUT, found, strict=True)} == _CUT


def test_conversations_are_found_by_tags_and_words(user: User) -> None:
    page = user.page
    given = [
        {"title": "one", "tags": ["work", "Late"]},
        {"title": "two", "tags": ["workshop"], "folder": "Kept"},
        {"title": "three #5", "tags": ["late"]},
    ]
    page.evaluate(FILL, given)
    user.expect_titles("one", "three #5")
    for text, titles in {
        "#wor": ["one", "two"],
        "#work": ["one"],
        "#WORKSHOP": ["two"],
        "#late": ["one", "three #5"],
        "#late on three": ["three #5"],
        "#late #work": ["one"],
        "#5": ["three #5"],
        "#": ["three #5"],
        "#workshop one": [],
    }.items():
        page.fill("#search", text)
        user.expect_titles(*titles)
    page.fill("#search", "")
    chip = row(user, "three").get_by_role("button", name="Show conversations with #late")
    chip.press("Enter")
    expect(page.locator("#search")).to_have_value("#late")
    user.expect_titles("one", "three #5")
    expect(page.locator("#announcer")).to_have_text("2 found")
    expect(chip).to_be_focused()


def test_a_conversation_has_ten_tags_at_most(user: User) -> None:
    page = user.page
    page.evaluate(FILL, [{"title": "one", "tags": [f"t{number}" for number in range(12)]}])
    dialog = open_filing(user, "one")
    expect(dialog.locator(".tag")).to_have_count(10)
    page.fill("#filing-tag", "more")
    user.click("Add", dialog)
    expect(dialog.get_by_role("alert")).to_have_text("A conversation has at most 10 tags.")
    user.click("Save", dialog)
    expect(page.locator("#filing-tag")).to_have_value("more")  # nothing is lost
    user.click("Remove the tag t3", dialog)
    page.fill("#filing-tag", "\u200b")
    user.click("Add", dialog)
    expect(dialog.get_by_role("alert")).to_have_text(
        "This name has no characters that can be seen."
    )
    page.fill("#filing-tag", "more")
    user.click("Save", dialog)
    expect(row(user, "one").locator(".tag")).to_have_count(10)
    expect(row(user, "one").locator(".tag").last).to_have_text("#more")


def test_exports_have_folder_and_tags_and_imports_take_them(user: User, tmp_path: Path) -> None:
    page = user.page
    user.ask("about herons")
    wait_until_stored(user, 2)
    move_to_new_folder(user, "herons", "Birds")
    open_filing(user, "herons")
    add_tag(user, "water")
    user.click("Save", page.locator("dialog"))
    row(user, "herons").locator(".title").hover()
    page.get_by_role("button", name="Export about herons").click()
    with page.expect_download() as single:
        user.click("JSON, with all branches", page.locator("dialog"))
    page.click("#manage")
    with page.expect_download() as whole:
        user.click("Export all", page.locator("dialog"))
    files = [tmp_path / "single.json", tmp_path / "whole.json"]
    for file, download in zip(files, (single, whole), strict=True):
        download.value.save_as(file)
    for file in files:
        user.click("Delete all", page.locator("dialog"))
        user.click("Delete them", page.locator("dialog").last)
        expect(page.locator("#conversations .title")).to_have_count(0)
        choose(user, (file.name, file.read_bytes()))
        assert labels(user) == {"about herons": ("Birds", ["water"])}


def test_tags_of_open_webui_are_taken_and_its_folders_stay_together(user: User) -> None:
    chat = {**OPEN_WEBUI["chat"], "tags": [{"name": "old"}, "new"]}  # type: ignore[dict-item]
    one = {**OPEN_WEBUI, "chat": chat, "folder_id": "1234567890", "meta": {"tags": ["new", "x y"]}}
    two = {**OPEN_WEBUI, "id": "2", "title": "B", "folder_id": "1234567890", "meta": {"tags": 5}}
    three = {**OPEN_WEBUI, "id": "3", "title": "C", "folder_id": None, "meta": []}
    choose(user, ("chats.json", [one, two, three]))
    assert labels(user) == {
        "Weather": ("Open WebUI 12345678", ["new", "x-y", "old"]),
        "B": ("Open WebUI 12345678", None),
        "C": (None, None),
    }


def test_hostile_names_are_text(user: User) -> None:
    page = user.page
    given = [
        {"title": f"number {index}", "folder": attempt, "tags": [attempt]}
        for index, attempt in enumerate(ATTEMPTS)
    ]
    page.evaluate(FILL, given)
    folds = page.locator("#conversations .fold")
    expect(folds.nth(40)).to_be_attached()  # the first 60 characters of some are the same
    for fold in folds.all():
        fold.click()
    expect(page.locator("#conversations .tag")).to_have_count(len(ATTEMPTS))
    untouched(user)
    assert page.evaluate("document.querySelector('#sidebar').scrollWidth <= innerWidth")
    open_filing(user, "number 0")
    untouched(user)
    page.keyboard.press("Escape")
    page.locator("#conversations .tag").first.click()
    untouched(user)


def test_wrong_values_of_labels_are_left_out(user: User) -> None:
    message = {"role": "user", "content": "x"}
    nodes = [{"id": 1, "message": message}]
    given: list[dict[str, object]] = [
        {"folder": 5, "tags": "no"},
        {"folder": {"a": 1}, "tags": [None, {"name": "x"}, " "]},
    ]
    own = [{**each, "title": f"t{index}", "nodes": nodes} for index, each in enumerate(given)]
    file = {"format": "ouzel.conversations", "conversations": own}
    choose(user, ("own.json", json.dumps(file).encode()))
    assert labels(user) == {"t0": (None, None), "t1": (None, None)}
    user.page.keyboard.press("Escape")
    expect(user.page.locator("#conversations .folder")).to_have_count(0)
    assert folder(user, "5").count() == 0
