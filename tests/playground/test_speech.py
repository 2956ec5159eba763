"""What a person says into the microphone, or attaches as a sound, becomes text."""

import io
import wave
from array import array
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api.serving import RunningServer
from tests.playground.chromium import User, skip_unless_chromium
from tests.playground.hearing import RATE, WaveDecoder, hearing_server, sound


@pytest.fixture(scope="module")
def hearing() -> Iterator[tuple[RunningServer, WaveDecoder]]:
    with hearing_server() as hearing:
        yield hearing


@pytest.fixture
def user(page: Page, hearing: tuple[RunningServer, WaveDecoder]) -> User:
    user = User(page, hearing[0].url)
    user.open()
    return user


def dictate(user: User) -> Locator:
    return user.page.get_by_role("button", name="Dictate")


def test_speech_is_written_at_the_cursor(
    user: User, hearing: tuple[RunningServer, WaveDecoder]
) -> None:
    skip_unless_chromium(user.page)
    page = user.page
    page.fill("#prompt", "Before. After.")
    page.evaluate("document.querySelector('#prompt').setSelectionRange(7, 7)")
    dictate(user).click()
    expect(dictate(user)).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#announcer")).to_contain_text("Press the button again to stop")
    expect(page.get_by_role("timer")).to_have_text("0:01")
    dictate(user).click()
    expect(page.locator("#prompt")).to_have_value("Before. heard a sound After.")
    expect(page.locator("#prompt")).to_be_focused()
    expect(dictate(user)).to_have_attribute("aria-pressed", "false")
    expect(page.get_by_role("timer")).to_have_count(0)
    assert page.locator(".message").count() == 0
    with wave.open(io.BytesIO(hearing[1].files[-1])) as file:
        assert (file.getnchannels(), file.getframerate(), file.getsampwidth()) == (1, RATE, 2)
        assert file.getnframes() > RATE / 2
        assert max(array("h", file.readframes(file.getnframes()))) > 1000


def test_an_attached_sound_is_sent_as_its_text(user: User) -> None:
    page = user.page
    page.set_input_files("#file-picker", [sound()])
    card = page.locator("#attachments .file")
    expect(card.locator(".file-state")).to_contain_text("its text is sent")
    expect(card.locator("audio")).to_have_attribute("controls", "")
    assert "heard a sound" in user.ask("What is it?")
