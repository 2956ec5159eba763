"""The machine's Chromium, and a person who uses the playground in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    FilePayload,
    Locator,
    Page,
    Request,
    expect,
    sync_playwright,
)

# 1: a missing browser fails tests that would else be skipped
REQUIRED_VARIABLE = "OUZEL_TESTS_NEED_BROWSER"
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium_path() -> Path | None:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    return None if found is None else Path(found)


@contextmanager
def running_browser(path: Path) -> Iterator[Browser]:
    """Playwright's own browsers are not wanted; a test process may be root, for whom Chromium has no sandbox."""
    expect.set_options(
        timeout=86_400_000
    )  # ms; a slow machine is no failure, and 0 would mean five seconds
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Troubles:
    """Collects what must not happen on a page: faults of scripts, violations of its policy, requests elsewhere."""

    def __init__(self, page: Page) -> None:
        self.found: list[str] = []
        page.on("console", self._take_console)
        page.on("pageerror", lambda error: self.found.append(f"error: {error}"))
        page.on("request", self._take_request)
        page.on("dialog", lambda dialog: self.found.append(f"dialog: {dialog.message}"))

    def _take_console(self, message: ConsoleMessage) -> None:
        is_meant = message.text.startswith(
            "Failed to load resource"
        )  # what a test makes the server refuse, or cuts off
        if message.type in ("error", "warning") and not is_meant:
            self.found.append(f"console: {message.text}")

    def _take_request(self, request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "data:", "blob:")):
            self.found.append(f"request: {request.url}")


class Person:
    """Uses the playground by clicks and keys. What takes time is waited for, however long."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        page.set_default_timeout(0)

    def comes(self) -> None:
        self.page.goto(self.url)
        self.page.wait_for_selector("body.ready")

    def asks(self, text: str) -> str:
        """Returns the answer, once it is whole."""
        self.writes(text)
        self.waits()
        return self.answer

    def writes(self, text: str) -> None:
        self.page.fill("#prompt", text)
        self.page.press("#prompt", "Enter")

    def waits(self) -> None:
        """Until no answer is being made."""
        self.page.wait_for_selector("#send:visible")

    @property
    def answer(self) -> str:
        return self.page.locator(".message.assistant .content").last.inner_text().strip()

    @property
    def said(self) -> list[str]:
        """The texts of all messages that are shown."""
        return [text.strip() for text in self.page.locator(".message .content").all_inner_texts()]

    @property
    def titles(self) -> list[str]:
        return self.page.locator("#conversations .title").all_inner_texts()

    def message(self, index: int) -> Locator:
        return self.page.locator(".message").nth(index)

    def chooses_picture(self, name: str, content: bytes, *, media_type: str = "image/png") -> None:
        self.page.set_input_files(
            "#picture-file", FilePayload(name=name, mimeType=media_type, buffer=content)
        )

    def clicks(self, label: str, inside: Locator | None = None) -> None:
        """On the button of this name, in the last message or in another place."""
        place = self.page.locator(".message").last if inside is None else inside
        place.get_by_role("button", name=label, exact=True).click()

    def opens_settings(self) -> None:
        """With all sections open."""
        self.page.click("#toggle-settings")
        self.page.wait_for_selector("#set-temperature")
        for summary in self.page.query_selector_all(".section:not([open]) > summary"):
            summary.click()

    def waits_for(self, condition: str) -> None:
        """Until an expression of JavaScript is true. The page's policy keeps Playwright from polling within it."""
        while not self.page.evaluate(condition):
            self.page.wait_for_timeout(20)
