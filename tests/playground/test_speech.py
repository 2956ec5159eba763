"""Speech becomes text: from the microphone at the cursor, from a sound file with the message."""

import io
import wave
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Locator, Page, Route, expect

from ouzel.config import LimitsConfig
from tests.api.serving import RunningServer
from tests.playground.chromium import User, posts, read_body, tell_bodies
from tests.playground.hearing import (
    LISTENING,
    MAX_FILE_BYTES,
    RATE,
    HearingServer,
    hearing_server,
    sound,
)
from tests.playground.speech_walk import begin_recording, dictate_button, end_recording
from tests.playground.stored import wait_until_stored

UserAt = Callable[[RunningServer], User]
HEARD = "heard a sound"
TRANSCRIPTIONS = "**/v1/audio/transcriptions"
release = pytest.mark.release("the playground: more of speech")


@pytest.fixture(scope="module")
def hearing() -> Iterator[HearingServer]:
    with hearing_server() as hearing:
        yield hearing


@pytest.fixture
def user(page: Page, hearing: HearingServer) -> User:
    user = User(page, hearing.server.url)
    user.open()
    return user


def attach(user: User, *files: FilePayload) -> None:
    user.page.set_input_files("#file-picker", files)


def state(user: User) -> Locator:
    return user.page.locator("#attachments .file-state")


def told(user: User, text: str) -> None:
    """Waits until the page tells `text` to screen readers."""
    expect(user.page.locator("#announcer")).to_contain_text(text)


def test_speech_is_written_at_the_cursor(user: User, hearing: HearingServer) -> None:
    page = user.page
    expect(dictate_button(user)).to_have_accessible_name("Dictate")
    page.fill("#prompt", "Before. After.")
    page.evaluate("document.querySelector('#prompt').setSelectionRange(7, 7)")
    begin_recording(user)
    told(user, "Press the button again to stop")
    end_recording(user)
    expect(page.locator("#prompt")).to_have_value(f"Before. {HEARD} After.")
    expect(page.locator("#prompt")).to_be_focused()
    told(user, HEARD)
    expect(dictate_button(user)).to_have_attribute("aria-pressed", "false")
    expect(page.get_by_role("timer")).to_be_hidden()
    assert page.locator(".message").count() == 0
    with wave.open(io.BytesIO(hearing.decoder.files[-1])) as file:
        assert (file.getnchannels(), file.getframerate(), file.getsampwidth()) == (1, RATE, 2)
        assert file.getnframes() > RATE / 2
        assert max(array("h", file.readframes(file.getnframes()))) > 1000


def test_an_attached_sound_is_sent_as_its_text(user: User) -> None:
    tell_bodies(user.page)
    chats: list[str] = []
    user.page.on(
        "request",
        lambda request: (
            chats.append(str(read_body(request)))
            if request.url.endswith("/chat/completions")
            else None
        ),
    )
    attach(user, sound())
    expect(state(user)).to_contain_text("its text is sent")
    expect(user.page.locator("#attachments audio")).to_have_attribute("controls", "")
    assert HEARD in user.ask("What is it?")
    assert ["talk.wav.txt" in body and "data:audio" not in body for body in chats] == [True]
    heard = user.message(0).locator(".heard")
    user.wait_until("document.querySelector('.heard audio').readyState > 0")
    heard.locator("summary").click()
    expect(heard.locator(".plain")).to_have_text(HEARD)


def test_the_page_names_the_purpose_of_a_model_for_speech(user: User) -> None:
    user.choose_model(LISTENING)
    expect(user.page.locator("#no-chat")).to_contain_text("turns speech into text and does not")
    expect(user.page.locator("#composer")).to_be_hidden()


REFUSING = """(name) => {
  navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("broken", name));
}"""


@release
def test_the_page_says_why_it_hears_nothing(user: User) -> None:
    reasons = {
        "NotAllowedError": "The microphone is not allowed for this page.",
        "NotFoundError": "The browser finds no microphone.",
        "NotReadableError": "The microphone does not work: broken",
    }
    for name, reason in reasons.items():
        user.page.evaluate(REFUSING, name)
        dictate_button(user).click()
        expect(user.page.locator("#notice")).to_contain_text(reason)
        expect(dictate_button(user)).to_have_attribute("aria-pressed", "false")


@release
def test_a_page_without_tls_says_why_it_has_no_microphone(
    page: Page, hearing: HearingServer
) -> None:
    page.add_init_script("Object.defineProperty(window, 'isSecureContext', { value: false })")
    user = User(page, hearing.server.url)
    user.open()
    why = "The browser gives the microphone only to pages from HTTPS addresses"
    assert why in str(dictate_button(user).get_attribute("title"))
    dictate_button(user).click()
    expect(page.locator("#notice")).to_contain_text(why)


KEEP_STREAM = """() => {
  const { mediaDevices } = navigator;
  const open = mediaDevices.getUserMedia.bind(mediaDevices);
  mediaDevices.getUserMedia = async (wanted) => (window.stream = await open(wanted));
}"""
IS_CLOSED = "stream.getTracks().every(({ readyState }) => readyState === 'ended')"


@release
def test_a_recording_is_discarded(user: User) -> None:
    page = user.page
    page.evaluate(KEEP_STREAM)
    addresses = posts(page)
    page.fill("#prompt", "Here.")
    begin_recording(user)
    page.keyboard.press("Escape")
    told(user, "The recording is discarded")
    user.wait_until(IS_CLOSED)
    begin_recording(user)
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("timer")).to_be_hidden()
    user.wait_until(IS_CLOSED)
    expect(page.locator("#prompt")).to_be_focused()
    begin_recording(user)
    user.choose_model(LISTENING)  # there is no field for messages any more
    user.wait_until(IS_CLOSED)
    expect(dictate_button(user)).to_have_attribute("aria-pressed", "false")
    assert page.input_value("#prompt") == "Here."
    assert addresses == []


COUNT_ABORTS = """() => {
  const { abort, send } = XMLHttpRequest.prototype;
  Object.assign(window, { numSent: 0, numAborted: 0 });
  XMLHttpRequest.prototype.send = function (body) {
    window.numSent += 1;
    send.call(this, body);
  };
  XMLHttpRequest.prototype.abort = function () {
    window.numAborted += 1;
    abort.call(this);
  };
}"""


@release
def test_a_text_that_is_awaited_can_be_given_up(user: User) -> None:
    page = user.page
    page.evaluate(COUNT_ABORTS)
    page.route(TRANSCRIPTIONS, lambda route: None)
    begin_recording(user)
    expect(page.get_by_role("timer")).to_have_text("0:01")
    dictate_button(user).click()
    expect(page.locator(".dictation")).to_contain_text("Turning speech into text")
    user.wait_until("numSent === 1")
    page.keyboard.press("Escape")
    expect(page.locator(".dictation")).to_be_hidden()
    user.wait_until("numAborted === 1")
    page.unroute(TRANSCRIPTIONS)
    begin_recording(user)
    end_recording(user)
    expect(page.locator("#prompt")).to_have_value(HEARD)


def refuse(route: Route) -> None:
    route.fulfill(status=429, json={"error": {"message": "too many sounds"}})


@release
def test_a_recording_that_the_server_cannot_take_now_stays_as_a_file(user: User) -> None:
    page = user.page
    page.route(TRANSCRIPTIONS, refuse)
    begin_recording(user)
    expect(page.get_by_role("timer")).to_have_text("0:01")
    dictate_button(user).click()
    expect(state(user)).to_have_text("too many sounds")
    page.unroute(TRANSCRIPTIONS)
    page.get_by_role("button", name="Try Recording.wav again").click()
    expect(state(user)).to_contain_text("its text is sent")
    assert HEARD in user.ask("")


@release
def test_a_sound_without_speech_is_not_sent(user: User) -> None:
    user.page.route(TRANSCRIPTIONS, lambda route: route.fulfill(json={"text": " "}))
    attach(user, sound())
    expect(state(user)).to_have_text("No speech was found in it.")
    user.send("What is it?")
    expect(user.page.locator("#notice")).to_contain_text("Nothing was sent")


@release
def test_a_sound_beyond_the_limit_is_not_uploaded(user: User) -> None:
    addresses = posts(user.page)
    attach(user, {**sound(), "buffer": b"RIFF" + bytes(MAX_FILE_BYTES)})
    expect(state(user)).to_have_text("It is too large: the server takes at most 1.0 MB.")
    assert addresses == []


@release
def test_a_sound_too_large_for_a_message_goes_as_its_text_alone(user_at: UserAt) -> None:
    with hearing_server(limits=LimitsConfig(max_body_bytes=80_000)) as hearing:
        user = user_at(hearing.server)
        attach(user, sound())
        expect(state(user)).to_contain_text("its text is sent")
        assert HEARD in user.ask("What is it?")
        expect(user.message(0)).to_contain_text("talk.wav.txt")
        assert user.message(0).locator("audio").count() == 0


@release
def test_a_sound_is_stored_with_its_conversation(tmp_path: Path, user_at: UserAt) -> None:
    with hearing_server(store_url=f"sqlite:///{tmp_path}/store") as hearing:
        user = user_at(hearing.server)
        attach(user, sound())
        expect(state(user)).to_contain_text("its text is sent")
        user.ask("")
        user.expect_titles("talk.wav")
        wait_until_stored(user, 2)
        user.open()
        user.page.locator("#conversations .title").click()
        user.wait_until("document.querySelector('.heard audio')?.readyState > 0")
        user.message(0).locator(".heard summary").click()
        expect(user.message(0).locator(".heard .plain")).to_have_text(HEARD)
        assert user.ask("And now?") == "And now?"
        assert user.page.locator(".note.unseen").count() == 0


@release
def test_an_edited_message_keeps_its_sound_and_transcript(user: User) -> None:
    attach(user, sound())
    user.ask("What is it?")
    question = user.message(0)
    user.click("Edit", question)
    expect(question.locator(".file-name")).to_have_text(["talk.wav", "talk.wav.txt"])
    expect(question.locator("audio")).to_be_visible()
    question.locator("textarea").fill("And where?")
    user.click("Send as another branch", question)
    expect(user.message(0)).to_contain_text("And where?")
    user.wait_for_answer()
    assert HEARD in user.answer
    expect(user.message(0).locator(".heard audio")).to_have_count(1)


HEADS = {
    ("RIFF\0\0\0\0WAVEfmt ", ""): "audio/wav",
    ("RIFF\0\0\0\0AVI LIST", "video/x-msvideo"): None,
    ("fLaC\0", ""): "audio/flac",
    ("OggS\0\2OpusHead", "video/ogg"): "audio/ogg",
    ("OggS\0\2\x80theora", "video/ogg"): None,
    ("\x1aE\xdf\xa3 webm A_OPUS", "video/webm"): "audio/webm",
    ("\x1aE\xdf\xa3 webm V_VP9 A_OPUS", "video/webm"): None,
    ("\0\0\0\x20ftypM4A \0", ""): "audio/mp4",
    ("\0\0\0\x20ftypisom\0", "video/mp4"): None,
    ("ID3\4", ""): "audio/mpeg",
    ("\xff\xfb\x90", ""): "audio/mpeg",
    ("\xff\xfeh\0", ""): None,  # a text in UTF-16
    ("anything", "audio/flac"): "audio/flac",
    ("ID3 is a format.", "text/plain"): None,
}


@release
def test_sounds_are_told_from_films_and_texts_by_their_first_bytes(user: User) -> None:
    script = """async ([head, type]) => {
      const { soundTypeOf } = await import("/playground/modules/files/sound_types.js");
      return soundTypeOf(Uint8Array.from(head, (letter) => letter.charCodeAt(0)), type);
    }"""
    found = {given: user.page.evaluate(script, [*given]) for given in HEADS}
    assert found == HEADS
