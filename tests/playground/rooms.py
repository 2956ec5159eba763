"""Walks through the parts of the playground beside the chat, each with the server that it needs.

They are like the walks in `states.py`. A walk opens its page itself, and uses no pointer where the
user has none.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

from playwright.sync_api import FilePayload, Locator, Page, expect

from ouzel.config import ServerConfig
from ouzel.config.media_hosts import read_media_hosts
from ouzel.responses.hosted.kinds import HostedKinds
from ouzel.responses.hosted.mcp_kind import McpKind
from tests.api.pulling import ScriptedPuller
from tests.api.serving import RunningServer, running_server
from tests.playground.base_model import serving_base_model
from tests.playground.chromium import User
from tests.playground.folder_walk import walk_through_folders
from tests.playground.reading import serving_voice, walk_through_reading
from tests.playground.speech_walk import serving_speech, walk_through_speech
from tests.playground.states import Look, Walk
from tests.playground.two_models import ADMIN_KEY, serving_two_models

_KEY = "sk-right"
_ERRORS = ".note.error span"  # texts of the server


@dataclass(frozen=True)
class Room:
    """A part of the page: a server for it, and a walk through its states."""

    serving: Callable[[], AbstractContextManager[RunningServer]]
    walk: Walk
    data: tuple[str, ...] = ()  # selectors of elements with data, for the test of translations


def _json_file(name: str, content: object) -> FilePayload:
    text = content if isinstance(content, str) else json.dumps(content)
    return FilePayload(name=name, mimeType="application/json", buffer=text.encode())


def _dialog(page: Page) -> Locator:
    """Returns the newest dialog, once it is there."""
    found = page.locator("dialog[open]").last
    found.wait_for()
    return found


def _close_dialogs(page: Page) -> None:
    for number in range(page.locator("dialog[open]").count(), 0, -1):
        page.keyboard.press("Escape")
        expect(page.locator("dialog[open]")).to_have_count(number - 1)


def _show_list(user: User) -> None:
    user.page.keyboard.press("Alt+KeyF")
    user.wait_until("document.activeElement.id === 'search'")


def _compare(user: User, look: Look) -> None:
    page = user.page
    user.open()
    user.use(page.locator("#open-compare"))
    columns = page.locator(".column:visible")
    expect(columns.first).to_be_visible()
    look("an empty comparison")
    user.send("hello")
    user.wait_for_answer()
    look("two answers")
    tabs = page.locator(".column-tabs button")
    if tabs.first.is_visible():  # a phone shows one column
        user.use(tabs.nth(1))
        expect(tabs.nth(1)).to_have_attribute("aria-pressed", "true")
        look("the other column")
    column = columns.last
    user.click("Settings", column)
    expect(page.locator("#set-temperature")).to_be_visible()
    look("settings of a column")
    user.close_settings()
    user.use(column.locator(".column-model"))
    _dialog(page)
    look("models for a column")
    _close_dialogs(page)
    user.send("begin |fail|")
    user.wait_for_answer()
    expect(column.locator(".note.error")).to_be_visible()
    look("failed answers")
    user.click("Go on with this one", column)
    expect(page.locator("#compare")).to_be_hidden()
    look("one conversation")


def _complete(user: User, look: Look) -> None:
    page = user.page
    box = page.locator("#completion")
    state = box.locator("p[role=status]")
    user.open()
    look("an empty text")
    user.open_settings()
    user.switch("#set-showsTokens")
    user.write("#set-max_tokens", "6")
    user.close_settings()
    user.write("#completion-text", "abc")
    user.click("Continue", box)
    expect(state).not_to_be_empty()
    look("a text that goes on")
    user.reach(box.locator(".tokens"))
    page.keyboard.press("ArrowRight")
    expect(box.locator(".token-card")).to_be_visible()
    look("a token")
    page.keyboard.press("Escape")
    user.click("Undo", box)
    expect(page.locator("#completion-text")).to_have_value("abc")
    user.click("Redo", box)
    expect(page.locator("#completion-text")).to_have_value("abcabcabc")
    user.click("Fill in at the cursor", box)
    expect(state).not_to_be_empty()
    look("a text with another middle")
    user.open_settings()
    user.write("#set-temperature", "9")
    user.close_settings()
    user.click("Continue", box)
    expect(box.locator("p[role=alert]")).to_be_visible()
    look("a refused text")
    user.click("Clear", box)
    expect(page.locator("#completion-text")).to_have_value("")


def _manage(user: User, look: Look) -> None:
    """Imports, searches, pins and deletes conversations."""
    page = user.page
    user.open()
    user.ask("to be found")
    _show_list(user)
    user.use(page.locator("#manage"))
    dialog = _dialog(page)
    look("import and export")
    message = {"role": "user", "content": "About otters"}
    own = {"title": "imported", "tree": {"nodes": [{"id": 1, "message": message}]}}
    files = (_json_file("own.json", own), _json_file("broken.json", "{"))
    user.choose_files("#import-picker", "#import-picker", *files)
    expect(dialog.locator(".manage-state p")).to_have_count(2)
    look("an import")
    with page.expect_download():
        user.click("Export all", dialog)
    expect(dialog.locator(".manage-state p")).to_have_count(1)
    look("an export")
    user.click("Delete all", dialog)
    question = _dialog(page)
    look("a question before all are deleted")
    _close_dialogs(page)
    _show_list(user)
    user.write("#search", "otters")
    expect(page.locator("#conversations .snippet mark")).to_be_visible()
    look("a hit with its words")
    user.write("#search", "")
    expect(page.locator("#conversations .snippet")).to_have_count(0)
    first = page.locator("#conversations li").last
    user.point_at(first.locator(".title"))
    user.use(first.locator(".row-tools button").first)
    expect(page.locator("#conversations .group")).to_have_count(2)
    look("a pinned conversation")
    user.use(page.locator("#manage"))
    user.click("Delete all", _dialog(page))
    expect(page.locator("dialog[open]")).to_have_count(2)
    question = _dialog(page)
    user.click("Delete them", question)
    expect(page.locator("#conversations .title")).to_have_count(0)
    look("nothing is left")
    _close_dialogs(page)


def _use_presets(user: User, look: Look) -> None:
    page = user.page
    settings = page.locator("#settings")
    user.open()
    user.open_settings()
    user.write("#set-temperature", "0.7")
    user.click("Save these settings", settings)
    _dialog(page)
    look("the name of a preset")
    user.write("#preset-name", "warm")
    page.keyboard.press("Enter")
    expect(page.locator("#preset")).to_have_value("warm")
    look("a preset")
    user.choose("#begin-with", "preset:warm")
    user.choose("#preset", "")
    user.choose("#preset", "warm")
    user.click("Delete", settings)
    question = _dialog(page)
    look("a question before a preset is deleted")
    user.click("Delete", question)
    expect(page.locator("#preset option")).to_have_count(1)
    _import_presets(user, look)


def _import_presets(user: User, look: Look) -> None:
    page = user.page
    opener = "#settings button:has(+ #preset-file)"
    presets = {"far": {"system": "Hello.", "surprise": 1}}
    file = {"format": "ouzel.presets", "presets": presets}
    user.choose_files(opener, "#preset-file", _json_file("presets.json", file))
    expect(page.locator("#preset option")).to_have_count(2)
    look("an imported preset")
    user.open()  # Firefox tells its driver of the first dialog of a field only
    user.open_settings()
    user.choose_files(opener, "#preset-file", _json_file("presets.json", "{"))
    expect(page.locator(".preset-state.fault")).to_be_visible()
    look("a file that has no presets")


@contextmanager
def _serving_key_holders() -> Iterator[RunningServer]:
    with running_server(config=ServerConfig(api_key=(_KEY,))) as server:
        yield server


def _give_key(user: User, look: Look) -> None:
    page = user.page
    page.goto(user.url)
    dialog = _dialog(page)
    look("a key is asked for")
    user.write("#api-key", "sk-wrong")
    page.keyboard.press("Enter")
    expect(dialog.locator(".fault")).to_be_visible()
    look("a wrong key")
    page.keyboard.press("Escape")
    expect(page.locator("#failure")).to_be_visible()
    look("no key")
    user.use(page.locator("#failure button"))
    _dialog(page)
    user.write("#api-key", _KEY)
    page.keyboard.press("Enter")
    page.wait_for_selector("body.ready")
    look("a page with a key")


@contextmanager
def _serving_for_admins() -> Iterator[RunningServer]:
    with serving_two_models(admin_key=ADMIN_KEY, puller=ScriptedPuller()) as server:
        yield server


def _change_models(user: User, look: Look) -> None:
    page = user.page
    user.open()
    user.use(page.locator("#model"))
    dialog = _dialog(page)
    state = dialog.locator(".models-state")
    expect(dialog.locator(".models > li")).to_have_count(2)
    look("models")
    user.write("#admin-key", "wrong")
    page.keyboard.press("Enter")
    user.use(dialog.locator(".models > li").last.locator("[data-action^=move]"))
    expect(page.locator("#admin-key")).to_be_visible()
    look("a wrong key")
    user.write("#admin-key", ADMIN_KEY)
    page.keyboard.press("Enter")
    expect(page.locator("#pull-name")).to_be_focused()
    look("models for the holder of the key")
    user.write("#pull-name", "owner/model")
    page.keyboard.press("Enter")
    expect(dialog.locator("progress[value]")).to_be_visible()
    look("a download")
    user.click("Stop the download", dialog)
    expect(page.locator("#pull-name")).to_be_focused()
    look("a stopped download")
    user.write("#pull-name", "owner/large")
    page.keyboard.press("Enter")
    expect(state).to_have_class("models-state fault")
    look("a full disk")
    user.use(dialog.locator(".models > li").last.locator("[data-action^=move]"))
    expect(dialog.locator(".models > li")).to_have_count(1)
    look("a model fewer")
    user.use(dialog.locator(".model-name"))
    expect(page.locator("dialog")).to_have_count(0)
    expect(page.locator("#model")).to_be_focused()


@contextmanager
def _serving_own_tools() -> Iterator[RunningServer]:
    mcp = McpKind({}, read_media_hosts(("127.0.0.1",)), timeout_s=60.0, max_answer_bytes=10**6)
    with running_server(hosted=HostedKinds((mcp,), takes_mcp_urls=True)) as server:
        yield server


def _add_mcp_server(user: User, look: Look) -> None:
    page = user.page
    user.open()
    user.open_settings()
    look("no server")
    for _ in range(2):
        user.write("#mcp-label", "own")
        user.write("#mcp-url", "http://127.0.0.1:1/mcp")
        user.write("#mcp-key", "secret")
        user.click("Add this server", page.locator("#settings"))
        expect(page.locator("#mcp-label")).to_be_focused()
    expect(page.locator(".mcp-form .fault")).not_to_be_empty()
    look("a server that is there already")
    user.use(page.locator(".mcp-servers button"))
    expect(page.locator("#mcp-label")).to_be_focused()


def _get_no_answer(user: User, look: Look) -> None:
    """Sees answers that fail, and addresses of conversations that are not here."""
    page = user.page
    user.open()
    user.open_settings()
    user.write("#set-stop", "\n".join("abcdefghij" * 7))
    user.close_settings()
    user.ask("refused")
    expect(page.locator(".note.error")).to_be_visible()
    look("a refused question")
    user.open_settings()
    user.write("#set-stop", "")
    user.close_settings()
    user.ask("answered")
    look("a failed answer that stays in sight")
    user.ask("begin |fail|")
    expect(page.locator(".note.error")).to_have_count(2)
    look("an answer that broke off")
    busy = {"status": 429, "body": "{}", "headers": {"retry-after": "3000"}}
    page.route("**/v1/chat/completions", lambda route: route.fulfill(**busy))
    user.send("too many")
    expect(page.locator(".note.wait")).to_be_visible()
    look("a busy server")
    user.click("Stop")
    user.wait_for_answer()
    look("no more tries")
    page.goto(f"{user.url}/#/c/unknown")
    expect(page.locator("#lost")).to_be_visible()
    look("an address of nothing")
    user.use(page.locator("#lost button"))
    expect(page.locator("#welcome")).to_be_visible()


def _read_figures(user: User, look: Look) -> None:
    page = user.page
    page.goto(f"{user.url}/playground/figures.html")
    expect(page.locator("#key")).to_be_focused()
    look("a key is asked for")
    user.write("#key", "sk-wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#key-trouble")).not_to_be_empty()
    look("a wrong key")
    user.write("#key", _KEY)
    page.keyboard.press("Enter")
    page.wait_for_selector("body.ready")
    expect(page.locator("#key-form")).to_be_hidden()
    look("figures")
    user.use(page.locator(".chart summary").first)
    user.reach(page.locator(".chart svg").first)
    page.keyboard.press("ArrowLeft")
    look("a table and a time")
    user.use(page.locator("#theme"))
    page.route("**/metrics", lambda route: route.abort())
    expect(page.locator("#state")).to_have_class("trouble")
    look("no server")


ROOMS = {
    "comparison": Room(serving_two_models, _compare, (_ERRORS,)),
    "completion": Room(
        partial(serving_base_model, max_model_len=4096),
        _complete,
        (".copy", "#completion p[role=alert]"),
    ),
    "import and export": Room(running_server, _manage, (".snippet",)),
    "folders": Room(running_server, walk_through_folders, ("#filing-folder option",)),
    "speech": Room(serving_speech, walk_through_speech, (".file-sign",)),
    "reading": Room(serving_voice, walk_through_reading, ("#set-voice option",)),
    "presets": Room(running_server, _use_presets, ("#preset option", ".preset-state")),
    "API key": Room(_serving_key_holders, _give_key, ("dialog .fault",)),
    "models": Room(_serving_for_admins, _change_models, (".models-state.fault",)),
    "own MCP servers": Room(_serving_own_tools, _add_mcp_server, (".mcp-servers small[dir]",)),
    "failures": Room(running_server, _get_no_answer, (_ERRORS,)),
    "figures": Room(_serving_key_holders, _read_figures),
}
