"""Takes pictures of the playground and its live figures, as a person sees them."""

import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.playground.chromium import Person
from tests.serve.running import RunningServer

_ROUNDS = 12  # rounds of requests that the live figures show


def _person(page: Page, server: RunningServer) -> Person:
    person = Person(page, server.root)
    person.comes()
    return person


def take_chat(browser: Browser, server: RunningServer, path: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    person = _person(page, server)
    person.opens_settings()
    page.check("#tool-calculator")
    page.check("#set-showsTokens")
    page.click("#close-settings")
    person.asks("Hello!")
    page.click("#new")
    person.asks("What is 17 plus 25?")
    page.locator(".message.tool").wait_for()
    person.waits()
    person.clicks("Tokens")
    page.locator(".message").last.locator(".token").nth(4).hover()
    page.screenshot(path=path)
    page.close()


def take_phone(browser: Browser, server: RunningServer, path: Path) -> None:
    page = browser.new_page(
        viewport={"width": 390, "height": 720}, color_scheme="dark", device_scale_factor=2
    )
    person = _person(page, server)
    person.asks("Hello!")
    person.asks("What is 17 plus 25?")
    page.screenshot(path=path)
    page.close()


def take_figures(browser: Browser, server: RunningServer, path: Path) -> None:
    """Takes the live figures while a benchmark asks the server."""
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
    page.wait_for_timeout(2500)  # milliseconds: the page asks every two seconds
    page.screenshot(path=path)
    page.close()
