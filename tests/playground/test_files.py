"""Files in the playground are uploaded, read, given to Python, searched, cited and deleted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from ouzel.hosted_tools.code_interpreter.containers import Containers
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from ouzel.responses.hosted.kinds import HostedKinds
from tests.api.responses.test_tools import write_call
from tests.api.serving import RunningServer, running_server
from tests.api.vector_stores.setup import EMBEDDER
from tests.hosted_tools.code_interpreter.sandboxes import (
    find_obstacle_in_thread,
    get_tool,
    make_plan,
    skip_without_sandbox,
)
from tests.playground.accessibility import LOOKS, Violations, violations
from tests.playground.chromium import User
from tests.playground.keyboard import KeyboardUser
from tests.playground.pseudo_language import Check, PseudoUser
from tests.playground.states import Look
from tests.playground.stored import wait_until_stored
from tests.prompts.families import QWEN

pytestmark = pytest.mark.release("the playground: files on the server")

PYTHON: dict[str, object] = {"type": "code_interpreter", "container": {"type": "auto"}}
OTTERS = b"# Otters\n\nOtters hold hands while they sleep.\n"
SEARCH = write_call("file_search", {"queries": ["Which animals hold hands?"]})
HOSTILE = '<img src=x onerror="document.title=1">'
MAX_FILE_BYTES = 2**20
TWO_FRAMES = "new Promise((end) => requestAnimationFrame(() => requestAnimationFrame(end)))"


@pytest.fixture(scope="module")
def filing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Starts a server with a store, a model for embeddings and, where it can be made, a sandbox."""
    path: Path = tmp_path_factory.mktemp("filing") / "store.sqlite3"
    containers = None
    if find_obstacle_in_thread(get_tool()) is None:
        containers = Containers(make_plan(), max_containers=16, idle_s=3600)
    with running_server(
        {"max_model_len": 32768},
        chat_template=QWEN,
        output_format=OutputFormat(calls=HERMES, reasoning=THINKING_ONLY),
        store_url=f"sqlite:///{path}",
        hosted=HostedKinds(offers=[PYTHON]),
        containers=containers,
        max_file_bytes=MAX_FILE_BYTES,
        further=(EMBEDDER,),
    ) as server:
        yield server


@pytest.fixture
def user(page: Page, filing: RunningServer) -> Iterator[User]:
    user = User(page, filing.url)
    user.open()
    yield user
    with filing.client() as http:
        for kind in ("files", "vector_stores", "containers"):
            for each in http.get(f"/v1/{kind}").json()["data"]:
                http.delete(f"/v1/{kind}/{each['id']}")


def attach(user: User, name: str, content: bytes, *, media_type: str = "text/plain") -> None:
    """Attaches a file and waits until it is ready, or has failed."""
    number = user.page.locator("#attachments .file").count()
    user.choose_picture(name, content, media_type=media_type)
    expect(user.page.locator("#attachments .file")).to_have_count(number + 1)
    expect(user.page.locator('#attachments [aria-busy="true"]')).to_have_count(0)


def file_ids(server: RunningServer) -> list[str]:
    with server.client() as http:
        return [each["id"] for each in http.get("/v1/files").json()["data"]]


def make_collection(user: User) -> None:
    user.open_settings()
    user.use(user.page.get_by_role("button", name="Make one from the attached files"))
    expect(user.page.locator(".collection-state")).to_contain_text("can be searched")


def test_a_text_is_uploaded_read_and_deleted_with_its_conversation(
    user: User, filing: RunningServer
) -> None:
    attach(user, "otters.md", OTTERS)
    chip = user.page.locator("#attachments .file")
    assert chip.locator(".file-name").inner_text() == "otters.md"
    assert "46 bytes" in chip.inner_text()
    [file_id] = file_ids(filing)
    user.ask("What is it?")
    assert "Otters hold hands" in user.answer and "otters.md" in user.answer
    wait_until_stored(user, 2)
    user.open()
    user.page.locator("#conversations .title").click()
    expect(user.message(0).locator(".file")).to_contain_text("46 bytes")
    user.ask("Once more")
    assert user.page.locator(".note.error").count() == 0
    user.click("Request")
    shown = user.page.locator(".request").inner_text()
    body = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])
    assert body["messages"][0]["content"][0]["file"]["file_id"] == file_id
    user.page.keyboard.press("Escape")
    user.page.get_by_role("button", name="Delete What is it?").click()
    expect(user.page.locator("#conversations .title")).to_have_count(0)
    assert file_ids(filing) == [file_id]  # it can be taken back
    user.page.goto("about:blank")
    while file_ids(filing):
        user.page.wait_for_timeout(20)


def test_a_file_is_deleted_when_it_is_taken_away_or_by_a_click(
    user: User, filing: RunningServer
) -> None:
    attach(user, "a.txt", b"one")
    user.page.get_by_role("button", name="Remove a.txt").click()
    while file_ids(filing):
        user.page.wait_for_timeout(20)
    attach(user, "b.txt", b"two")
    user.ask("Hello")
    user.click("Delete b.txt from the server", user.message(0))
    user.click("Delete it", user.page.locator("dialog"))
    expect(user.message(0).locator(".file.gone")).to_contain_text("Deleted")
    assert file_ids(filing) == []
    user.ask("And now?")
    assert user.page.locator(".note.error").count() == 0


def test_errors_are_shown_at_the_file(user: User, filing: RunningServer) -> None:
    attach(user, "long.txt", b"x" * (MAX_FILE_BYTES + 1))
    chip = user.page.locator("#attachments .file")
    assert "too large: the server takes at most 1.0 MB" in chip.inner_text()
    user.send("Hello")
    expect(user.page.locator("#notice")).to_contain_text("Nothing was sent")
    assert user.page.locator(".message").count() == 0
    user.page.get_by_role("button", name="Remove long.txt").click()
    answer = json.dumps({"error": {"message": "all files together are too large"}})

    def refuse(route: Route) -> None:
        route.fulfill(status=413, body=answer, content_type="application/json")

    user.page.route("**/v1/files", refuse)
    attach(user, "b.txt", b"two")
    assert chip.locator(".file-state").inner_text() == "all files together are too large"
    assert violations(user.page) == []
    user.page.unroute("**/v1/files")
    user.page.get_by_role("button", name="Try b.txt again").click()
    expect(chip.locator(".file-state")).to_contain_text("3 bytes")
    while len(file_ids(filing)) == 0:  # the card has its size before the file is there
        user.page.wait_for_timeout(20)


def test_files_for_python_go_into_its_sandbox_and_come_out(user: User, tmp_path: Path) -> None:
    skip_without_sandbox()
    attach(user, "sales.xlsx", b"PK\x03\x04\x00\xff", media_type="application/octet-stream")
    code = "open('copy.bin', 'wb').write(open('/mnt/data/sales.xlsx', 'rb').read())"
    user.ask(write_call("python", {"code": code}))
    expect(user.page.locator("#notice")).to_contain_text("Python is on")
    expect(user.message(0).locator(".file")).to_contain_text("For Python")
    with user.page.expect_download() as begun:
        user.page.locator(".new-files").get_by_role("button", name="Download copy.bin").click()
    begun.value.save_as(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"PK\x03\x04\x00\xff"
    with user.page.expect_download() as begun:
        user.page.locator(".citations").get_by_role("button", name="Download copy.bin").click()
    assert begun.value.suggested_filename in ("copy.bin", "copy(1).bin")  # Firefox counts them
    wait_until_stored(user, 2)
    user.open()
    user.page.locator("#conversations .title").click()
    expect(user.message(0).locator(".file")).to_contain_text("For Python")
    user.ask(write_call("python", {"code": "import os\nprint(os.listdir('.'))"}))
    assert "sales.xlsx" in user.page.locator(".message.assistant").last.inner_text()


def test_a_file_can_be_for_the_model_and_for_python(user: User) -> None:
    skip_without_sandbox()
    attach(user, "otters.md", OTTERS)
    choice = user.page.get_by_role("combobox", name="Use of otters.md")
    choice.select_option("The model reads it, and for Python")
    expect(user.page.locator("#attachments .file-state")).to_contain_text("tokens")
    code = "print(open('/mnt/data/otters.md').read().upper())"
    user.ask(write_call("python", {"code": code}))
    assert "OTTERS HOLD HANDS" in user.page.locator(".message.assistant").last.inner_text()
    assert "Files for Python" not in user.message(0).inner_text()
    user.click("Request")
    shown = user.page.locator(".request").inner_text()
    body = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])
    [file_id] = body["tools"][0]["container"]["file_ids"]
    assert body["input"][0]["content"][0] == {
        "type": "input_file",
        "file_id": file_id,
        "filename": "otters.md",
    }


def test_a_collection_is_made_searched_cited_and_deleted(user: User) -> None:
    attach(user, "otters.md", OTTERS)
    attach(user, "broken.pdf", b"%PDF-1.4 broken", media_type="application/pdf")
    make_collection(user)
    expect(user.page.locator("#set-collection")).to_be_focused()
    state = user.page.locator(".collection-state")
    assert "1 of 2 files can be searched." in state.inner_text()
    assert "broken.pdf:" in state.inner_text()
    user.page.get_by_role("button", name="Remove broken.pdf").click()
    user.page.click("#close-settings")
    user.ask(SEARCH)
    assert "Otters hold hands" not in user.message(0).inner_text()
    answer = user.page.locator(".message.assistant").last
    link = answer.locator(".footnote a").first
    assert link.inner_text() == "1"
    link.focus()
    card = user.page.locator("#source-card")
    expect(card).to_be_visible()
    quote = "# Otters Otters hold hands while they sleep."
    assert card.inner_text().split("\n") == ["otters.md", quote]
    assert link.get_attribute("aria-describedby") == "source-card"
    user.page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    link.press("Enter")
    expect(answer.locator(".citations li").first).to_be_focused()
    user.click("Back to the text from source 1", answer)
    expect(link).to_be_focused()
    answer.locator(".tool-output summary").click()
    assert "otters.md (" in answer.locator(".tool-output pre").inner_text()
    user.page.click("#toggle-settings")
    user.page.get_by_role("button", name="Delete it").click()
    user.click("Delete it", user.page.locator("dialog"))
    expect(state).to_have_text("The collection is deleted.")
    assert user.page.locator("#set-collection").input_value() == ""


def test_a_server_without_embeddings_or_a_store_offers_less(
    parrot: RunningServer, page: Page
) -> None:
    facts = httpx.get(parrot.url).json()
    assert (facts["searches_files"], facts["max_file_bytes"]) == (False, MAX_FILE_BYTES)
    user = User(page, parrot.url)
    user.open()
    user.open_settings()
    assert user.page.locator("#set-collection").count() == 0
    with running_server() as storeless:
        assert httpx.get(storeless.url).json()["max_file_bytes"] is None
        user = User(page, storeless.url)
        user.open()
        attach(user, "otters.md", b"Otters hold hands.")  # goes along with the message
        user.ask("What is it?")
        assert "Otters hold hands" in user.answer
        assert user.message(0).locator(".file-name").inner_text() == "otters.md"


def test_hostile_names_of_files_are_short_texts(user: User, filing: RunningServer) -> None:
    names = [HOSTILE, "a\u202egnp.exe\u2066.txt", "n" * 5000 + ".csv", "..", "\u200f"]
    for name in names:
        attach(user, name, b"text")
    shown = user.page.locator("#attachments .file-name").all_inner_texts()
    assert shown[:2] == [HOSTILE.replace("/", "_"), "agnp.exe.txt"]
    assert shown[2].endswith("nnn.csv") and len(shown[2]) <= 41
    assert shown[3:] == ["file", "file"]
    assert user.page.locator("#attachments .failed").count() == 0
    user.ask("look")
    assert user.page.locator(".messages img").count() == 0
    assert user.page.title() != "1"
    with filing.client() as http:
        stored = [each["filename"] for each in http.get("/v1/files").json()["data"]]
    assert all(len(name.encode()) <= 200 and name.isprintable() for name in stored)
    assert user.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_sources_are_texts_and_lead_to_pages_only(user: User) -> None:
    script = """async ([text, address]) => {
      const { footnotesOf } = await import("/playground/modules/chat/footnotes.js");
      const { CitationsView } = await import("/playground/modules/chat/citations_view.js");
      const { renderMarkdown } = await import("/playground/modules/markdown/view.js");
      const prose = document.createElement("div");
      renderMarkdown("One 【1】 two 【2】 three 【9】 `【1】` [【1】](https://a.example/)", prose);
      const sources = [
        { type: "url_citation", url: address, title: text, marker: "【1】" },
        { type: "file_citation", filename: text, file_id: text, marker: "【2】" },
      ];
      const hosted = [{ output: `Cite.\\n\\n【1】 ${text}\\n${text} is quoted` }, { output: null }];
      const view = new CitationsView(prose, () => {});
      view.footnotes = footnotesOf(sources, hosted);
      view.link();
      const thread = document.querySelector("#thread");
      thread.replaceChildren(prose, view.list());
      prose.querySelector(".footnote a").focus();
      const made = [...document.querySelectorAll("#thread, #source-card")];
      return {
        quote: document.querySelector("#source-card .source-quote").textContent,
        text: prose.textContent,
        links: [...document.querySelectorAll(".citations a")].map((each) => each.href),
        elements: made.flatMap((each) => [...each.querySelectorAll("img, script")]).length,
      };
    }"""
    for address in ("javascript:alert(1)", "data:text/html,x", HOSTILE, "mailto:a@b.c", ""):
        found = user.page.evaluate(script, [HOSTILE, address])
        assert found["links"] == [] and found["elements"] == 0, address
        assert found["text"] == "One 1 two 2 three 【9】 【1】 【1】"
    found = user.page.evaluate(script, ["Otters", "https://otters.example/a?b"])
    assert found["links"] == ["https://otters.example/a?b"]
    assert found["quote"] == "Otters is quoted"
    link = user.page.locator(".citations a")
    assert link.get_attribute("rel") == "noopener noreferrer"
    assert link.get_attribute("referrerpolicy") == "no-referrer"


def walk_through_files(user: User, look: Look) -> None:
    page = user.page
    attach(user, "otters.md", OTTERS)
    attach(user, "table.csv", b"a,b\n1,2\n")
    look("attached")
    make_collection(user)
    look("collection")
    user.close_settings()
    user.ask(SEARCH)
    page.mouse.move(0, 0)
    page.evaluate("document.querySelector('#thread').scrollTop = 1e6")
    footnote = page.locator(".footnote a").first
    user.reach(footnote)
    page.evaluate(TWO_FRAMES)  # the focus may scroll the page
    expect(page.locator("#source-card")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#source-card")).to_be_hidden()
    user.use(footnote)
    expect(page.locator(".citations li").first).to_be_focused()
    user.click("Back to the text from source 1", page.locator(".citations"))
    expect(page.locator("#source-card")).to_be_visible()
    look("answer")


def test_every_text_about_files_is_translated(page: Page, filing: RunningServer) -> None:
    user = PseudoUser(page, filing.url)
    user.open()
    look = Check(user, ".file-name", ".file-sign", "#source-card", ".source-name")
    walk_through_files(user, look)
    assert look.found == {}


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_files_and_sources_obey_the_rules_of_accessibility(
    user: User, width: int, scheme: Literal["light", "dark"]
) -> None:
    page = user.page
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    user.open()
    look = Violations(page)
    walk_through_files(user, look)
    assert look.found == {}


@pytest.mark.release("the playground without a pointer, in each of its states")
def test_files_are_used_by_keys_alone(page: Page, filing: RunningServer) -> None:
    user = KeyboardUser(page, filing.url)
    user.open()
    walk_through_files(user, lambda state: None)
