"""Cards of attached files show lines, pages and tokens, and name each obstacle at once."""

import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, FilePayload, Locator, Page, Route, expect

from ouzel.config import MediaConfig
from tests.api.seeing import last_prompt, last_request, seeing_server
from tests.api.server_setup import ServerSetup
from tests.api.serving import RunningServer
from tests.playground.accessibility import LOOKS, violations
from tests.playground.chromium import User, skip_unless_chromium
from tests.playground.stored import wait_until_stored
from tests.prompts.media.files import saved
from tests.prompts.media.films import make_film
from tests.prompts.media.papers import coloured, typed
from tests.prompts.vision.pictures import picture

pytestmark = pytest.mark.release("the playground: attachments")

READER = ServerSetup(names=("reader",))  # a model of texts
CODE = FilePayload(name="code.py", mimeType="", buffer=b"def f():\n    return 1\n")
PHOTO = FilePayload(name="photo.png", mimeType="image/png", buffer=saved(picture(84, 56), "PNG"))
PAPER = FilePayload(name="paper.pdf", mimeType="application/pdf", buffer=coloured(2))
WRITTEN = FilePayload(name="written.pdf", mimeType="application/pdf", buffer=typed("Owls"))
SOUND = FilePayload(name="sound.mp3", mimeType="audio/mpeg", buffer=b"ID3\x03")
SEEING, READING = "org/parrot", "reader"


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Starts a server without a store, with a model that sees and a model that does not."""
    media = MediaConfig(max_images=6, max_videos=1)
    directory = tmp_path_factory.mktemp("seeing")
    with seeing_server(directory, media=media, further=(READER,)) as server:
        yield server


@pytest.fixture
def user(page: Page, seeing: RunningServer) -> User:
    user = User(page, seeing.url)
    user.open()
    return user


def film() -> FilePayload:
    return FilePayload(name="film.mp4", mimeType="video/mp4", buffer=make_film(8))


def photo(name: str) -> FilePayload:
    return FilePayload(name=name, mimeType="image/png", buffer=PHOTO["buffer"])


def text(name: str, content: bytes) -> FilePayload:
    return FilePayload(name=name, mimeType="text/plain", buffer=content)


def attach(user: User, *files: FilePayload) -> None:
    user.page.set_input_files("#file-picker", files)


def card(user: User, name: str) -> Locator:
    return user.page.locator("#attachments .file", has_text=name)


def state(user: User, name: str) -> Locator:
    return card(user, name).locator(".file-state")


def line(user: User) -> Locator:
    return user.page.locator("#composer-state")


def first_content(user: User) -> str:
    """Returns the content of the first message in the request of the last answer."""
    user.click("Request")
    shown = user.page.locator("pre.request").inner_text()
    body = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])
    content: str = body["messages"][0]["content"]
    return content


def test_cards_show_lines_pages_and_tokens(user: User) -> None:
    attach(user, CODE, PHOTO, PAPER, film())
    expect(state(user, "code.py")).to_have_text("22 bytes · 2 lines · 53 tokens")
    expect(state(user, "photo.png")).to_contain_text("· 8 tokens")
    expect(state(user, "paper.pdf")).to_contain_text("· 2 pages ·")
    expect(state(user, "film.mp4")).to_contain_text("tokens")
    expect(line(user)).to_contain_text("of 4,096 tokens")
    user.ask("What is it?")
    assert len(last_request().images) > 3
    assert "def f():" in last_prompt()
    expect(line(user)).to_be_empty()


def test_the_sum_counts_the_conversation_and_what_is_written(user: User) -> None:
    user.ask("x" * 500)
    attach(user, text("a.txt", b"hi"))
    user.page.fill("#prompt", "y" * 100)
    # 519 + 501 of the conversation, 31 of the file, 100 of the text
    expect(line(user)).to_have_text("About 1,151 of 4,096 tokens")
    user.page.get_by_role("button", name="Remove a.txt").click()
    expect(line(user)).to_be_empty()
    user.page.fill("#prompt", "y" * 4000)
    expect(line(user)).to_contain_text("About 5,020 of 4,096 tokens: more than the model can take")
    expect(line(user)).to_have_class("muted fault")


def test_too_many_tokens_are_said_at_the_card(user: User) -> None:
    attach(user, text("long.txt", b"word " * 1000))
    why = "Too long: 5,032 tokens. org/parrot takes at most 4,096."
    expect(state(user, "long.txt")).to_have_text(why)
    expect(line(user)).to_have_text(f"Nothing can be sent. long.txt: {why}")
    expect(user.page.locator("#send")).to_have_attribute("aria-disabled", "true")
    user.send("What is it?")
    expect(user.page.locator("#notice")).to_contain_text(f"Nothing was sent. long.txt: {why}")
    assert user.page.locator(".message").count() == 0
    user.page.get_by_role("button", name="Remove long.txt").click()
    expect(user.page.locator("#notice")).to_be_empty()
    assert user.ask("What is it?") == "What is it?"


def test_the_tokens_of_a_very_long_text_are_estimated(user: User) -> None:
    attach(user, text("short.txt", b"line\n" * 10), text("long.txt", b"line\n" * 2_000_000))
    expect(state(user, "long.txt")).to_contain_text("Too long: about 10,000,000 tokens")
    script = """async () => {
      const { lookAt } = await import("/playground/modules/files/contents.js");
      const { numLines, isCut, text } = await lookAt(new File(["line\\n".repeat(2e6)], "a"));
      return [numLines, isCut, text.sample.length, text.scale];
    }"""
    assert user.page.evaluate(script) == [2_000_000, True, 100_000, 100]


def test_a_count_ends_when_the_card_is_taken_away(user: User) -> None:
    user.page.route("**/v1/tokenize", lambda route: None)
    user.page.evaluate("""() => {
      const { fetch } = window;
      window.fetch = (url, options) => {
        if (String(url).endsWith("v1/tokenize")) window.counting = options.signal;
        return fetch(url, options);
      };
    }""")
    attach(user, text("a.txt", b"hi"))
    user.wait_until("window.counting?.aborted === false")
    user.page.get_by_role("button", name="Remove a.txt").click()
    user.wait_until("window.counting.aborted")
    user.page.unroute("**/v1/tokenize")


def test_a_busy_server_leaves_the_tokens_unknown(user: User) -> None:
    def refuse(route: Route) -> None:
        route.fulfill(status=429, json={"error": {"message": "too many texts"}})

    user.page.route("**/v1/tokenize", refuse)
    with user.page.expect_response("**/v1/tokenize"):
        attach(user, text("a.txt", b"hi"))
    expect(state(user, "a.txt")).to_have_text("2 bytes · 1 line")
    user.page.fill("#prompt", "What is it?")
    expect(line(user)).to_have_text("At least 3 of 4,096 tokens")  # an estimate of the text
    user.ask("What is it?")
    assert "hi" in user.answer


def test_a_model_that_cannot_take_a_file_says_so_at_the_card(user: User) -> None:
    attach(user, PHOTO, PAPER, film(), SOUND, text("blob.txt", b"\0\1"))
    expect(state(user, "sound.mp3")).to_have_text(
        "org/parrot cannot hear, and no model of this server turns speech into text."
    )
    kinds = "texts, pictures, videos, PDFs, Word files"
    why = f"org/parrot cannot read this kind of file. It takes {kinds}."
    expect(state(user, "blob.txt")).to_have_text(why)
    for name in ("sound.mp3", "blob.txt"):
        user.page.get_by_role("button", name=f"Remove {name}").click()
    expect(line(user)).to_contain_text("of 4,096 tokens")

    user.choose_model(READING)
    expect(state(user, "photo.png")).to_have_text("reader does not see pictures.")
    expect(state(user, "paper.pdf")).to_contain_text("must be a PDF with text, given 2 pages")
    attach(user, WRITTEN)
    expect(state(user, "written.pdf")).to_contain_text("· 1 page · its text is sent ·")
    expect(state(user, "written.pdf")).to_contain_text("tokens")
    user.page.get_by_role("button", name="Remove written.pdf").click()
    expect(state(user, "film.mp4")).to_have_text("reader does not see videos.")
    expect(line(user)).to_contain_text("Nothing can be sent. photo.png: reader does not see")
    user.send("What is it?")
    expect(user.page.locator("#notice")).to_contain_text("reader does not see pictures.")
    assert user.page.locator(".message").count() == 0

    user.choose_model(SEEING)
    expect(state(user, "photo.png")).to_contain_text("tokens")
    user.ask("What is it?")
    assert last_request().images


def test_what_a_model_does_not_see_of_earlier_messages_is_left_out(user: User) -> None:
    attach(user, PHOTO, film())
    user.ask("What is it?")
    note = user.message(0).locator(".note.unseen")
    assert note.count() == 0
    user.choose_model(READING)
    expect(note).to_have_text(
        "reader does not read all files of this message. Left out: pictures, videos."
    )
    assert user.ask("And now?") == "And now?"
    content = first_content(user)
    assert content.startswith("[The user sent a picture here, which you cannot see.]")
    assert content.endswith("What is it?")
    user.page.keyboard.press("Escape")
    user.choose_model(SEEING)
    expect(note).to_have_count(0)


def test_the_servers_limits_are_said_at_the_card(user: User) -> None:
    attach(user, *[photo(f"{number}.png") for number in range(7)])
    why = "The server takes at most 6 pictures in a conversation."
    expect(state(user, "6.png")).to_have_text(why)
    user.page.get_by_role("button", name="Remove 0.png").click()
    expect(state(user, "6.png")).to_contain_text("tokens")
    user.ask("What is it?")
    attach(user, PHOTO)
    expect(state(user, "photo.png")).to_have_text(why)
    attach(user, film(), {**film(), "name": "second.mp4"})
    why = "The server takes at most 1 video in a conversation."
    expect(state(user, "second.mp4")).to_have_text(why)
    attach(user, {**PHOTO, "name": "large.png", "buffer": bytes(2**24)})
    why = "It is too large: the server takes at most 13 MB."
    expect(state(user, "large.png")).to_have_text(why)
    attach(user, {**PAPER, "name": "broken.pdf", "buffer": b"%PDF-1.4 broken"})
    why = "The server refuses it: must be a PDF that is complete"
    expect(state(user, "broken.pdf")).to_contain_text(why)


def test_a_video_is_played_in_the_thread_and_stored_with_the_conversation(
    tmp_path: Path, user_at: Callable[[RunningServer], User]
) -> None:
    (tmp_path / "model").mkdir()
    with seeing_server(tmp_path / "model", store_url=f"sqlite:///{tmp_path}/store") as server:
        user = user_at(server)
        attach(user, film())
        user.ask("What is it?")
        wait_until_stored(user, 2)
        user.open()
        user.page.locator("#conversations .title").click()
        expect(user.message(0).locator("video")).to_have_attribute("controls", "")
        user.wait_until("document.querySelector('video').readyState > 1")
        user.ask("And now?")
        assert last_request().images


def test_texts_of_other_encodings_are_sent_as_texts(user: User) -> None:
    for encoding in ("utf-16", "utf-16-be", "utf-8-sig"):
        mark = "\ufeff" if encoding == "utf-16-be" else ""
        user.page.click("#new")
        attach(user, text("a.txt", f"{mark}Grüße\nund zurück".encode(encoding)))
        expect(state(user, "a.txt")).to_contain_text("2 lines")
        assert "Grüße" in user.ask("What is it?")


def test_twenty_files_at_once_are_cards_and_sixty_are_too_many(user: User) -> None:
    user.choose_model(READING)
    name = "n" * 300 + "\u202egpj.exe"
    attach(user, *[text(f"{number}-{name}", b"hi") for number in range(20)])
    expect(user.page.locator("#attachments .file-state", has_text="token")).to_have_count(20)
    assert user.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    attach(user, *[text(f"{number}.txt", b"hi") for number in range(40)])
    expect(user.page.locator("#notice")).to_contain_text("At most 50 files go with one message")
    expect(user.page.locator("#attachments .file")).to_have_count(50)


def test_the_files_of_a_folder_are_taken(user: User, tmp_path: Path) -> None:
    """The drop is Chromium's own, since a page cannot make one with folders."""
    skip_unless_chromium(user.page)
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    for name in ("a.txt", "deep/b.txt", ".hidden"):
        (tmp_path / "notes" / name).write_text("hi")
    session = user.page.context.new_cdp_session(user.page)
    for kind in ("dragEnter", "dragOver", "drop"):
        data = {"items": [], "files": [str(tmp_path / "notes")], "dragOperationsMask": 1}
        event = {"type": kind, "x": 600, "y": 300, "data": data}
        session.send("Input.dispatchDragEvent", event)
    expect(user.page.locator("#attachments .file-name")).to_have_text(["a.txt", "b.txt"])


PASTE = """text => {
  const transfer = new DataTransfer();
  transfer.setData("text/plain", text);
  const area = document.querySelector("#prompt");
  area.focus();
  const pasted = new ClipboardEvent("paste", { bubbles: true, cancelable: true });
  // Firefox copies no data into a ClipboardEvent that a script makes.
  Object.defineProperty(pasted, "clipboardData", { value: transfer });
  if (area.dispatchEvent(pasted)) {
    document.execCommand("insertText", false, text);
  }
}"""


def test_a_long_pasted_text_becomes_a_file_by_a_button(user: User) -> None:
    pasted = user.page.locator("#attach-paste")
    user.page.evaluate(PASTE, "short")
    expect(pasted).to_be_hidden()
    user.page.fill("#prompt", "What is it? ")
    user.page.evaluate(PASTE, "word\n" * 800)
    expect(pasted).to_be_visible()
    assert "word" in user.page.input_value("#prompt")
    pasted.focus()
    user.page.keyboard.press("Enter")
    expect(state(user, "Pasted text.txt")).to_contain_text("4.0 kB · 800 lines")
    expect(pasted).to_be_hidden()
    assert user.page.input_value("#prompt") == "What is it? "
    expect(user.page.locator("#prompt")).to_be_focused()


def test_on_a_phone_a_photo_can_be_taken(browser: Browser, seeing: RunningServer) -> None:
    phone = browser.new_context(has_touch=True, viewport={"width": 360, "height": 700})
    user = User(phone.new_page(), seeing.url)
    skip_unless_chromium(user.page)  # Firefox cannot be told that it has a touch screen
    user.open()
    with user.page.expect_file_chooser() as opened:
        user.page.get_by_role("button", name="Take a photo").click()
    assert opened.value.element.get_attribute("capture") == "environment"
    opened.value.set_files([PHOTO])
    expect(state(user, "photo.png")).to_contain_text("tokens")
    user.choose_model(READING)
    expect(user.page.get_by_role("button", name="Take a photo")).to_have_count(0)
    phone.close()


def packed_pages(count: int) -> bytes:
    """Returns a part of a PDF whose tree of pages is in a compressed stream."""
    content = zlib.compress(b"2 0 <</Type/Pages/Kids[3 0 R]/Count %d>>" % count)
    head = b"1 0 obj<</Type/ObjStm/N 1/First 4/Filter/FlateDecode/Length %d>>" % len(content)
    return b"%PDF-1.5\n" + head + b"stream\n" + content + b"\nendstream endobj"


PAGES = [
    (coloured(5), 5),
    (packed_pages(12), 12),
    (b"%PDF-1.4\n1 0 obj<</Linearized 1/L 9/N 7>>", 7),
    (b"/Count 900 /Type/Outlines" + b" " * 900 + b"/Type/Pages/Count 4" + b" " * 900, 4),
    (b"/Type /Pages /Count x", None),
    (packed_pages(3)[:-30], None),
    (b"/Type /ObjStm stream" * 500, None),
    (b"/Type/Pages" * 100_000, None),
]


def test_the_number_of_pages_of_a_pdf_is_found_or_unknown(user: User) -> None:
    script = """async bytes => {
      const { numPagesOf } = await import("/playground/modules/files/pdf_pages.js");
      return numPagesOf(new File([Uint8Array.from(bytes, each => each.charCodeAt(0))], "a"));
    }"""
    for content, num_pages in PAGES:
        found = user.page.evaluate(script, content.decode("latin-1"))
        assert found == num_pages, content[:80]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_cards_and_reasons_obey_the_rules_of_accessibility(
    user: User, width: int, scheme: Literal["light", "dark"]
) -> None:
    page = user.page
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    user.open()
    attach(user, PHOTO, film(), CODE)
    expect(state(user, "film.mp4")).to_contain_text("tokens")
    found = {"counted": violations(page)}
    user.ask("What is it?")
    user.choose_model(READING)
    attach(user, SOUND)
    expect(line(user)).to_contain_text("sound.mp3: reader cannot hear, and no model")
    found["refused"] = violations(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert {state: faults for state, faults in found.items() if faults} == {}
