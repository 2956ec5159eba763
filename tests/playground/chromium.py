"""Starts the installed Chromium, and uses the playground in it as a user does."""

import os
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
    Playwright,
    Request,
    expect,
    sync_playwright,
)

# 1: a missing browser fails tests that would else be skipped
REQUIRED_VARIABLE = "OUZEL_TESTS_NEED_BROWSER"
# 1: the page is slow, and the tests are not. A test that goes on before the page has ended fails.
SLOW_VARIABLE = "OUZEL_TESTS_SLOW_PAGE"
# A wait ends after this time, in ms, with the name of the awaited element. It is far beyond a slow
# machine, and below pytest's `faulthandler_timeout`, which ends the whole process without a name.
HANG_MS = float(os.environ.get("OUZEL_TESTS_HANG_MS", "600_000"))
# The shell is Chromium without windows: it takes half of the CPU for the same tests.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def chromium_path() -> Path | None:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    return None if found is None else Path(found)


@contextmanager
def running_playwright() -> Iterator[Playwright]:
    """Starts the program that drives browsers. A thread can have one."""
    expect.set_options(timeout=HANG_MS)
    with sync_playwright() as playwright:
        yield playwright


def launch_chromium(playwright: Playwright, path: Path) -> Browser:
    """Starts the Chromium at `path`.

    Chromium runs without its sandbox, because a test process may be root, and root has no sandbox.
    """
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


@contextmanager
def running_browser(path: Path) -> Iterator[Browser]:
    """Starts the Chromium at `path`, and the program that drives it."""
    with running_playwright() as playwright:
        browser = launch_chromium(playwright, path)
        yield browser
        browser.close()


class Troubles:
    """Collects a page's faults: script errors, breaches of its policy, requests to other hosts."""

    def __init__(self, page: Page) -> None:
        self.found: list[str] = []
        page.on("console", self._take_console)
        page.on("pageerror", lambda error: self.found.append(f"error: {error}"))
        page.on("request", self._take_request)
        page.on("dialog", lambda dialog: self.found.append(f"dialog: {dialog.message}"))

    def _take_console(self, message: ConsoleMessage) -> None:
        # Tests make the server refuse requests and cut off answers, which Chromium reports.
        # Playwright warns of service workers that the test has forbidden.
        is_meant = message.text.startswith(
            ("Failed to load resource", "Service Worker registration blocked by Playwright")
        )
        if message.type in ("error", "warning") and not is_meant:
            self.found.append(f"console: {message.text}")

    def _take_request(self, request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "data:", "blob:")):
            self.found.append(f"request: {request.url}")


def slow_down(page: Page) -> None:
    """Gives the page an eighth of the processor, and each answer of a server 150 ms on its way."""
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": 8})
    session.send("Network.enable")
    session.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 150, "downloadThroughput": -1, "uploadThroughput": -1},
    )


def posts(page: Page) -> list[str]:
    """Returns a list to which the address of each POST of the page is added."""
    addresses: list[str] = []

    def take(request: Request) -> None:
        if request.method == "POST":
            addresses.append(request.url)

    page.on("request", take)
    return addresses


class User:
    """Uses the playground by clicks and keys, and waits without a time limit."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        page.set_default_timeout(HANG_MS)

    def open(self) -> None:
        self.page.goto(self.url)
        self.page.wait_for_selector("body.ready")

    def ask(self, text: str) -> str:
        """Returns the answer when it is complete."""
        self.send(text)
        expect(self.page.locator("#prompt")).to_have_value("")  # files are read before it is sent
        self.wait_for_answer()
        return self.answer

    def send(self, text: str) -> None:
        self.page.fill("#prompt", text)
        self.page.press("#prompt", "Enter")

    def wait_for_answer(self) -> None:
        """Waits until no answer is being generated, and messages are drawn."""
        self.page.wait_for_selector("#send:visible")
        expect(self.page.locator(".messages[aria-busy]")).to_have_count(0)

    @property
    def answer(self) -> str:
        return self.page.locator(".message.assistant .content").last.inner_text().strip()

    @property
    def texts(self) -> list[str]:
        """Returns the texts of all messages on the page."""
        return [text.strip() for text in self.page.locator(".message .content").all_inner_texts()]

    @property
    def titles(self) -> list[str]:
        return self.page.locator("#conversations .title").all_inner_texts()

    def message(self, index: int) -> Locator:
        return self.page.locator(".message").nth(index)

    def choose_picture(self, name: str, content: bytes, *, media_type: str = "image/png") -> None:
        self.page.set_input_files(
            "#file-picker", FilePayload(name=name, mimeType=media_type, buffer=content)
        )

    def click(self, label: str, inside: Locator | None = None) -> None:
        """Presses the button `label` of the last message, or inside another element."""
        place = self.page.locator(".message").last if inside is None else inside
        place.get_by_role("button", name=label, exact=True).click()

    def close_dialog(self) -> None:
        """Presses Escape when the dialog is there, which may come long after its button's click."""
        dialog = self.page.locator("dialog[open]")
        expect(dialog).to_be_visible()
        self.page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)

    def choose_model(self, name: str) -> None:
        self.page.click("#model")
        self.page.locator("dialog").get_by_role("button", name=name, exact=True).click()
        expect(self.page.locator("#model-name")).to_have_text(name)

    def open_settings(self) -> None:
        """Opens the settings and all their sections."""
        self.page.click("#toggle-settings")
        self.page.wait_for_selector("#set-temperature")
        for summary in self.page.query_selector_all(".section:not([open]) > summary"):
            summary.click()

    def wait_until(self, condition: str) -> None:
        """Waits until a JavaScript expression is true.

        The page's content policy does not allow Playwright to poll inside the page.
        """
        while not self.page.evaluate(condition):
            self.page.wait_for_timeout(20)
