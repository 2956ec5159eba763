"""Attaches a sound and dictates a message, as a user does."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Locator, expect

from tests.api.serving import RunningServer
from tests.playground.chromium import User
from tests.playground.hearing import LISTENING, hearing_server, sound
from tests.playground.states import Look


@contextmanager
def serving_speech() -> Iterator[RunningServer]:
    with hearing_server() as hearing:
        yield hearing.server


def dictate_button(user: User) -> Locator:
    return user.page.locator("#dictate")


def begin_recording(user: User) -> None:
    user.use(dictate_button(user))
    expect(dictate_button(user)).to_have_attribute("aria-pressed", "true")
    expect(user.page.get_by_role("timer")).to_be_visible()


def end_recording(user: User) -> None:
    """Ends a recording after a second, and waits until its text is written."""
    before = user.page.input_value("#prompt")
    expect(user.page.get_by_role("timer")).to_have_text("0:01")
    user.use(dictate_button(user))
    expect(user.page.locator("#prompt")).not_to_have_value(before)


def walk_through_speech(user: User, look: Look) -> None:
    page = user.page
    user.open()
    user.choose_files("#attach", "#file-picker", sound())
    expect(page.locator("#attachments .file[aria-busy=false] audio")).to_be_visible()
    look("a sound with its text")
    begin_recording(user)
    look("a recording")
    end_recording(user)
    look("a text that was dictated")
    page.keyboard.press("Enter")
    expect(page.locator("#prompt")).to_have_value("")
    user.wait_for_answer()
    user.use(page.locator(".heard summary"))
    expect(page.locator(".heard .plain")).to_be_visible()
    look("a sound and its transcript in a message")
    begin_recording(user)
    page.keyboard.press("Escape")
    expect(page.get_by_role("timer")).to_be_hidden()
    expect(page.locator("#prompt")).to_be_focused()
    user.use(page.locator("#model"))
    dialog = page.locator("dialog[open]")
    expect(dialog.locator(".models > li")).to_have_count(2)
    look("a model for speech")
    user.use(dialog.locator(".model-name", has_text=LISTENING))
    expect(page.locator("#no-chat")).not_to_be_empty()
    look("no chat with a model for speech")
