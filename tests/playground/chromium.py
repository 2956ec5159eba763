"""Starts the installed Chromium, and uses the playground in it as a user does."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any  # JSON
from urllib.parse import unquote

import pytest
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

# A microphone that beeps once a second, and that every page may use.
_MICROPHONE = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")

_TELL_BODIES = """(() => {
  const { fetch } = window;
  window.fetch = (url, options = {}) => {
    const { body, headers } = options;
    if (typeof body !== "string") return fetch(url, options);
    return fetch(url, { ...options, headers: { ...headers, "x-body": encodeURIComponent(body) } });
  };
})()"""


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
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox", *_MICROPHONE])


@contextmanager
def running_browser(path: Path) -> Iterator[Browser]:
    """Starts the Chromium at `path`, and the program that drives it."""
    with running_playwright() as playwright:
        browser = launch_chromium(playwright, path)
        yield browser
        browser.close()


def browser_name(page: Page) -> str:
    """Returns "chromium" or "firefox"."""
    browser = page.context.browser
    assert browser is not None, "a page of a test has a browser"
    return browser.browser_type.name


def skip_unless_chromium(page: Page) -> None:
    """Skips a test that gives Chromium a command which other browsers do not have."""
    if browser_name(page) != "chromium":
        pytest.skip("another browser has no such command")


class Troubles:
    """Collects a page's faults: script errors, breaches of its policy, requests to other hosts."""

    def __init__(self, page: Page) -> None:
        self.found: list[str] = []
        page.on("console", self._take_console)
        page.on("pageerror", lambda error: self._take_error(str(error)))
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

    def _take_error(self, text: str) -> None:
        # Firefox wants an icon of its own accord when a test opens a file that is no page.
        if "/favicon.ico" not in text:
            self.found.append(f"error: {text}")

    def _take_request(self, request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "data:", "blob:")):
            self.found.append(f"request: {request.url}")


def tell_bodies(page: Page) -> None:
    """Makes the page send the body of each request as a header, too, for `read_body`."""
    page.add_init_script(_TELL_BODIES)
    page.evaluate(_TELL_BODIES)


def read_body(request: Request) -> dict[str, Any]:
    """Returns the body of a request in JSON, which Playwright does not get from Firefox."""
    found: dict[str, Any] = json.loads(unquote(request.headers.get("x-body", "{}")))
    return found


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
    """Uses the playground by clicks and keys, and waits without a time limit.

    Walks through the states of the page use `reach`, `use`, `write`, `switch`, `choose`,
    `choose_files` and `point_at`, which a user without a pointer does by other means.
    """

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        page.set_default_timeout(HANG_MS)

    def open(self) -> None:
        self.page.goto(self.url)
        self.page.wait_for_selector("body.ready")

    def reload(self) -> None:
        """Loads the page again and waits until it listens to its controls."""
        self.page.reload()
        self.page.wait_for_selector("body.ready")

    def ask(self, text: str) -> str:
        """Returns the answer when it is complete."""
        self.page.wait_for_selector("#send:visible")  # an answer from before may still go on
        self.send(text)
        expect(self.page.locator("#prompt")).to_have_value("")  # files are read before it is sent
        self.wait_for_answer()
        return self.answer

    def reach(self, control: Locator) -> None:
        """Gives the focus to a control."""
        control.focus()

    def use(self, control: Locator) -> None:
        """Presses a button, or follows a link."""
        control.click()

    def write(self, field: str, text: str) -> None:
        self.page.fill(field, text)

    def switch(self, box: str, *, is_on: bool = True) -> None:
        self.page.set_checked(box, is_on)

    def choose(self, select: str, value: str) -> None:
        self.page.select_option(select, value)

    def choose_files(self, opener: str, picker: str, *files: FilePayload) -> None:
        """Chooses files in the field `picker`, which the button `opener` opens."""
        self.page.set_input_files(picker, list(files))

    def point_at(self, place: Locator) -> None:
        """Moves the pointer to an element that shows more then."""
        place.hover()

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
        """Returns the texts of all messages that the page shows at this moment."""
        return [text.strip() for text in self.page.locator(".message .content").all_inner_texts()]

    def expect_texts(self, *texts: str) -> None:
        """Waits until the messages of the page have these texts."""
        found = self.page.locator(".message .content")
        expect(found).to_have_text([*texts], use_inner_text=True)

    def expect_titles(self, *titles: str) -> None:
        """Waits until the list has conversations with these titles."""
        expect(self.page.locator("#conversations .title")).to_have_text([*titles])

    @property
    def titles(self) -> list[str]:
        return self.page.locator("#conversations .title").all_inner_texts()

    def message(self, index: int) -> Locator:
        return self.page.locator(".message").nth(index)

    def choose_picture(self, name: str, content: bytes, *, media_type: str = "image/png") -> None:
        self.page.set_input_files(
            "#file-picker", FilePayload(name=name, mimeType=media_type, buffer=content)
        )

    def find_button(self, label: str, inside: Locator | None = None) -> Locator:
        """Returns the button `label` of the last message, or inside another element."""
        place = self.page.locator(".message").last if inside is None else inside
        return place.get_by_role("button", name=label, exact=True)

    def click(self, label: str, inside: Locator | None = None) -> None:
        """Presses the button `label` of the last message, or inside another element."""
        self.use(self.find_button(label, inside))

    def close_dialog(self) -> None:
        """Waits for the dialog, which may be loaded after the click, and presses Escape."""
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
        self.use(self.page.locator("#toggle-settings"))
        self.page.wait_for_selector("#set-temperature")
        closed = self.page.locator(".section:not([open]) > summary")
        for _ in range(closed.count()):
            self.use(closed.first)

    def close_settings(self) -> None:
        self.use(self.page.locator("#close-settings"))

    def skip_waits(self) -> None:
        """Tries again at once, as often as the page waits before another try, until it gives up."""
        error = self.page.locator(".note.error")
        script = """() => [...document.querySelectorAll(".note.wait button")]
          .find((each) => each.textContent === "Try now")?.click()"""
        while not error.is_visible():
            self.page.evaluate(script)
            self.page.wait_for_timeout(20)

    def wait_until(self, condition: str) -> None:
        """Waits until a JavaScript expression is true.

        The page's content policy does not allow Playwright to poll inside the page.
        """
        while not self.page.evaluate(condition):
            self.page.wait_for_timeout(20)
