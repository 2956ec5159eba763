"""Takes pictures of the playground and its live figures, as a user sees them."""

import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.playground.chromium import User
from tests.serve.running import RunningServer

_ROUNDS = 12  # rounds of requests for the live figures


def _open_playground(page: Page, server: RunningServer) -> User:
    user = User(page, server.root)
    user.open()
    return user


def take_chat(browser: Browser, server: RunningServer, path: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    user = _open_playground(page, server)
    user.open_settings()
    page.check("#tool-calculator")
    page.check("#set-showsTokens")
    page.click("#close-settings")
    user.ask("Hello!")
    page.click("#new")
    user.ask("What is 17 plus 25?")
    page.locator(".message.tool").wait_for()
    user.wait_for_answer()
    user.click("Tokens")
    page.locator(".message").last.locator(".token").nth(4).hover()
    page.screenshot(path=path)
    page.close()


def take_phone(browser: Browser, server: RunningServer, path: Path) -> None:
    page = browser.new_page(
        viewport={"width": 390, "height": 720}, color_scheme="dark", device_scale_factor=2
    )
    user = _open_playground(page, server)
    user.ask("Hello!")
    user.ask("What is 17 plus 25?")
    page.screenshot(path=path)
    page.close()


def take_figures(browser: Browser, server: RunningServer, path: Path) -> None:
    """Takes the live figures while a benchmark sends requests."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark")
    page.goto(f"{server.root}/playground/figures.html")
    for round in range(_ROUNDS):
        load = [
            "--num-prompts",
            "48",
            "--max-concurrency",
            str(1 + 5 * (round % 4)),
            "--output-len",
            "20:200",
        ]
        subprocess.run(
            [sys.executable, "-m", "ouzel", "bench", "--url", server.url, *load], check=True
        )
    page.wait_for_timeout(2500)  # milliseconds: the page reads figures every two seconds
    page.screenshot(path=path)
    page.close()
